// SPDX-License-Identifier: GPL-2.0-or-later
/* Parts that are merged in any order and grouping are equal bit for bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "detect/tally.h"
#include "diagnose/contribution.h"
#include "model/cells.h"
#include "model/histogram.h"
#include "sim.h"

#define PARTS 6
#define ROUNDS 20

static uint64_t seed = 3;

static unsigned below(unsigned bound)
{
	return (unsigned)(sim_random(&seed) * bound) % bound;
}

/*
 * Merges parts pairwise at random until one is left: any order, and any grouping. merge(into, from) must not change
 * `from`. Returns the index of the one that is left.
 */
static unsigned merge_at_random(void (*merge)(unsigned into, unsigned from))
{
	unsigned left[PARTS], count = PARTS;

	for (unsigned i = 0; i < PARTS; i++)
		left[i] = i;
	while (count > 1) {
		unsigned into = below(count), from = below(count);

		if (into == from)
			continue;
		merge(left[into], left[from]);
		left[from] = left[--count];
	}
	return left[0];
}

/* A bundle whose times are no whole numbers when it is divided by bins. */
static struct bundle_rec random_rec(uint32_t series)
{
	static float factors[64][BUNDLE_FACTORS];
	static unsigned next;
	struct bundle_rec rec = {
	    .n = 1 + below(50),
	    .series = series,
	    .start_ns = below(1000000),
	    .sum_ns = 1e3 + sim_random(&seed) * 1e8,
	    .reference = (float)(1e3 + sim_random(&seed) * 1e6),
	    .ratio = 1 + (float)sim_random(&seed),
	    .covered = 1,
	};

	rec.factor = factors[next % 64];
	for (int i = 0; i < VAPRO_FACTORS; i++)
		factors[next % 64][i] = below(3) ? 0 : (float)(sim_random(&seed) * 1e6);
	next++;
	rec.end_ns = rec.start_ns + (uint64_t)rec.sum_ns;
	rec.max_ns = (float)rec.sum_ns;
	return rec;
}

static int compare_keys(const void *a, const void *b)
{
	return memcmp(((const struct workload_cell *)a)->key, ((const struct workload_cell *)b)->key,
		      sizeof(((const struct workload_cell *)a)->key));
}

/* The cells in an order of their own, without handles. */
static size_t canonical(struct cells *of, struct workload_cell *out)
{
	memcpy(out, of->items, of->count * sizeof(*out));
	for (size_t i = 0; i < of->count; i++)
		out[i].handle = 0;
	qsort(out, of->count, sizeof(*out), compare_keys);
	return of->count;
}

static void cells_are_equal_in_any_order(void **state)
{
	enum { BUNDLES = 1200 };
	static struct workload_cell first[64], other[64];
	static double low[BUNDLES][VAPRO_MAGNITUDES], high[BUNDLES][VAPRO_MAGNITUDES];
	static uint64_t n[BUNDLES], sum_ns[BUNDLES], min_ns[BUNDLES];
	unsigned order[BUNDLES];
	size_t count = 0;

	(void)state;
	for (unsigned i = 0; i < BUNDLES; i++) {
		low[i][0] = exp(10 * sim_random(&seed));
		low[i][1] = below(4);
		memcpy(high[i], low[i], sizeof(high[i]));
		high[i][0] *= 1 + 0.01 * sim_random(&seed);
		n[i] = 1 + below(9);
		sum_ns[i] = below(1000000);
		min_ns[i] = below(1000);
		order[i] = i;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct cells cells;

		assert_int_equal(cells__init(&cells, 64), 0);
		for (unsigned k = 0; k < BUNDLES; k++) {
			unsigned place = k + below(BUNDLES - k), i = order[place];

			order[place] = order[k];
			order[k] = i;
			assert_int_equal(cells__add(&cells, low[i], high[i], n[i], sum_ns[i], min_ns[i], NULL), 0);
		}
		if (!round)
			count = canonical(&cells, first);
		else
			assert_int_equal(canonical(&cells, other), count);
		assert_true(cells.widened > 0);
		if (round)
			assert_memory_equal(first, other, count * sizeof(*first));
		cells__clear(&cells);
	}
}

static struct histogram histograms[PARTS];

static void merge_histograms(unsigned into, unsigned from)
{
	assert_int_equal(histogram__merge(&histograms[into], &histograms[from]), 0);
}

static void histograms_are_equal_in_any_order(void **state)
{
	struct histogram first = {0};

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned last;

		seed = 78;
		for (unsigned i = 0; i < PARTS; i++) {
			for (unsigned k = 0; k < 300; k++)
				assert_int_equal(
				    histogram__add(&histograms[i], floor(exp(18 * sim_random(&seed))), 1 + below(100)),
				    0);
		}
		seed = 2000 + round;
		last = merge_at_random(merge_histograms);
		if (!round) {
			assert_int_equal(histogram__merge(&first, &histograms[last]), 0);
		} else {
			assert_int_equal(histograms[last].count, first.count);
			assert_memory_equal(histograms[last].buckets, first.buckets,
					    first.count * sizeof(*first.buckets));
			assert_true(histograms[last].n == first.n && histograms[last].sum_ns == first.sum_ns);
		}
		for (unsigned i = 0; i < PARTS; i++)
			histogram__clear(&histograms[i]);
	}
	histogram__clear(&first);
}

/* The mean of a bucket's members may round to the next bucket, where a merge must not move them. */
static void a_merge_moves_nothing(void **state)
{
	struct histogram from = {0}, to = {0};

	(void)state;
	for (double ns = 3; ns < 1e9; ns *= 1.7) {
		assert_int_equal(histogram__add(&from, ns + 0.1, 3), 0);
		assert_int_equal(histogram__add(&from, ns + 0.7, 7), 0);
	}
	assert_int_equal(histogram__merge(&to, &from), 0);
	assert_int_equal(to.count, from.count);
	assert_memory_equal(to.buckets, from.buckets, from.count * sizeof(*from.buckets));
	histogram__clear(&from);
	histogram__clear(&to);
}

static struct tally tallies[PARTS];

static void merge_tallies(unsigned into, unsigned from)
{
	assert_int_equal(tally__merge(&tallies[into], &tallies[from]), 0);
}

static int compare_series(const void *a, const void *b)
{
	const struct tally_series *left = a, *right = b;

	return (left->series > right->series) - (left->series < right->series);
}

static int compare_causes(const void *a, const void *b)
{
	const struct tally_cause *left = a, *right = b;

	if (left->series != right->series)
		return left->series < right->series ? -1 : 1;
	return (left->part > right->part) - (left->part < right->part);
}

static void is_same_cause(const struct tally_cause *a, const struct tally_cause *b)
{
	assert_true(a->series == b->series && a->part == b->part && a->lost == b->lost);
	assert_true(a->begin == b->begin && a->end == b->end);
}

static void tallies_are_equal_in_any_order(void **state)
{
	struct tally first = {0};

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct tally *last;

		seed = 79;
		for (unsigned i = 0; i < PARTS; i++) {
			for (unsigned k = 0; k < 200; k++) {
				struct bundle_rec rec = random_rec(below(30));

				rec.n = below(2) ? 1 : rec.n;
				assert_int_equal(tally__add(&tallies[i], &rec, below(VAPRO_CLASSES),
							    below(2) ? 1 : sim_random(&seed), !below(9), i, i + k),
						 0);
			}
		}
		seed = 3000 + round;
		last = &tallies[merge_at_random(merge_tallies)];
		qsort(last->series, last->series_count, sizeof(*last->series), compare_series);
		/* numbers in the list of causes are those of its order */
		for (size_t i = 0; i < last->series_count; i++)
			last->series[i].causes = 0;
		for (size_t i = 0; i < last->cause_count; i++)
			last->causes[i].next = 0;
		qsort(last->causes, last->cause_count, sizeof(*last->causes), compare_causes);
		if (!round) {
			first = *last;
			*last = (struct tally){0};
		} else {
			/* all sums: the members up to the series */
			assert_memory_equal(last, &first, offsetof(struct tally, series));
			assert_int_equal(last->series_count, first.series_count);
			assert_memory_equal(last->series, first.series, first.series_count * sizeof(*first.series));
			assert_int_equal(last->cause_count, first.cause_count);
			for (size_t i = 0; i < first.cause_count; i++)
				is_same_cause(&last->causes[i], &first.causes[i]);
			assert_int_equal(last->worst_count, first.worst_count);
			for (unsigned i = 0; i < first.worst_count; i++)
				assert_true(last->worst[i].excess == first.worst[i].excess &&
					    last->worst[i].series == first.worst[i].series);
		}
		for (unsigned i = 0; i < PARTS; i++)
			tally__clear(&tallies[i]);
	}
	tally__clear(&first);
}

static struct contribution contributions[PARTS];

static void merge_contributions(unsigned into, unsigned from)
{
	contribution__merge(&contributions[into], &contributions[from]);
}

static void contributions_are_equal_in_any_order(void **state)
{
	struct contribution first = {0};
	struct vapro_config config;

	(void)state;
	sim_config(&config);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const struct contribution *last;

		seed = 80;
		memset(contributions, 0, sizeof(contributions));
		for (unsigned i = 0; i < PARTS; i++) {
			for (unsigned k = 0; k < 100; k++) {
				struct bundle_rec rec = random_rec(0);
				struct series_pile normal = {0};

				contribution__add(&contributions[i], &rec, VAPRO_COMPUTATION, sim_random(&seed),
						  below(2), &normal, &config);
			}
		}
		seed = 4000 + round;
		last = &contributions[merge_at_random(merge_contributions)];
		if (!round)
			first = *last;
		assert_memory_equal(last->impact, first.impact, sizeof(first.impact));
		assert_memory_equal(last->duration, first.duration, sizeof(first.duration));
		assert_memory_equal(last->counted, first.counted, sizeof(first.counted));
		assert_true(last->abnormal == first.abnormal && last->normal == first.normal &&
			    last->dur == first.dur && last->ref == first.ref);
	}
	assert_true(first.abnormal > 0 && first.normal > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(cells_are_equal_in_any_order),
	    cmocka_unit_test(histograms_are_equal_in_any_order),
	    cmocka_unit_test(a_merge_moves_nothing),
	    cmocka_unit_test(tallies_are_equal_in_any_order),
	    cmocka_unit_test(contributions_are_equal_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
