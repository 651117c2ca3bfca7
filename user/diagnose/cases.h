/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One case per variance: its contributions and interferers, over as many windows as it lasts. As
 * with tallies, what comes from bundles that are dropped is kept, what comes from the present ones
 * is added anew in each window.
 */
#ifndef VAPRO_CASES_H
#define VAPRO_CASES_H

#include "diagnose/breakdown.h"
#include "diagnose/interferers.h"

/* What was said of a case last. */
struct told_case {
	int stage; /* 0: nothing yet */
	bool final, confirmed, alarm;
	uint64_t effect_of, major; /* major causes, as bits */
	uint32_t rows;
	double lost_seconds;
	float share[FACTOR_NODES];
};

struct diagnosis_case {
	uint32_t id; /* of the variance */
	struct contribution past, retiring, staying;
	struct interferers past_interferers, retiring_interferers, staying_interferers;
	/* Sums of the three, by cases__sum. */
	struct contribution sum;
	struct interferers sum_interferers;
	struct breakdown breakdown; /* of the sum; the analysis fills it */
	/* Groups of counters as bits, see driver.h: asked for now, and asked for in vain. */
	unsigned wished, tried;
	struct told_case told; /* the analysis fills it */
};

struct cases {
	struct diagnosis_case *items; /* ascending by id */
	size_t count, capacity;
};

/* The case of a variance, made where it is missing. NULL when out of memory; valid until the next. */
struct diagnosis_case *cases__get(struct cases *cases, uint32_t id);

/* NULL where there is none. */
struct diagnosis_case *cases__find(const struct cases *cases, uint32_t id);

/* The case of a variance that went up in another one goes with it. Returns 0 or -ENOMEM. */
int cases__merge(struct cases *cases, uint32_t from, uint32_t into);
int cases__sum(struct cases *cases);

/* Ends the window; keep tells whether a variance lives on. Returns 0 or -ENOMEM. */
int cases__retire(struct cases *cases, bool (*keep)(void *arg, uint32_t id), void *arg);
void cases__free(struct cases *cases);

#endif
