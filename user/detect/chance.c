// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/chance.h"

#include <math.h>
#include <stdlib.h>

#define SIGMAS 6	/* standard deviations of a mean that are no chance, among many rows and windows */
#define OTHERS_LEAST 20 /* fragments of other rows */
#define AROUND 10	/* bins on either side of a begin, or ... */
#define FRAGMENTS 3	/* ... so many computations */
#define SHARP 0.5	/* share of the whole slowdown that a sharp begin has at once */

/* The fragments of a workload on rows outside a variance. */
struct others {
	double n, ns, squares;
};

struct share {
	uint32_t workload;
	double n, ns;
};

static int compare_shares(const void *a, const void *b)
{
	const struct share *left = a, *right = b;

	return (left->workload > right->workload) - (left->workload < right->workload);
}

static void add_bucket(struct others *others, const struct histogram_bucket *bucket)
{
	others->n += bucket->n;
	others->ns += bucket->sum_ns;
	others->squares += bucket->sum_ns * bucket->sum_ns / bucket->n;
}

static struct others others_of(const struct series_book *book, uint32_t workload, const unsigned char *in)
{
	struct others others = {0};

	for (uint32_t i = book->workloads[workload].series; i != SERIES_NONE; i = book->series[i].next) {
		const struct histogram *cpu = &book->series[i].cpu;

		for (size_t b = 0; !in[book->series[i].row] && b < cpu->count; b++)
			add_bucket(&others, &cpu->buckets[b]);
	}
	return others;
}

/* The computation of a variance by workload. NULL when out of memory. */
static struct share *shares_of(const struct variance *variance, const struct evidence_input *input, size_t *count)
{
	const struct tally *tally = &variance->total;
	struct share *shares = calloc(tally->series_count + 1, sizeof(*shares));

	*count = 0;
	for (size_t i = 0; shares && i < tally->series_count; i++) {
		const struct tally_series *entry = &tally->series[i];
		const struct series *series = &input->series->series[entry->series];

		if (series->class == VAPRO_COMPUTATION && entry->n > 0 && entry->lost > 0)
			shares[(*count)++] = (struct share){series->workload, entry->n, entry->net};
	}
	if (*count)
		qsort(shares, *count, sizeof(*shares), compare_shares);
	return shares;
}

bool chance__explains(const struct variance *variance, const struct evidence_input *input)
{
	unsigned char *in = calloc(input->job->row_count + 1, 1);
	struct share *shares;
	double excess = 0, variances = 0;
	size_t count;

	shares = shares_of(variance, input, &count);
	for (size_t i = 0; in && i < variance->row_count; i++)
		in[variance->rows[i]] = 1;
	for (size_t i = 0, next; in && shares && i < count; i = next) {
		struct others others = others_of(input->series, shares[i].workload, in);
		double n = 0, ns = 0, mean = others.n > 0 ? others.ns / others.n : 0;

		for (next = i; next < count && shares[next].workload == shares[i].workload; next++) {
			n += shares[next].n;
			ns += shares[next].ns;
		}
		if (others.n < OTHERS_LEAST)
			continue;
		excess += ns - n * mean;
		variances += n * fmax(0, others.squares / others.n - mean * mean);
	}
	free(in);
	free(shares);
	return variances > 0 && excess < SIGMAS * sqrt(variances);
}

/* Performance of a variance's rows in bins [from, to); NAN where nothing is known. */
static double performance_in(const struct variance *variance, const struct heatmap *map, uint64_t from, uint64_t to)
{
	double dur = 0, lost = 0;

	for (size_t i = 0; i < variance->row_count; i++) {
		for (uint64_t bin = from; bin < to; bin++) {
			struct cell cell;

			if (!heatmap__has(map, bin))
				continue;
			cell = heatmap__cell(map, variance->rows[i], bin, VAPRO_COMPUTATION);
			dur += cell__dur(&cell);
			lost += cell__lost(&cell);
		}
	}
	return dur > 0 ? 1 - lost / dur : NAN;
}

bool chance__gradual(const struct variance *variance, const struct evidence_input *input)
{
	const struct heatmap *map = input->map;
	uint64_t around = (uint64_t)(FRAGMENTS * map->fragment_ns / VAPRO_BIN_NS), begin = variance->begin;
	double before, after, whole;

	around = around > AROUND ? around : AROUND;
	if (begin < map->begin + around)
		return false;
	/* the first bin may be half slow */
	before = performance_in(variance, map, begin - around, begin);
	after = performance_in(variance, map, begin + 1, begin + 1 + around);
	whole = 1 - performance_in(variance, map, begin, variance->end);
	return whole > 0 && before - after < SHARP * whole; /* not where one of them is not known */
}
