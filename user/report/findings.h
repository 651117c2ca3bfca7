/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Secondary findings, printed after the slow regions: tasks that stall ranks often and shortly, work too rare to be
 * compared, a slow-down of all ranks together, sets of ranks that always take longer. The end summary fills it from
 * results, `vapro view` from lines; a later finding replaces an earlier one about the same. Texts are copied, defused.
 */
#ifndef VAPRO_REPORT_FINDINGS_H
#define VAPRO_REPORT_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <vapro/analysis.h>

enum finding_kind { FINDING_NOISE, FINDING_RARE, FINDING_DRIFT, FINDING_IMBALANCE, FINDING_KINDS };

/* Numbers whose comment does not name the kind are 0. */
struct finding {
	enum finding_kind kind;
	char *job, *state; /* noise: its tasks, or a function, in place of a state */
	uint64_t state_id;
	uint64_t cluster;  /* rare: cluster of the state; 0 the state itself; noise: number of the component */
	char *who, *place; /* noise, imbalance: "ranks 2-3"; imbalance: ", all on host n2," or "" */
	int64_t rank;	   /* rare: rank where the work took longest */
	bool many;	   /* noise, imbalance: several ranks */
	bool certain;	   /* imbalance: speed, not work */
	uint64_t count;	   /* noise: stalls; rare: members; drift: windows; imbalance: states */
	double seconds;	   /* rare: time used; noise, imbalance: time lost */
	double ratio;	   /* drift: last over first; imbalance: the set over the others */
	double share;	   /* noise, imbalance: share of the ranks' time, 0..1 */
	double waited_s;   /* noise: time that others waited for the stalls */
	double longest_s;  /* noise: the longest stall */
	double period_s;   /* noise: a rank's observed time by the number of its stalls */
	enum vapro_noise_source source;	    /* noise */
	enum vapro_noise_together together; /* noise */
	double least, most;		    /* imbalance: ratio in one state */
	double slow; /* imbalance: ratio over the states in which the set is slow; 0: same as ratio */
};

struct findings {
	struct finding *items;
	size_t count, capacity;
};

/* Copies job, state, aside->who and aside->place. Returns 0 or -ENOMEM. */
int findings__add(struct findings *findings, const struct finding *finding, const char *job, const char *state);

/* Returns what findings of a kind are called: "rare". */
const char *findings__kind(enum finding_kind kind);

/* Writes a finding as a sentence. Returns text. */
char *findings__text(const struct finding *finding, char *text, size_t size);

/* Prints the findings of each kind that matter most and counts the others. Sorts asides; no findings print nothing. */
void findings__print(struct findings *findings, FILE *out, unsigned width);
void findings__free(struct findings *findings);

#endif
