/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Durations of one state as a sparse log-linear histogram: 32 buckets per octave, four to each of
 * the collector's norm cells, whose borders are borders here, so that the mean of a merged bundle
 * lands in the cell that its members came from. A bucket keeps an exact count and an exact sum
 * (NoiseMiner section 4.2 keeps an average per bin), hence means of groups are exact. A plain value;
 * zero is empty; histogram__clear frees.
 */
#ifndef VAPRO_HISTOGRAM_H
#define VAPRO_HISTOGRAM_H

enum { HISTOGRAM_PER_CELL = 4 }; /* buckets of a norm cell: index / HISTOGRAM_PER_CELL is its number */

#include "base/archive.h"

#include <stddef.h>
#include <stdint.h>

struct histogram_bucket {
	uint32_t index;
	double n, sum_ns;
};

struct histogram {
	struct histogram_bucket *buckets; /* ascending by index, none empty */
	size_t count, capacity;
	double n, sum_ns;
};

/* Adds n fragments of mean_ns each. Returns 0 or -ENOMEM. */
int histogram__add(struct histogram *histogram, double mean_ns, double n);

/*
 * Adds all of from. Sums of whole numbers are exact up to 2^53, and then equal in any order of merges. Returns 0 or
 * -ENOMEM.
 */
int histogram__merge(struct histogram *histogram, const struct histogram *from);
/* Writes or reads the buckets; n and sum_ns are members of the owner's table. */
void histogram__archive(struct archive *archive, struct histogram *histogram);
void histogram__clear(struct histogram *histogram);

enum { HISTOGRAM_OCTAVE_BITS = 5 }; /* buckets of an octave, as a power of two: 32, 2 to 3 % each */
#define HISTOGRAM_PER_OCTAVE (1 << HISTOGRAM_OCTAVE_BITS)

static inline uint32_t histogram__index(double ns)
{
	uint64_t v = ns < 1 ? 0 : (uint64_t)ns;
	uint32_t exponent;

	if (v < HISTOGRAM_PER_OCTAVE)
		return (uint32_t)v;
	exponent = 63 - (uint32_t)__builtin_clzll(v) - HISTOGRAM_OCTAVE_BITS;
	return (exponent + 1) * HISTOGRAM_PER_OCTAVE + (uint32_t)(v >> exponent & (HISTOGRAM_PER_OCTAVE - 1));
}

/* Logarithmic width of a norm cell: counts divided by it are comparable across the borders of octaves. */
double histogram__log_width(uint32_t cell);

#endif
