/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is told to a person beside the slow regions, since it is none: work too rare to be compared, a
 * slow-down of all ranks together, ranks that differ for good. The end summary fills it from results,
 * `vapro view` from lines; what is told again replaces what was told before. Texts are copied, defused.
 */
#ifndef VAPRO_REPORT_ASIDES_H
#define VAPRO_REPORT_ASIDES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum aside_kind { ASIDE_RARE, ASIDE_DRIFT, ASIDE_IMBALANCE, ASIDE_KINDS };

/* Numbers that a kind does not name are 0. */
struct aside {
	enum aside_kind kind;
	char *job, *state;
	uint64_t cluster; /* rare: of the state; 0 the state itself */
	int64_t rank;	  /* rare: where it took longest; imbalance: the slow one */
	int64_t other;	  /* imbalance: the fast one */
	uint64_t count;	  /* rare: members; drift: windows */
	double seconds;	  /* rare */
	double ratio;	  /* drift: last over first; imbalance: slow over fast */
	double share;	  /* imbalance: of the ranks' time, 0..1 */
};

struct asides {
	struct aside *items;
	size_t count, capacity;
};

/* Copies job and state. Returns 0 or -ENOMEM. */
int asides__add(struct asides *asides, const struct aside *aside, const char *job, const char *state);

/* Those of each kind that matter most, the others counted. Sorts them. Prints nothing where there are none. */
void asides__print(struct asides *asides, FILE *out, unsigned width);
void asides__free(struct asides *asides);

#endif
