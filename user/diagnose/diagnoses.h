/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One case per variance: its contributions and interferers, over as many windows as it lasts. As
 * with tallies, shares of dropped bundles are retained, shares of present ones are added again in each
 * window. Most cases of a noisy job have nothing new in a window: those hold only the past, and nothing
 * is computed for them.
 */
#ifndef VAPRO_DIAGNOSES_H
#define VAPRO_DIAGNOSES_H

#include "diagnose/breakdown.h"
#include "diagnose/interferers.h"

/* The last emitted values of a case. */
struct emitted_case {
	int stage; /* 0: nothing yet */
	bool final, confirmed, alarm;
	uint64_t effect_of, major; /* major causes, as bits */
	uint32_t rows;
	uint64_t words; /* hash of ranks, places, cause and culprit in words */
	int confidence;
	bool slow_path;
	double lost_seconds;
	float share[FACTOR_NODES];
};

/* CASE_SUM is the sum of the three before, by diagnoses__sum. */
enum case_part { CASE_PAST, CASE_RETIRING, CASE_STAYING, CASE_SUM, CASE_PARTS };

struct diagnosis_of {
	uint32_t id;				/* id of the variance */
	struct contribution *parts[CASE_PARTS]; /* NULL: nothing; use diagnoses__part and diagnoses__sum_of */
	struct interferers interferers[CASE_PARTS];
	bool stale;		    /* the sum is not that of the last window */
	struct breakdown breakdown; /* breakdown of the sum; the analysis fills it */
	/* Groups of counters as bits, see driver.h: wanted now, and wanted in vain. */
	unsigned wished, tried;
	struct emitted_case emitted; /* the analysis fills it */
};

struct diagnoses {
	struct diagnosis_of **items; /* ascending by id */
	size_t count, capacity;
};

/*
 * Returns the case of a variance, made where it is missing: cheapest in the order of ids. NULL when out of
 * memory; valid until the case is retired.
 */
struct diagnosis_of *diagnoses__get(struct diagnoses *diagnoses, uint32_t id);

/* Returns NULL where there is no case. */
struct diagnosis_of *diagnoses__find(const struct diagnoses *diagnoses, uint32_t id);

/* Returns a part to add to, made where it is missing; NULL when out of memory. */
struct contribution *diagnoses__part(struct diagnosis_of *item, enum case_part part);

/* Adds a task that ran instead of a row's thread in a bin to a part. Returns 0 or -ENOMEM. */
int diagnoses__interfere(struct diagnosis_of *item, enum case_part part, const struct result_interferer *task,
			 uint32_t row, uint64_t bin);

/* Returns the sum of all parts, never NULL; to be called after diagnoses__sum. */
const struct contribution *diagnoses__sum_of(const struct diagnosis_of *item);

/* Merges the case of a variance that was merged into another one. Returns 0 or -ENOMEM. */
int diagnoses__merge(struct diagnoses *diagnoses, uint32_t from, uint32_t into);

/* Brings the sums of stale cases up to date. Returns 0 or -ENOMEM. */
int diagnoses__sum(struct diagnoses *diagnoses);

/* Ends the window; keep says whether a variance lives on. Returns 0 or -ENOMEM. */
int diagnoses__retire(struct diagnoses *diagnoses, bool (*keep)(void *arg, uint32_t id), void *arg);

/* Writes or reads all cases; an object to be read is empty. */
void diagnoses__archive(struct archive *archive, struct diagnoses *diagnoses);
size_t diagnoses__bytes(const struct diagnoses *diagnoses);
void diagnoses__free(struct diagnoses *diagnoses);

#endif
