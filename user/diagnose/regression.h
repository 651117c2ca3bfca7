/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which counts cost time (VAPRO (PPoPP'22) section 4.2): least squares of duration on factors that are
 * counts, after the Farrar-Glauber test removed collinear ones. It works on centred
 * co-moments, which merge: rows of several ranks, windows or hosts give the result that all rows
 * together would. A row is a fragment, or the mean of a bundle weighted by its fragments; degrees of
 * freedom count rows.
 */
#ifndef VAPRO_REGRESSION_H
#define VAPRO_REGRESSION_H

#include <stdbool.h>
#include <stdint.h>

enum { REGRESSION_FACTORS = 16 }; /* most factors of a regression */
#define REGRESSION_ROWS_BEYOND 12 /* rows needed beyond the number of factors */

/* Column 0 is the duration, factor j is column j + 1. */
struct regression_moments {
	uint32_t factors;
	uint64_t rows;
	double weight;
	double mean[REGRESSION_FACTORS + 1];
	double co[REGRESSION_FACTORS + 1][REGRESSION_FACTORS + 1]; /* sums of weighted products about the means */
};

enum regression_outcome {
	REGRESSION_FITTED,
	REGRESSION_TOO_FEW,	/* rows: fewer than factors + REGRESSION_ROWS_BEYOND */
	REGRESSION_NO_VARIANCE, /* the duration has none: nothing to explain */
	REGRESSION_NO_FACTOR,	/* no factor varies */
};

enum regression_fate {
	REGRESSION_REMAINING,
	REGRESSION_CONSTANT,
	REGRESSION_COLLINEAR, /* removed: the factors inseparable from it imply its coefficient */
};

struct regression_factor {
	enum regression_fate fate;
	double coefficient; /* duration per unit; implied where it was removed, NAN where nothing implies it */
	double error;	    /* standard error; NAN where it was not fitted */
	double t, p;	    /* two-sided; NAN where it was not fitted */
	double vif;	    /* variance inflation when it was removed, or at the end; INFINITY where singular */
	bool significant;
	uint32_t shared;     /* bit k: cannot be distinguished from remaining factor k */
	uint32_t removed_as; /* 1 = first; 0 = remains */
};

struct regression_result {
	enum regression_outcome outcome;
	double intercept, intercept_p;
	double r2, sigma;
	double chi2, chi2_p; /* test of the remaining set; NAN where the set has fewer than two */
	struct regression_factor factor[REGRESSION_FACTORS];
};

/* Parameters of VAPRO (PPoPP'22) section 4.2, and of what it leaves open. */
struct regression_options {
	double alpha;	/* level of all tests: 0.05 */
	double vif_min; /* least inflation for a removal: 10; 0 = the test alone */
	double partner; /* least standardised auxiliary coefficient that shares a removed one: 0.1 */
};

extern const struct regression_options regression_defaults;

/* Starts empty moments of so many factors (at most REGRESSION_FACTORS). */
void regression__begin(struct regression_moments *moments, uint32_t factors);

/* Adds a row. Rows that are not finite, or without weight, are left out: returns false. */
bool regression__add(struct regression_moments *moments, double duration, const double *factors, double weight);

/* Adds all rows of `from`, which has as many factors. */
void regression__merge(struct regression_moments *moments, const struct regression_moments *from);

/* Fits the factors. Every outcome is stated; numbers that do not exist are NAN only where the struct says so. */
void regression__fit(const struct regression_moments *moments, const struct regression_options *options,
		     struct regression_result *result);

#endif
