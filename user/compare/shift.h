/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shift between two sets of values: the estimate of Hodges and Lehmann (1963), the median of all differences, with
 * the confidence interval and the probability of the rank test of Mann and Whitney (1947), which assume no
 * distribution. Values that follow each other resemble each other: the first autocorrelation widens both (a sample
 * of n values with autocorrelation r counts as n (1 - r) / (1 + r)).
 */
#ifndef VAPRO_SHIFT_H
#define VAPRO_SHIFT_H

#include <stddef.h>

#define SHIFT_LEAST 8	       /* values on either side below which nothing is said */
#define SHIFT_LEAST_ERROR 1e-3 /* least error of a shift: no measurement of a run is better */
#define SHIFT_Z95 1.959964     /* standard deviations on either side that 95 % of a normal distribution lie within */

struct shift {
	double by;	  /* b - a */
	double low, high; /* 95 % */
	double error;	  /* standard error */
	double p;	  /* two-sided probability of such a difference by chance */
};

/* Values are in the order of time. Returns 0, -ENODATA for fewer than SHIFT_LEAST values, or -ENOMEM. */
int shift__of(const double *a, size_t a_count, const double *b, size_t b_count, struct shift *shift);

/* Two-sided probability of a standard normal value. */
double shift__p(double z);

/* Replaces probabilities by those adjusted for their number (Benjamini and Hochberg, 1995). Returns 0 or -ENOMEM. */
int shift__adjust(double *p, size_t count);

/* Median; reorders the values. 0 of none. */
double shift__median(double *values, size_t count);

/*
 * The shift that more than half of the values agree on, none further than `reach` from the lowest of them; 0 where
 * there is none, or fewer than two values. Reorders the values. *agree: whether there is one.
 */
double shift__common(double *values, size_t count, double reach, int *agree);

#endif
