// SPDX-License-Identifier: GPL-2.0-or-later
/* Several workloads in one state without counts, and states that were steady for a while. */
#include "learned.h"

#include "model/groups.h"

#define LIGHT 1e5
#define KERNELS 3

static const double work[KERNELS] = {1, 3, 10};

/* Learns all of a bin's computations, merged by on-CPU time, as the kernel side does. */
static void learn_kernels(uint32_t rank, uint64_t bin, const uint32_t *count, double scale)
{
	for (int k = 0; k < KERNELS; k++) {
		if (count[k])
			learn(rank, bin, count[k], scale * work[k] * LIGHT, false);
	}
}

static void begin_kernels(uint32_t ranks)
{
	begin(ranks, VAPRO_BY_ARGUMENTS, VAPRO_COMPUTATION, "x");
	warm_up(ranks, LIGHT);
}

/* Runs seconds [from, to) of kernels in a fixed order or at random. */
static void run(uint32_t ranks, uint64_t from, uint64_t to, const uint32_t *count, bool at_random, double scale)
{
	uint64_t seed = 11;

	for (uint64_t bin = from * SECOND; bin < to * SECOND; bin++) {
		for (uint32_t rank = 0; rank < ranks; rank++) {
			uint32_t drawn[KERNELS];

			for (int k = 0; k < KERNELS; k++)
				drawn[k] = at_random ? (uint32_t)(2.0 * count[k] * sim_random(&seed)) : count[k];
			learn_kernels(rank, bin, drawn, scale);
		}
		if (bin % (10 * SECOND) == 0) {
			groups__find(&book);
			refresh();
		}
	}
	groups__find(&book);
}

/* Returns the performance of one more computation. */
static double performance(uint32_t rank, double ns)
{
	struct bundle_rec rec = judged(rank, 60 * SECOND, ns);

	assert_true(rec.covered && rec.certified);
	return rec.reference / ns;
}

static void test_kernels(void **state)
{
	static const uint32_t counts[][KERNELS] = {{20, 20, 20}, {60, 12, 3}, {12, 12, 30}};

	(void)state;
	for (size_t c = 0; c < 3 * 2 * 2; c++) {
		uint32_t ranks = c & 2 ? 4 : 1;

		begin_kernels(ranks);
		run(ranks, 0, 40, counts[c / 4], c & 1, 1);
		for (uint32_t rank = 0; rank < ranks; rank++) {
			assert_true(series_of(rank)->grouped);
			for (int k = 0; k < KERNELS; k++) {
				/* no kernel is slow beside a lighter one, and a slowdown of all kernels is found */
				assert_near(performance(rank, work[k] * LIGHT), 1, 0.02);
				assert_near(performance(rank, 1.5 * work[k] * LIGHT), 1 / 1.5, 0.02);
			}
		}
		finish();
	}
}

/* Kernels are also found before there is support: a single rank's reference is provisional for half a minute. */
static void test_kernels_soon(void **state)
{
	static const uint32_t count[KERNELS] = {20, 20, 20};

	(void)state;
	begin_kernels(1);
	run(1, 0, 9, count, false, 1);
	for (int k = 0; k < KERNELS; k++)
		assert_near(performance(0, work[k] * LIGHT), 1, 0.02);
	assert_false(series_of(0)->supported);
	finish();
}

/* Heavy kernels that come seldom have most of the time. */
static void test_heavy_and_seldom(void **state)
{
	(void)state;
	begin_kernels(2);
	for (uint64_t bin = 0; bin < 30 * SECOND; bin++) {
		for (uint32_t rank = 0; rank < 2; rank++) {
			learn(rank, bin, 40, LIGHT, false);
			learn(rank, bin, 4, 100 * LIGHT, false);
		}
	}
	groups__find(&book);
	assert_near(performance(0, 100 * LIGHT), 1, 0.02);
	assert_near(performance(1, LIGHT), 1, 0.02);
	finish();
}

/*
 * Posts that are left out do not end computations any more: the microseconds between two posts and the milliseconds
 * before the next one are then in one state. They stay two kinds of work.
 */
static void test_joined_by_a_missing_post(void **state)
{
	static const double short_ns = 600, long_ns = 64e6;

	(void)state;
	begin_kernels(2);
	for (uint64_t bin = 0; bin < 40 * SECOND; bin++) {
		for (uint32_t rank = 0; rank < 2; rank++) {
			learn(rank, bin, 60, short_ns, false);
			learn(rank, bin, 3, long_ns, false);
		}
	}
	groups__find(&book);
	for (uint32_t rank = 0; rank < 2; rank++) {
		assert_true(series_of(rank)->grouped);
		assert_near(performance(rank, short_ns), 1, 0.02);
		assert_near(performance(rank, long_ns), 1, 0.02);
		assert_near(performance(rank, 1.5 * long_ns), 1 / 1.5, 0.02);
	}
	finish();
}

/* A disturbance that comes and goes in each second, from some time on, is no workload: the reference stays. */
static void test_fault_is_no_group(void **state)
{
	static const uint32_t before[KERNELS] = {60, 0, 0}, after[KERNELS] = {30, 10, 0};

	(void)state;
	begin_kernels(2);
	run(2, 0, 20, before, false, 1);
	run(2, 20, 60, after, false, 1);
	assert_true(series_of(0)->single && !series_of(0)->grouped);
	assert_near(performance(0, 3 * LIGHT), 1.0 / 3, 0.02);
	finish();
}

/* One rank of four that is slow in half of its computations from the beginning on has no workloads of its own. */
static void test_one_rank_alone(void **state)
{
	static const uint32_t usual[KERNELS] = {60, 0, 0}, slow[KERNELS] = {30, 10, 0};

	(void)state;
	begin_kernels(4);
	for (uint64_t bin = 0; bin < 40 * SECOND; bin++)
		for (uint32_t rank = 0; rank < 4; rank++)
			learn_kernels(rank, bin, rank == 2 ? slow : usual, 1);
	groups__find(&book);
	assert_false(series_of(2)->grouped);
	assert_true(performance(2, 3 * LIGHT) < 0.6);
	finish();
}

/* Runs seconds [from, to) of computations that last up to `more` times as long, at random. */
static void spread(uint64_t from, uint64_t to, double more, uint64_t seed)
{
	for (uint64_t bin = from * SECOND; bin < to * SECOND; bin++)
		for (int i = 0; i < 20; i++)
			learn(0, bin, 1, LIGHT * (1 + (more - 1) * sim_random(&seed)), false);
}

/* A proof in five quiet seconds between disturbed ones stays; times that never repeat prove nothing. */
static void test_proven_in_quiet_time(void **state)
{
	(void)state;
	for (int quiet = 0; quiet < 2; quiet++) {
		begin_kernels(1);
		spread(0, 20, 2, 3);
		if (quiet)
			spread(20, 25, 1.02, 4);
		spread(25, 60, 2, 5);
		refresh();
		assert_int_equal(series_of(0)->certified, quiet);
		finish();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kernels),
	    cmocka_unit_test(test_kernels_soon),
	    cmocka_unit_test(test_heavy_and_seldom),
	    cmocka_unit_test(test_fault_is_no_group),
	    cmocka_unit_test(test_joined_by_a_missing_post),
	    cmocka_unit_test(test_one_rank_alone),
	    cmocka_unit_test(test_proven_in_quiet_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
