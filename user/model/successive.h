/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of the scatter of a series is between successive computations. Several workloads in one state alternate from
 * computation to computation: those of one moment scatter as much as all do. A host that is slow for a second, or a
 * disturbance, makes durations differ from one moment to another, and those of one moment are alike.
 *
 * A moment is at least 5 successive computations of one 200 ms bin or, where computations are long, of the next ones.
 * Computations that the kernel interrupted are not entered: another task may have spoilt their caches. Scatter is the
 * variance of the logarithm of durations.
 */
#ifndef VAPRO_SUCCESSIVE_H
#define VAPRO_SUCCESSIVE_H

#include "model/histogram.h"

#include <stdint.h>

/* A plain value; zero is empty. */
struct successive {
	double n, sum; /* complete moments: computations, and those times the variance of each moment */
	/* The moment being filled: computations, mean of their logarithms, and sum of the squares of what differs from
	 * it. */
	float open_n, open_mean, open_squares;
	uint32_t bin; /* its first bin, of which the low 32 bits suffice */
};

/* Adds n computations of mean_ns each, in a bin of VAPRO_BIN_NS, in time order. */
void successive__add(struct successive *successive, uint64_t bin, double mean_ns, double n);

/* The number of computations that were added. */
static inline double successive__entered(const struct successive *successive)
{
	return successive->n + successive->open_n;
}

/*
 * Returns the part of the scatter of all computations (a histogram of the same durations) that is between successive
 * ones, 0..1; 1 where that is not known.
 */
double successive__share(const struct successive *successive, const struct histogram *all);

#endif
