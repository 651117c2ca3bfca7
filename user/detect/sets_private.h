/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by sets.c, sets_ratio.c and sets_median.c. */
#ifndef VAPRO_SETS_PRIVATE_H
#define VAPRO_SETS_PRIVATE_H

#include "detect/sets.h"

#define THIRDS SERIES_THIRDS
#define QUARTILE_SIGMAS 0.6745 /* standard deviations from the middle of a normal distribution to its quartiles */
#define SET_SHARE 0.02	       /* share of the wall time: balancing less is not worth it */

/* Time and expected time of a row in each third of the view. */
struct row_time {
	double ns[THIRDS], base_ns[THIRDS];
	double chance; /* squared error of the sum of ns; with instructions */
	double ratio;  /* ratio of the sums; 0 where too little is known */
	bool in_set;
};

struct finder {
	const struct series_book *book;
	const struct stg *stg;
	const struct stg_job *job;
	uint32_t id;
	struct row_time *rows;
	double *base;	 /* by workload: ns per fragment; 0 where it is not compared */
	double *scratch; /* room for each row's thirds */
	double median;	 /* ratio of a typical row that is not slow */
	double wander;	 /* scatter of a row between thirds of the view, as of a speed that varies; with instructions */
	size_t known;	 /* rows with a ratio */
};

/* Fragments of a series in the view, and their compared time. */
static inline double series__view_n(const struct series *series)
{
	return series->third_n[0] + series->third_n[1] + series->third_n[2];
}

static inline double series__view_ns(const struct series *series)
{
	return series->third_ns[0] + series->third_ns[1] + series->third_ns[2];
}

/* Sorts values, and returns the median; 0 of none. */
double sets__median(double *values, size_t count);

/* Whether a series is one that ranks are compared by. */
bool sets__compared(const struct finder *finder, const struct series *series);

/* The expected time of a fragment, ns: with instructions the series' reference, which fits its kind of CPU; or 0. */
double sets__base(const struct finder *finder, const struct series *series);

/* Computes the rows' times and ratios, and the typical one. */
void sets__find_ratios(struct finder *finder);

/* Whether rows are slower than the others by a ratio, all the time and by more than chance. */
bool sets__steady(const struct finder *finder, const uint32_t *rows, size_t count, double ratio);

/* Adds ranks of no set whose median fragments are longer than those of most others. Returns 0 or -ENOMEM. */
int sets__find_by_median(struct sets *sets, struct finder *finder, const struct sets_span *span);

#endif
