/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rating of a cost: the greatest share of the time of all ranks that it took in any hour of a job, in steps of
 * whole minutes from the job's first hour to its last one, or of the whole job while that is no longer than an hour.
 * Variances (detect/weight.c) and causes (analysis/causes_list.c) are rated by this function alone, each with sums of
 * its own over parts of time.
 */
#ifndef VAPRO_DETECT_RATING_H
#define VAPRO_DETECT_RATING_H

#include <stdint.h>

#define RATING_HOUR_NS 3600000000000ULL /* of the hour in which a cause has its greatest share, it is rated by that */
#define RATING_MINUTE_NS (RATING_HOUR_NS / 60) /* step in which that hour is looked for */

/* Returns the sum over [from_ns, to_ns), ns; all of it for [0, UINT64_MAX). */
typedef double (*rating_sum)(const void *arg, uint64_t from_ns, uint64_t to_ns);

/* What is rated. All times are UTC, ns. */
struct rating_input {
	uint64_t job_begin_ns, job_end_ns;
	uint64_t begin_ns, end_ns; /* of the cost */
	rating_sum cost, time;	   /* of the cost, and of all ranks */
	const void *cost_arg, *time_arg;
};

struct rating {
	double share;	       /* 0..1; NAN: no time of ranks is known */
	double denominator_ns; /* ranks' time of which that is; NAN with it */
};

struct rating rating__of(const struct rating_input *input);

/* Returns the part of ns that are spread evenly over [begin_ns, end_ns) which lies before a moment. */
uint64_t rating__before(uint64_t begin_ns, uint64_t end_ns, uint64_t ns, uint64_t moment_ns);

#endif
