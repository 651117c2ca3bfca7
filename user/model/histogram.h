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

/* Adds n values of sum_ns in all to a bucket: one histogram has buckets of one kind. Returns 0 or -ENOMEM. */
int histogram__add_to(struct histogram *histogram, uint32_t index, double n, double sum_ns);

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
enum { HISTOGRAM_BUCKETS = (64 - HISTOGRAM_OCTAVE_BITS + 1) << HISTOGRAM_OCTAVE_BITS }; /* of all times */

/* The bucket of a value where an octave has 2^bits of them. */
static inline uint32_t histogram__index_of(double ns, unsigned bits)
{
	uint64_t v = ns < 1 ? 0 : (uint64_t)ns;
	uint32_t exponent;

	if (v < 1ULL << bits)
		return (uint32_t)v;
	exponent = 63 - (uint32_t)__builtin_clzll(v) - bits;
	return ((exponent + 1) << bits) + (uint32_t)(v >> exponent & ((1ULL << bits) - 1));
}

static inline uint32_t histogram__index(double ns)
{
	return histogram__index_of(ns, HISTOGRAM_OCTAVE_BITS);
}

/* Logarithmic width of a norm cell: counts divided by it are comparable across the borders of octaves. */
double histogram__log_width(uint32_t cell);

#endif
