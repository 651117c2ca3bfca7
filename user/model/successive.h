/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of the scatter of a series is between successive computations. Several workloads in one state alternate from
 * computation to computation, so that the durations of one moment scatter as much as all durations do. On a host that
 * is slow for a second, durations differ from one moment to another, and are alike within a moment.
 *
 * A moment is at least BATCH_MEMBERS successive computations of one 200 ms bin or, where computations are long, of the
 * next ones. Computations that other tasks interrupted are not entered, since those tasks may have displaced cached
 * data. Scatter is the variance of the logarithm of durations.
 */
#ifndef VAPRO_SUCCESSIVE_H
#define VAPRO_SUCCESSIVE_H

#include "model/histogram.h"

#include <stdint.h>

/* A plain value; zero is empty. */
struct successive {
	/* Complete moments: the number of their computations; the sum of each moment's number times its variance. */
	double n, sum;
	/* The moment being filled: number, mean of the logarithms, and sum of the squared differences from that mean.
	 */
	float open_n, open_mean, open_squares;
	uint32_t bin; /* low 32 bits of its first bin */
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
