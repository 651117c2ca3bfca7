// SPDX-License-Identifier: GPL-2.0-or-later
/* Batches of fragments, and the groups that references come from: model/batches.h. */
#include "model/batches.h"
#include "model/histogram.h"
#include "near.h"
#include "sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 5 /* bins */

static void add(struct batches *batches, uint64_t bin, uint32_t n, double ns)
{
	assert_int_equal(batches__add(batches, bin, n, ns), 0);
}

/* Adds one batch of five fragments of ns each, in a bin of its own. */
static void add_batch(struct batches *batches, uint64_t bin, double ns)
{
	add(batches, bin, BATCH_MEMBERS, BATCH_MEMBERS * ns);
	assert_int_equal(batches__close(batches), 0);
}

static struct batch_bucket only(const struct batches *batches)
{
	assert_int_equal(batches->count, 1);
	return batches->items[0];
}

/* A bin with enough members is a batch by itself, whatever their number; a bin with fewer joins the next bin. */
static void test_members(void **state)
{
	struct batches batches = {0};

	(void)state;
	add(&batches, 10, 4, 4e6);
	add(&batches, 10, 8, 8e6);
	assert_int_equal(batches__total(&batches), 0);
	add(&batches, 11, 1, 1e6);
	assert_int_equal(batches__total(&batches), 1);
	assert_near(only(&batches).sum_ns, 1e6, 1);
	/* 1 + 3 + 1 over three bins: the fifth makes the batch, and the next bin begins another */
	add(&batches, 12, 3, 3e6);
	add(&batches, 14, 1, 1e6);
	add(&batches, 14, 2, 2e6);
	assert_int_equal(batches__total(&batches), 1);
	add(&batches, 15, 1, 7e6);
	assert_int_equal(batches__total(&batches), 2);
	assert_near(only(&batches).sum_ns, 2e6, 1);
	/* the member of 7 ms is alone: no batch */
	assert_int_equal(batches__close(&batches), 0);
	assert_int_equal(batches__total(&batches), 2);
	/* nor is that member in the next batch */
	add(&batches, 21, 5, 5e6);
	assert_int_equal(batches__close(&batches), 0);
	assert_near(only(&batches).sum_ns, 3e6, 1);
	batches__empty(&batches);
	assert_int_equal(batches__total(&batches), 0);
	assert_true(batches__median(&batches) == 0);
	batches__clear(&batches);
}

/* The mean of a batch, not a member, decides where it goes: one lucky fragment is a fifth of one batch. */
static void test_mean_of_members(void **state)
{
	struct batches batches = {0};
	struct batch_group groups[BATCH_GROUPS];

	(void)state;
	for (uint64_t bin = 0; bin < 50; bin++) {
		add(&batches, bin, 1, bin == 20 ? 1e5 : 1e6);
		add(&batches, bin, 4, 4e6);
	}
	assert_int_equal(batches__close(&batches), 0);
	assert_int_equal(batches.count, 2);
	assert_int_equal(batches.items[0].index, histogram__index(0.82e6));
	assert_int_equal(batches.items[0].n, 1);
	/* a group of one batch, without a reference */
	assert_int_equal(batches__groups(&batches, groups), 2);
	assert_int_equal(groups[0].n, 1);
	assert_int_equal(groups[1].n, 49);
	assert_near(groups[1].centre_ns, 1e6, 1e3);
	assert_near(batches__median(&batches), 1e6, 1e3);
	batches__clear(&batches);
}

/* Seconds of the batches that ended first and last, also where they are added in another order. */
static void test_first_and_last(void **state)
{
	static const uint64_t seconds[] = {500, 7, 90, 12};
	struct batches batches = {0}, pool = {0};
	struct batch_group groups[BATCH_GROUPS];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		add_batch(&batches, seconds[i] * SECOND + i, 1e6);
	assert_int_equal(only(&batches).first, 7);
	assert_int_equal(only(&batches).last, 500);
	/* a batch over several bins belongs to its last bin */
	add(&batches, 600 * SECOND, 2, 2e6);
	add(&batches, 610 * SECOND, 3, 3e6);
	assert_int_equal(batches__close(&batches), 0);
	assert_int_equal(only(&batches).last, 610);
	assert_int_equal(batches__pool(&pool, &batches, 3), 0);
	batches__sort(&pool);
	assert_int_equal(batches__groups(&pool, groups), 1);
	assert_int_equal(groups[0].first, 7);
	assert_int_equal(groups[0].last, 610);
	batches__clear(&pool);
	batches__clear(&batches);
}

/* A pool has the batches of all rows, each in its group. */
static void test_rows(void **state)
{
	struct batches turbo = {0}, usual = {0}, pool = {0};
	struct batch_group groups[BATCH_GROUPS];

	(void)state;
	for (uint64_t bin = 0; bin < 40; bin++) {
		add_batch(&turbo, bin, 0.8e6);
		add_batch(&usual, bin, 1e6);
	}
	assert_int_equal(batches__pool(&pool, &usual, 4), 0);
	assert_int_equal(batches__pool(&pool, &turbo, 9), 0);
	assert_int_equal(batches__pool(&pool, &usual, 5), 0);
	batches__sort(&pool);
	assert_int_equal(batches__groups(&pool, groups), 2);
	assert_int_equal(groups[0].n, 40);
	assert_int_equal(groups[1].n, 80);
	batches__clear(&turbo);
	batches__clear(&usual);
	batches__clear(&pool);
}

#define HOSTS 12

/* Fills batches of hosts with a few ranks each. */
static void fill_hosts(struct batches *hosts, uint64_t *seed)
{
	for (int host = 0; host < HOSTS; host++) {
		for (uint64_t bin = 0; bin < 200; bin++) {
			double level = host == 3 || bin % 7 == 0 ? 1.18 : 1;

			add_batch(&hosts[host], bin + 1000 * (uint64_t)host,
				  1e6 * level * (1 + 0.02 * sim_gauss(seed)));
		}
	}
}

static void shuffle(unsigned *order, unsigned count, uint64_t *seed)
{
	for (unsigned i = count; i > 1; i--) {
		unsigned other = (unsigned)(sim_random(seed) * i), swapped = order[i - 1];

		order[i - 1] = order[other];
		order[other] = swapped;
	}
}

/* Buckets add in any order, so hosts may merge what they know: the groups are the same. */
static void test_any_order(void **state)
{
	struct batches hosts[HOSTS] = {0};
	struct batch_group first[BATCH_GROUPS], groups[BATCH_GROUPS];
	unsigned order[HOSTS], count = 0;
	uint64_t seed = 11;

	(void)state;
	fill_hosts(hosts, &seed);
	for (unsigned i = 0; i < HOSTS; i++)
		order[i] = i;
	for (int round = 0; round < 30; round++) {
		struct batches pool = {0};
		unsigned found;

		for (unsigned i = 0; i < HOSTS; i++)
			assert_int_equal(batches__pool(&pool, &hosts[order[i]], order[i]), 0);
		batches__sort(&pool);
		assert_int_equal(batches__total(&pool), HOSTS * 200);
		for (uint32_t i = 1; i < pool.count; i++)
			assert_true(pool.items[i - 1].index < pool.items[i].index);
		found = batches__groups(&pool, groups);
		if (!round) {
			memcpy(first, groups, sizeof(first));
			count = found;
			assert_int_equal(count, 2);
		}
		assert_int_equal(found, count);
		for (unsigned g = 0; g < count; g++) {
			assert_near(groups[g].centre_ns, first[g].centre_ns, 1e-3);
			assert_int_equal(groups[g].n, first[g].n);
			assert_int_equal(groups[g].first, first[g].first);
			assert_int_equal(groups[g].last, first[g].last);
		}
		shuffle(order, HOSTS, &seed);
		batches__clear(&pool);
	}
	for (int i = 0; i < HOSTS; i++)
		batches__clear(&hosts[i]);
}

/* Adds batches of five scattered fragments of ns each. */
static void add_jitter(struct batches *batches, uint64_t *seed, uint64_t *bin, int count, double ns, double jitter)
{
	for (int i = 0; i < count; i++, ++*bin) {
		for (int k = 0; k < BATCH_MEMBERS; k++)
			add(batches, *bin, 1, ns * (1 + jitter * sim_gauss(seed)));
	}
	assert_int_equal(batches__close(batches), 0);
}

/* Jitter is one group around what is typical, wherever that lies relative to the borders of buckets. */
static void test_jitter(void **state)
{
	(void)state;
	for (int percent = 1; percent <= 6; percent++) {
		for (uint64_t seed = 1; seed <= 25; seed++) {
			uint64_t random = 100 * seed + (uint64_t)percent, bin = 0;
			double ns = 1e6 * pow(2, (double)seed / 19);
			struct batches batches = {0};
			struct batch_group groups[BATCH_GROUPS];
			unsigned count;

			add_jitter(&batches, &random, &bin, 2500, ns, 0.01 * percent);
			count = batches__groups(&batches, groups);
			if (count != 1)
				fail_msg("%d %%, seed %d: %u groups", percent, (int)seed, count);
			if (fabs(groups[0].centre_ns / ns - 1) > 0.005)
				fail_msg("%d %%, seed %d: %g", percent, (int)seed, groups[0].centre_ns / ns);
			assert_int_equal(groups[0].n, 2500);
			batches__clear(&batches);
		}
	}
}

/* Two levels that a fault of the least ratio makes are two groups, also where one of them is rare. */
static void test_two_levels(void **state)
{
	static const struct {
		int low, high;
		double jitter;
	} diagnoses[] = {{400, 400, 0.01}, {400, 400, 0.05}, {60, 1200, 0.02}, {60, 1200, 0.04}, {1200, 60, 0.02}};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		for (uint64_t seed = 1; seed <= 20; seed++) {
			uint64_t random = seed, bin = 0;
			double ns = 1e6 * pow(2, (double)seed / 23);
			struct batches batches = {0};
			struct batch_group groups[BATCH_GROUPS];
			unsigned count;

			add_jitter(&batches, &random, &bin, diagnoses[c].low, ns, diagnoses[c].jitter);
			add_jitter(&batches, &random, &bin, diagnoses[c].high, 1.18 * ns, diagnoses[c].jitter);
			count = batches__groups(&batches, groups);
			if (count != 2)
				fail_msg("case %d, seed %d: %u groups", (int)c, (int)seed, count);
			assert_near(groups[0].centre_ns / ns, 1, 0.01);
			assert_near(groups[1].centre_ns / ns, 1.18, 0.012);
			assert_near(groups[0].n, diagnoses[c].low, 0.1 * diagnoses[c].low);
			batches__clear(&batches);
		}
	}
}

/* Few batches near the others are chance, below and above; from some on they are a group. */
static void test_tails(void **state)
{
	struct batch_group groups[BATCH_GROUPS];
	struct batches batches = {0};

	(void)state;
	for (uint64_t bin = 0; bin < 200; bin++)
		add_batch(&batches, bin, 1.2e6 * (0.98 + 0.002 * (double)(bin % 20)));
	for (uint64_t k = 0; k < 4; k++) {
		add_batch(&batches, 300 + k, 1.06e6);
		add_batch(&batches, 310 + k, 1.32e6);
	}
	assert_int_equal(batches__groups(&batches, groups), 1);
	assert_near(groups[0].centre_ns, 1.2e6, 8e3);
	assert_int_equal(groups[0].n, 208);
	for (uint64_t k = 0; k < 6; k++)
		add_batch(&batches, 320 + k, 1.06e6);
	assert_int_equal(batches__groups(&batches, groups), 2);
	assert_near(groups[0].centre_ns, 1.06e6, 1e3);
	assert_int_equal(groups[0].n, 10);
	batches__clear(&batches);
}

/* Batches far from all others are no part of their group, however few: neither its rows nor its times are theirs. */
static void test_far_batches(void **state)
{
	struct batch_group groups[BATCH_GROUPS];
	struct batches usual = {0}, lucky = {0}, pool = {0};

	(void)state;
	for (uint64_t second = 100; second < 140; second++)
		add_batch(&usual, second * SECOND, 1e6);
	add_batch(&lucky, 5 * SECOND, 0.5e6);
	add_batch(&lucky, 500 * SECOND, 2e6);
	assert_int_equal(batches__pool(&pool, &usual, 4), 0);
	assert_int_equal(batches__pool(&pool, &lucky, 5), 0);
	batches__sort(&pool);
	assert_int_equal(batches__groups(&pool, groups), 3);
	assert_int_equal(groups[0].n, 1);
	assert_int_equal(groups[1].n, 40);
	assert_int_equal(groups[1].first, 100);
	assert_int_equal(groups[1].last, 139);
	batches__clear(&usual);
	batches__clear(&lucky);
	batches__clear(&pool);
}

/* One-sided tails, as interrupts make them, do not shift what is typical, nor do they become a lower group. */
static void test_heavy_tails(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		uint64_t random = seed;
		struct batches batches = {0};
		struct batch_group groups[BATCH_GROUPS];

		for (uint64_t bin = 0; bin < 3000; bin++) {
			double ns = 1e6 * (1 + 0.01 * sim_gauss(&random));

			if (sim_random(&random) < 0.1)
				ns -= 2e5 * log(1 - sim_random(&random));
			add_batch(&batches, bin, ns);
		}
		assert_true(batches__groups(&batches, groups) > 0);
		if (fabs(groups[0].centre_ns / 1e6 - 1) > 0.01)
			fail_msg("seed %d: %g", (int)seed, groups[0].centre_ns / 1e6);
		assert_true(groups[0].n > 2700);
		batches__clear(&batches);
	}
}

/* With more levels than groups the lowest levels stay separate; the last group has the rest. */
static void test_many_levels(void **state)
{
	struct batch_group groups[BATCH_GROUPS];
	struct batches batches = {0};

	(void)state;
	for (int level = 0; level < BATCH_GROUPS + 4; level++)
		for (uint64_t bin = 0; bin < 30; bin++)
			add_batch(&batches, bin, 1e6 * pow(1.3, level));
	assert_int_equal(batches__groups(&batches, groups), BATCH_GROUPS);
	for (int g = 0; g < BATCH_GROUPS - 1; g++) {
		assert_near(groups[g].centre_ns / pow(1.3, g), 1e6, 1e3);
		assert_int_equal(groups[g].n, 30);
	}
	assert_int_equal(groups[BATCH_GROUPS - 1].n, 30 * 5);
	batches__empty(&batches);
	assert_int_equal(batches__groups(&batches, groups), 0);
	batches__clear(&batches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_members),	   cmocka_unit_test(test_mean_of_members),
	    cmocka_unit_test(test_first_and_last), cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_any_order),	   cmocka_unit_test(test_jitter),
	    cmocka_unit_test(test_two_levels),	   cmocka_unit_test(test_tails),
	    cmocka_unit_test(test_far_batches),	   cmocka_unit_test(test_heavy_tails),
	    cmocka_unit_test(test_many_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
