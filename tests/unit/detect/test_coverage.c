// SPDX-License-Identifier: GPL-2.0-or-later
/* Coverage of calls: the calls' own part, and waiting that is explained by late peers whose work is known. */
#include "learned.h"

#include "detect/coverage.h"

#define RANKS 4
#define PART 2e4 /* own part of a call */

/* Adds calls of a bin: the first call does not wait, where `last` is set. */
static void learn_calls(uint32_t rank, uint64_t bin, double waited, bool last)
{
	struct vapro_bundle b = made(rank, bin, 10, PART + waited);

	b.min_ns = (uint64_t)(last ? PART : PART + waited / 2);
	learn_bundle(&b, false);
}

/* Only one rank is ever the last one: the time of its calls is the own part of all other ranks' calls. */
static void test_own_part(void **state)
{
	uint64_t seed = 1;

	(void)state;
	begin(RANKS, VAPRO_BY_ARGUMENTS, VAPRO_COMMUNICATION, "function=MPI_Allreduce");
	for (uint64_t bin = 0; bin < 20; bin++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			learn_calls(rank, bin, rank == 2 ? 0 : 1e6 * (1 + 9 * sim_random(&seed)), rank == 2);
	refresh();
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		assert_true(series_of(rank)->part_steady);
		assert_near(series_of(rank)->part_ns / PART, 1, 0.02);
	}
	finish();
	/* the own part of calls that always wait, each time for a random time, is unknown */
	begin(RANKS, VAPRO_BY_ARGUMENTS, VAPRO_COMMUNICATION, "function=MPI_Allreduce");
	for (uint64_t bin = 0; bin < 60; bin++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			learn_calls(rank, bin, 1e6 * (0.1 + 9 * sim_random(&seed)), false);
	refresh();
	assert_false(series_of(0)->part_steady);
	finish();
}

/* Adds a rank's activity in a bin, in parts of the bin; the rest is unobserved. */
static void did(struct lateness *lateness, uint32_t rank, uint64_t bin, double called, double waited, double known)
{
	*lateness__cell(lateness, rank, bin) = (struct lateness_cell){.called = (float)(called * VAPRO_BIN_NS),
								      .known = (float)(known * VAPRO_BIN_NS),
								      .waited = (float)(waited * VAPRO_BIN_NS)};
}

static double explained(struct lateness *lateness, uint32_t rank, uint64_t bin)
{
	double known;

	return lateness__explained(lateness, NULL, stg__job(stg, 0), STG_WORLD, rank, bin, &known);
}

static void test_explained(void **state)
{
	struct lateness lateness = {0};

	(void)state;
	begin(RANKS, VAPRO_BY_ARGUMENTS, VAPRO_COMMUNICATION, "x");
	for (uint32_t rank = 0; rank < RANKS; rank++)
		assert_int_equal(stg__touch(stg, rank, FIRST * VAPRO_BIN_NS, true), 0);
	assert_int_equal(lateness__begin(&lateness, RANKS, FIRST, FIRST + 5), 0);
	for (uint64_t bin = FIRST; bin < FIRST + 5; bin++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			did(&lateness, rank, bin, 0.8, 0.7, 0.2);
	/* one rank is late in work that is known, half known, or unknown */
	did(&lateness, 1, FIRST, 0.1, 0, 0.9);
	did(&lateness, 1, FIRST + 1, 0.1, 0, 0.45);
	did(&lateness, 1, FIRST + 2, 0.1, 0, 0);
	assert_near(explained(&lateness, 0, FIRST), 1, 1e-4);
	assert_near(explained(&lateness, 3, FIRST + 1), 0.5, 1e-4);
	assert_near(explained(&lateness, 3, FIRST + 2), 0, 1e-4);
	/* all ranks are in calls most of the time: no rank was late */
	assert_near(explained(&lateness, 2, FIRST + 3), 0.2 / 0.7, 1e-4);
	/* its own lateness explains nothing to the late one */
	did(&lateness, 1, FIRST + 4, 0.1, 0.05, 0);
	assert_near(explained(&lateness, 1, FIRST + 4), 1, 1e-4);
	lateness__clear(&lateness);
	finish();
}

static struct sim_report report;

/* A program whose ranks wait for each other by chance: nearly all of its time is known, and nothing of random work. */
static void test_program(void **state)
{
	struct sim_scenario scenario = {.ranks = 4, .seconds = 40, .seed = 21, .noise = 0.05};

	(void)state;
	sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
	assert_true(report.coverage_communication > 0.02 && report.coverage_last > 0.95);
	scenario.noise = 0;
	scenario.random_work = true;
	sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
	assert_true(report.coverage_last < 0.1 && report.ever_alarms == 0);
	/* nor beside a hog that is there all the time */
	scenario.hogs[0] = (struct sim_hog){1, 0, 40, 7};
	scenario.hog_count = 1;
	sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
	assert_true(report.coverage_last < 0.1);
}

/* A hog comes and goes beside the program, from the beginning to the end. */
static void test_disturbed(void **state)
{
	struct sim_scenario scenario = {.ranks = 4, .seconds = 40, .seed = 22, .noise = 0.03};
	double quiet;

	(void)state;
	sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
	quiet = report.coverage_last;
	for (int i = 0; i < SIM_HOGS; i++)
		scenario.hogs[i] = (struct sim_hog){.rank = 1, .begin = 5 * i, .end = 5 * i + 2.5, .pid = 7};
	scenario.hog_count = SIM_HOGS;
	sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
	assert_true(report.coverage_last > quiet - 0.1 && report.coverage_max > quiet - 0.1);
	assert_true(report.alarms >= 1);
}

/* Kernels before one call-site, of one rank and of several: none is slow, and a hog is found. */
static void test_kernels(void **state)
{
	(void)state;
	for (int c = 0; c < 4; c++) {
		struct sim_scenario scenario = {.ranks = c & 1 ? 3 : 1,
						.seconds = 45,
						.seed = 23,
						.noise = 0.02,
						.scale = c & 2 ? 10 : 1,
						.kernels = c == 1 || c == 2 ? SIM_AT_RANDOM : SIM_ALTERNATING};

		sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
		assert_true(report.found_count == 0 && report.performance > 0.9);
		scenario.hogs[0] = (struct sim_hog){0, 25, 28, 9};
		scenario.hog_count = 1;
		sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
		assert_true(report.alarms == 1 && fabs(sim_alarm(&report)->begin - 25) <= 0.4 &&
			    fabs(sim_alarm(&report)->end - 28) <= 0.4);
		/* a slowdown of all ranks is shown, and no alarm: it may be more work */
		scenario.hog_count = 0;
		scenario.seconds = 60;
		scenario.grow_at = 45;
		scenario.grow_factor = 1.5;
		sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
		assert_true(report.alarms == 0 && report.performance < 0.75);
	}
}

/* Begins with a rank of two threads; returns the series of the further one, which has a bundle of a class. */
static struct series *begin_further(enum vapro_class class, uint64_t from)
{
	const struct vapro_thread further = {.id = 1, .thread = 1, .rank = 0, .pid = 1, .job = "j", .host = "even"};
	struct series *series;

	begin(1, VAPRO_BY_ARGUMENTS, class, "x");
	assert_int_equal(stg__add_thread(stg, &further), 0);
	for (uint32_t thread = 0; thread < 2; thread++)
		assert_int_equal(stg__touch(stg, thread, from, true), 0);
	learn_bundle(&(struct vapro_bundle){.thread = 1, .n = 1, .start_ns = from, .sum_ns = 1000000}, false);
	series = &book.series[0];
	series->row = stg__thread(stg, 1)->row;
	return series;
}

/* A helper thread that sleeps between two reads has nothing to compute. */
static void test_idle_threads(void **state)
{
	const uint64_t from = FIRST * VAPRO_BIN_NS, to = from + 20 * VAPRO_BIN_NS;
	float factor[BUNDLE_FACTORS] = {[VAPRO_BLOCKED_OTHER] = (float)(0.99 * (double)(to - from))};
	struct bundle_rec rec = {
	    .n = 1, .sum_ns = (double)(to - from), .start_ns = from, .end_ns = to, .factor = factor};
	struct coverage coverage = {0};
	struct series *series;

	(void)state;
	series = begin_further(VAPRO_COMPUTATION, from);
	assert_int_equal(coverage__begin(&coverage, stg, 0, from, to), 0);
	assert_int_equal(coverage__add(&coverage, series, &rec, FIRST, FIRST + 20), 0);
	coverage__count_threads(&coverage);
	assert_near(coverage.wall_ns, (double)(to - from), 1);
	assert_near(coverage.seen_ns, 0, 1);
	/* it computes, or a rank sleeps: that is the time of the job */
	factor[VAPRO_BLOCKED_OTHER] *= 0.5F;
	assert_int_equal(coverage__begin(&coverage, stg, 0, from, to), 0);
	assert_int_equal(coverage__add(&coverage, series, &rec, FIRST, FIRST + 20), 0);
	coverage__count_threads(&coverage);
	assert_near(coverage.wall_ns, 2.0 * (double)(to - from), 1);
	factor[VAPRO_BLOCKED_OTHER] *= 2;
	series->row = stg__thread(stg, 0)->row;
	assert_int_equal(coverage__begin(&coverage, stg, 0, from, to), 0);
	assert_int_equal(coverage__add(&coverage, series, &rec, FIRST, FIRST + 20), 0);
	assert_near(coverage.seen_ns, (double)(to - from), 1);
	coverage__clear(&coverage);
	finish();
}

/* A helper thread that reads some files does not double the time of its rank; one that works for a while does. */
static void test_threads(void **state)
{
	const uint64_t from = FIRST * VAPRO_BIN_NS, to = from + 20 * VAPRO_BIN_NS;
	struct coverage coverage = {0};
	struct bundle_rec rec = {.n = 1, .sum_ns = 1e6, .start_ns = from, .end_ns = from + 1000000};
	struct series *series;

	(void)state;
	series = begin_further(VAPRO_IO, from);
	assert_int_not_equal(series->row, stg__thread(stg, 0)->row);
	assert_int_equal(coverage__begin(&coverage, stg, 0, from, to), 0);
	assert_int_equal(coverage__add(&coverage, series, &rec, FIRST, FIRST + 20), 0);
	coverage__count_threads(&coverage);
	assert_near(coverage.wall_ns, (double)(to - from), 1);
	assert_int_equal(coverage__begin(&coverage, stg, 0, from, to), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(coverage__add(&coverage, series, &rec, FIRST, FIRST + 20), 0);
	coverage__count_threads(&coverage);
	assert_near(coverage.wall_ns, 2.0 * (double)(to - from), 1);
	coverage__clear(&coverage);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_idle_threads), cmocka_unit_test(test_threads), cmocka_unit_test(test_own_part),
	    cmocka_unit_test(test_explained),	 cmocka_unit_test(test_program), cmocka_unit_test(test_disturbed),
	    cmocka_unit_test(test_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
