/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moments against exact sums of fractions, and against formulas: the bound of the kurtosis, a mixture of two values.
 * Distributions through buckets, batches as they are filled, and parts of the variance.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/batches.h"
#include "model/variation.h"

/* Knuth's linear congruential generator: 24 bits as a number in [0, 1). */
static double draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 40) / 16777216;
}

static void assert_near(double value, double expected, double share)
{
	if (!(fabs(value - expected) <= share * fabs(expected)))
		fail_msg("%.12g, expected %.12g", value, expected);
}

/* Adds a batch of five equal fragments, whose mean it is. */
static void add_batch(struct variation *variation, uint64_t bin, double ns)
{
	const struct variation_bundle bundle = {.bin = bin, .n = BATCH_MEMBERS, .time_ns = 5 * ns, .ns = 5 * ns};

	assert_int_equal(variation__add(variation, &bundle), 0);
}

/* 1,000 values of seed 20261129; the expected ones are of sums of fractions and of a sorted list, numpy has the same. */
static void test_exact(void **state)
{
	struct variation variation = {.fragments = 0};
	struct moments moments = {0};
	uint64_t seed = 20261129;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		double u = draw(&seed), value = 1000 + 1000 * u * u * u;

		moments__add(&moments, value);
		add_batch(&variation, (uint64_t)i, value);
	}
	assert_int_equal(variation__close(&variation), 0);
	assert_near(moments.mean, 1249.318475549417, 1e-9);
	assert_near(sqrt(moments.m2 / moments.n), 280.88148465412394, 1e-9);
	assert_near(moments__skewness(&moments), 1.0600141536493424, 1e-9);
	assert_near(moments__kurtosis(&moments), 2.9383204758529122, 1e-9);
	assert_near(moments__rv(&variation.moments), 2.9383204758529122, 1e-9);
	assert_near(moments.least, 1000.0000000250201, 1e-12);
	assert_near(moments.most, 1997.6138403463467, 1e-12);
	assert_near(variation__quantile(&variation, 0.05), 1000.1372210945393, 0.01);
	assert_near(variation__quantile(&variation, 0.5), 1134.4424050338657, 0.01);
	assert_near(variation__quantile(&variation, 0.95), 1861.9197872240527, 0.01);
	assert_near(variation__quantile(&variation, 0), moments.least, 1e-12);
	assert_near(variation__quantile(&variation, 1), moments.most, 1e-12);
	variation__clear(&variation);
}

/* The kurtosis of n values is at most n - 2 + 1 / (n - 1): one value beside equal ones. The sign is the skewness's. */
static void test_bounds(void **state)
{
	(void)state;
	for (int n = 2; n < 30; n++) {
		struct moments slow = {0}, fast = {0};

		for (int i = 0; i < n; i++) {
			moments__add(&slow, i == 1 ? 3 : 2);
			moments__add(&fast, i == 1 ? 1 : 2);
		}
		assert_near(moments__kurtosis(&slow), n - 2 + 1.0 / (n - 1), 1e-9);
		if (n > 2)
			assert_near(moments__rv(&fast), -moments__rv(&slow), 1e-9);
	}
}

/* Of two values with shares p and 1 - p the kurtosis is 1 / (p (1 - p)) - 3; batches of k lower it towards 3. */
static void test_mixture(void **state)
{
	const int sizes[] = {1, 5, 20};
	uint64_t seed = 7;

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		double k = sizes[s], p = 0.01, expected = 3 + (1 / (p * (1 - p)) - 6) / k;
		struct moments moments = {0};

		for (int i = 0; i < 400000; i++) {
			double sum = 0;

			for (int j = 0; j < sizes[s]; j++)
				sum += draw(&seed) < p ? 1.5 : 1;
			moments__add(&moments, sum / k);
		}
		assert_near(moments__rv(&moments), expected, 0.06);
	}
}

static void test_equal_values(void **state)
{
	struct variation variation = {.fragments = 0};

	(void)state;
	assert_true(isnan(variation__quantile(&variation, 0.5)));
	for (int i = 0; i < 40; i++)
		add_batch(&variation, (uint64_t)i, 777.25);
	assert_int_equal(variation__close(&variation), 0);
	assert_true(isnan(moments__rv(&variation.moments)));
	for (int i = 0; i <= 10; i++)
		assert_true(variation__quantile(&variation, i / 10.0) == 777.25);
	variation__clear(&variation);
}

/* A batch is closed by the first fragment of a later bin, and dropped at the end where it has too few. */
static void test_batches(void **state)
{
	struct variation variation = {.fragments = 0};
	struct variation_bundle bundle = {.bin = 3, .n = 3, .time_ns = 30, .ns = 30};

	(void)state;
	assert_int_equal(variation__add(&variation, &bundle), 0);
	bundle.bin = 4; /* too few: it goes on */
	bundle.ns = 50;
	assert_int_equal(variation__add(&variation, &bundle), 0);
	assert_true(variation.fragments == 0);
	assert_int_equal(variation__add(&variation, &bundle), 0); /* the same bin */
	bundle.bin = 5;
	assert_int_equal(variation__add(&variation, &bundle), 0);
	assert_true(variation.fragments == 9);
	assert_int_equal(variation__close(&variation), 0);
	assert_true(variation.moments.n == 1 && variation.fragments == 9);
	assert_near(variation.moments.mean, 130.0 / 9, 1e-12);
	assert_true(variation.time_ns == 120);
	variation__clear(&variation);
}

/* Fragments of a second are batches by themselves; of shorter ones five are. */
static void test_long_fragments(void **state)
{
	struct variation variation = {.fragments = 0};

	(void)state;
	for (int i = 0; i < 12; i++) {
		const struct variation_bundle bundle = {
		    .bin = 10 * (uint64_t)i, .n = 1, .time_ns = 2e9, .ns = 2e9 + i * 1e6};

		assert_int_equal(variation__add(&variation, &bundle), 0);
	}
	assert_int_equal(variation__close(&variation), 0);
	assert_true(variation.moments.n == 12 && variation.fragments == 12);
	assert_near(variation.moments.m2, 143 * 1e12, 1e-9); /* n (n^2 - 1) / 12 */
	variation__clear(&variation);
	for (int i = 0; i < 12; i++) {
		const struct variation_bundle bundle = {.bin = 10 * (uint64_t)i, .n = 1, .time_ns = 9e8, .ns = 9e8};

		assert_int_equal(variation__add(&variation, &bundle), 0);
	}
	assert_int_equal(variation__close(&variation), 0);
	assert_true(variation.moments.n == 2 && variation.fragments == 10);
	variation__clear(&variation);
}

/* Fills variations whose time is a part of software, of which every third batch has some, and a rest that varies. */
static void fill(struct variation *variations, size_t count)
{
	uint64_t seed = 3;

	for (int i = 0; i < 3000; i++) {
		double software = i % 3 ? 0 : 300 * draw(&seed), rest = 1000 + 100 * draw(&seed);
		double part[VARIATION_PARTS] = {
		    [VARIATION_SOFTWARE] = 10 * software, [VARIATION_FREQUENCY] = 10 * rest};
		struct variation_bundle bundle = {.bin = (uint64_t)i,
						  .n = 10,
						  .time_ns = 10 * (software + rest),
						  .ns = 10 * (software + rest),
						  .counted = i % 2,
						  .part = part};

		assert_int_equal(variation__add(&variations[(size_t)i % count], &bundle), 0);
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(variation__close(&variations[i]), 0);
}

/* Writes a variation, and reads it into another one, which is empty. */
static void copy(struct variation *from, struct variation *into)
{
	struct archive *archive = archive__new(), *read;
	size_t size;
	const uint8_t *data;

	assert_non_null(archive);
	variation__archive(archive, from);
	assert_int_equal(archive__error(archive), 0);
	data = archive__data(archive, &size);
	read = archive__open(data, size, 1 << 20);
	assert_non_null(read);
	variation__archive(read, into);
	archive__end(read);
	assert_int_equal(archive__error(read), 0);
	archive__free(read);
	archive__free(archive);
}

static void assert_same(const struct variation *variation, const struct variation *other)
{
	assert_memory_equal(&variation->moments, &other->moments, sizeof(variation->moments));
	assert_memory_equal(variation->part_mean, other->part_mean, sizeof(variation->part_mean));
	assert_memory_equal(variation->part_with, other->part_with, sizeof(variation->part_with));
	assert_true(variation->fragments == other->fragments && variation->counted == other->counted);
	assert_int_equal(variation->batches.count, other->batches.count);
	for (size_t i = 0; i < variation->batches.count; i++) {
		assert_int_equal(variation->batches.buckets[i].index, other->batches.buckets[i].index);
		assert_true(variation->batches.buckets[i].n == other->batches.buckets[i].n);
		assert_true(variation->batches.buckets[i].sum_ns == other->batches.buckets[i].sum_ns);
	}
}

/* Batches that are added together are what they are one by one, whenever parts begin, and from a checkpoint on. */
static void test_waiting(void **state)
{
	const int parts_begin = VARIATION_WAITING + 3, parts_end = 2 * VARIATION_WAITING + 2;

	(void)state;
	for (int stopped = 1; stopped < 4 * VARIATION_WAITING; stopped++) {
		struct variation once = {.fragments = 0}, waiting = {.fragments = 0}, read = {.fragments = 0};
		struct variation *at = &waiting;
		uint64_t seed = 7;

		for (int i = 0; i < 4 * VARIATION_WAITING; i++) {
			double ns = 5000 + 1000 * draw(&seed);
			const double part[VARIATION_PARTS] = {[VARIATION_SOFTWARE] = ns / 3, [VARIATION_STALLS] = 7};
			const struct variation_bundle bundle = {
			    .bin = (uint64_t)i,
			    .n = 5,
			    .time_ns = ns,
			    .ns = ns,
			    .counted = i % 3,
			    .part = i >= parts_begin && i < parts_end ? part : NULL,
			};

			assert_int_equal(variation__add(&once, &bundle), 0);
			assert_int_equal(variation__add_waiting(&once), 0);
			if (i == stopped) {
				copy(&waiting, &read);
				at = &read;
			}
			assert_int_equal(variation__add(at, &bundle), 0);
		}
		assert_int_equal(variation__close(&once), 0);
		assert_int_equal(variation__close(at), 0);
		assert_true(at->moments.n == 4 * VARIATION_WAITING && at->part_with[VARIATION_SOFTWARE] != 0);
		assert_same(at, &once);
		variation__clear(&once);
		variation__clear(&waiting);
		variation__clear(&read);
	}
}

/* The covariances of all parts add up to the variance. */
static void test_parts(void **state)
{
	struct variation variation = {.fragments = 0};
	/* variances: of a third of uniform 0..300, and of uniform 0..100 */
	double software = 300 * 300 / 9.0 - 50 * 50, rest = 100 * 100 / 12.0;

	(void)state;
	fill(&variation, 1);
	assert_near(variation.part_with[VARIATION_SOFTWARE] + variation.part_with[VARIATION_FREQUENCY],
		    variation.moments.m2, 1e-9);
	assert_near(variation.part_with[VARIATION_SOFTWARE] / variation.moments.m2, software / (software + rest), 0.03);
	assert_near(variation.counted / variation.fragments, 0.5, 1e-9);
	variation__clear(&variation);
}

/* Sums of disjoint batches are the sum of all, in any order. */
static void test_merge(void **state)
{
	struct variation all = {.fragments = 0}, parts[7] = {{.fragments = 0}};

	(void)state;
	fill(&all, 1);
	fill(parts, 7);
	for (size_t first = 0; first < 7; first += 3) {
		struct variation sum = {.fragments = 0};

		for (size_t i = 0; i < 7; i++)
			assert_int_equal(variation__merge(&sum, &parts[(first + 5 * i) % 7]), 0);
		assert_near(sum.moments.n, all.moments.n, 0);
		assert_near(sum.moments.mean, all.moments.mean, 1e-12);
		assert_near(sum.moments.m2, all.moments.m2, 1e-9);
		assert_near(sum.moments.m3, all.moments.m3, 1e-7);
		assert_near(sum.moments.m4, all.moments.m4, 1e-9);
		assert_near(sum.moments.least, all.moments.least, 0);
		assert_near(sum.moments.most, all.moments.most, 0);
		for (int i = 0; i < VARIATION_STALLS; i++) {
			assert_near(sum.part_mean[i], all.part_mean[i], 1e-9);
			assert_near(sum.part_with[i], all.part_with[i], 1e-9);
		}
		assert_near(sum.time_ns, all.time_ns, 1e-12);
		for (double share = 0; share <= 1; share += 0.125)
			assert_near(variation__quantile(&sum, share), variation__quantile(&all, share), 1e-9);
		variation__clear(&sum);
	}
	for (size_t i = 0; i < 7; i++)
		variation__clear(&parts[i]);
	variation__clear(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_exact),	 cmocka_unit_test(test_bounds),	 cmocka_unit_test(test_mixture),
	    cmocka_unit_test(test_equal_values), cmocka_unit_test(test_batches), cmocka_unit_test(test_waiting),
	    cmocka_unit_test(test_parts),	 cmocka_unit_test(test_merge),	 cmocka_unit_test(test_long_fragments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
