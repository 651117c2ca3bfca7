/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Input that the analysis accepts and refuses, and its separation of threads and jobs. */
#include "sim.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct vapro_bundle fragment(uint32_t thread, uint32_t state, double from, double to)
{
	struct vapro_bundle b = {
	    .thread = thread,
	    .state = state,
	    .n = 1,
	    .start_ns = SIM_BEGIN_NS + (uint64_t)(from * 1e9),
	    .end_ns = SIM_BEGIN_NS + (uint64_t)(to * 1e9),
	};

	b.sum_ns = b.min_ns = b.max_ns = b.end_ns - b.start_ns;
	return b;
}

/* Two users with jobs of one name, and an unknown user, have three jobs. */
static void test_users(void **state)
{
	struct vapro_state io = {.id = 0, .class = VAPRO_IO, .to = "a@b+1", .labels = "function=read"};
	const struct job_result *results;
	struct vapro_config config;
	struct analysis *analysis;
	uint32_t count;

	(void)state;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_int_equal(analysis__add_state(analysis, &io), 0);
	for (uint32_t i = 0; i < 4; i++) {
		/* the last thread is the second user's on another host */
		struct vapro_thread thread = {.id = i,
					      .rank = (int32_t)i / 3,
					      .pid = 5,
					      .tid = 5,
					      .job = "slurm:4711",
					      .host = i == 3 ? "m" : "n",
					      .user = i < 3 ? i : 1};
		struct vapro_process_facts facts = {.job = "slurm:4711", .user = i, .wall_ns = 1000};
		struct vapro_bundle b = fragment(i, 0, 1, 2);

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__add_bundle(analysis, &b), 0);
		facts.lost[VAPRO_LOST_STATES] = i + 1;
		assert_int_equal(analysis__add_facts(analysis, &facts), i < 3 ? 0 : -EINVAL);
	}
	assert_int_equal(
	    analysis__end_window(analysis, SIM_BEGIN_NS, SIM_BEGIN_NS + 15000000000ULL, true, &results, &count), 0);
	assert_int_equal(count, 3);
	for (uint32_t i = 0; i < count; i++) {
		assert_string_equal(results[i].job, "slurm:4711");
		assert_int_equal(results[i].user, i);
		assert_int_equal(results[i].rank_count, i == 1 ? 2 : 1);
		assert_int_equal(results[i].lost[VAPRO_LOST_STATES], i + 1);
	}
	analysis__free(analysis);
}

static void test_interface(void **state)
{
	struct vapro_config config;
	struct analysis *analysis;
	struct vapro_thread thread = {.id = 0, .rank = -1, .pid = 5, .tid = 5, .job = "none:5", .host = "n"};
	struct vapro_state io = {.id = 0, .class = VAPRO_IO, .to = "a@b+1", .labels = "function=read"};
	struct vapro_interference interference = {.thread = 9};
	struct vapro_process_facts facts = {.job = "other"};
	struct vapro_bundle b;
	const struct job_result *results;
	uint32_t count;

	(void)state;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	/* No report. */
	assert_int_equal(
	    analysis__end_window(analysis, SIM_BEGIN_NS, SIM_BEGIN_NS + 15000000000ULL, false, &results, &count), 0);
	assert_int_equal(count, 0);
	b = fragment(0, 0, 15, 16);
	assert_int_equal(analysis__add_bundle(analysis, &b), -EINVAL);
	assert_int_equal(analysis__add_thread(analysis, &thread), 0);
	assert_int_equal(analysis__add_state(analysis, &io), 0);
	assert_int_equal(analysis__add_interference(analysis, &interference), -EINVAL);
	assert_int_equal(analysis__add_facts(analysis, &facts), -EINVAL);
	b.end_ns = b.start_ns - 1;
	assert_int_equal(analysis__add_bundle(analysis, &b), -EINVAL);
	b = fragment(0, 0, 15, 16);
	b.sum_ns *= 2;
	assert_int_equal(analysis__add_bundle(analysis, &b), -EINVAL);
	b = fragment(0, 0, 15, 16);
	b.n = 0;
	assert_int_equal(analysis__add_bundle(analysis, &b), -EINVAL);
	b = fragment(0, 0, 15, 16);
	b.factor[0] = NAN;
	assert_int_equal(analysis__add_bundle(analysis, &b), -EINVAL);
	/* Stuck in a state never seen before: shown at once, not confirmed, and closed in the end. */
	b = fragment(0, 0, 15, 25);
	b.flags = VAPRO_BUNDLE_OPEN;
	assert_int_equal(analysis__add_bundle(analysis, &b), 0);
	assert_int_equal(analysis__thread_seen(analysis, 0, SIM_BEGIN_NS + 15000000000ULL, 0), 0);
	assert_int_equal(analysis__end_window(analysis, SIM_BEGIN_NS + 15000000000ULL, SIM_BEGIN_NS + 25000000000ULL,
					      false, &results, &count),
			 0);
	assert_int_equal(count, 1);
	assert_int_equal(results[0].open, 1);
	assert_int_equal(results[0].variance_count, 1);
	assert_true(results[0].variances[0].still_open && !results[0].variances[0].confirmed);
	assert_int_equal(results[0].variances[0].class, VAPRO_IO);
	assert_int_equal(results[0].variances[0].ranks[0], -1);
	assert_true(fabs(results[0].variances[0].lost_seconds - 10) < 0.01);
	/* Its end is reported; its loss counts once. */
	b = fragment(0, 0, 15, 27);
	assert_int_equal(analysis__add_bundle(analysis, &b), 0);
	assert_int_equal(
	    analysis__thread_seen(analysis, 0, SIM_BEGIN_NS + 15000000000ULL, SIM_BEGIN_NS + 27000000000ULL), 0);
	assert_int_equal(analysis__end_window(analysis, SIM_BEGIN_NS + 25000000000ULL, SIM_BEGIN_NS + 35000000000ULL,
					      true, &results, &count),
			 0);
	assert_int_equal(results[0].variance_count, 1);
	assert_int_equal(results[0].variances[0].state, VAPRO_REGION_CLOSED);
	assert_false(results[0].variances[0].still_open);
	assert_true(fabs(results[0].variances[0].lost_seconds - 12) < 0.01);
	/* Reported again from its beginning, with a higher revision. */
	assert_true(results[0].heatmap_count >= 2);
	/* The job is over: silence. */
	assert_int_equal(analysis__end_window(analysis, SIM_BEGIN_NS + 35000000000ULL, SIM_BEGIN_NS + 45000000000ULL,
					      true, &results, &count),
			 0);
	assert_int_equal(count, 0);
	analysis__free(analysis);
}

/* Threads of a rank share its line, and jobs do not mix. */
static void test_threads_and_jobs(void **state)
{
	struct vapro_config config;
	struct analysis *analysis;
	struct vapro_state work = {.id = 0, .class = VAPRO_COMPUTATION, .from = "a@b+1", .to = "a@b+2", .labels = "x"};
	const struct job_result *results;
	uint32_t count;

	(void)state;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	for (uint32_t i = 0; i < 4; i++) {
		struct vapro_thread thread = {.id = i,
					      .rank = 0,
					      .thread = (int32_t)i % 2,
					      .pid = 1 + i / 2,
					      .job = i < 2 ? "one" : "two",
					      .host = "n",
					      .world_size = 2};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
	}
	assert_int_equal(analysis__add_state(analysis, &work), 0);
	for (uint32_t i = 0; i < 4; i++) {
		for (int k = 0; k < 100; k++) {
			struct vapro_bundle b = fragment(i, 0, 0.1 * k, 0.1 * k + 0.099);

			assert_int_equal(analysis__add_bundle(analysis, &b), 0);
		}
	}
	assert_int_equal(
	    analysis__end_window(analysis, SIM_BEGIN_NS, SIM_BEGIN_NS + 10000000000ULL, true, &results, &count), 0);
	assert_int_equal(count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_string_equal(results[i].job, i ? "two" : "one");
		assert_int_equal(results[i].rank_count, 1);
		assert_true(results[i].partial);
		assert_int_equal(results[i].bundles, 200);
		assert_true(results[i].coverage_total > 0.85); /* the first ten of a hundred are warm-up */
		assert_int_equal(results[i].variance_count, 0);
		assert_int_equal(results[i].heatmaps[0].row_count, 1);
		assert_int_equal(results[i].heatmaps[0].bins, 50);
	}
	analysis__free(analysis);
}

/*
 * A job that ended is dropped with the numbers of its threads, and its name may come back with others; the other job
 * goes on unaffected.
 */
static void test_ended_jobs(void **state)
{
	struct vapro_config config;
	struct analysis *analysis;
	struct vapro_state work = {.id = 0, .class = VAPRO_COMPUTATION, .from = "a@b+1", .to = "a@b+2", .labels = "x"};
	const struct job_result *results;
	uint32_t count;

	(void)state;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	for (uint32_t i = 0; i < 2; i++) {
		struct vapro_thread thread = {
		    .id = i, .rank = 0, .pid = 1 + i, .job = i ? "two" : "one", .host = "n", .world_size = 1};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(analysis, i, SIM_BEGIN_NS, 0), 0);
	}
	assert_int_equal(analysis__add_state(analysis, &work), 0);
	for (int window = 0; window < 5; window++) {
		uint64_t begin = SIM_BEGIN_NS + (uint64_t)window * 10000000000ULL;

		if (window == 4) {
			struct vapro_thread again = {
			    .id = 2, .rank = 0, .pid = 9, .job = "one", .host = "n", .world_size = 1};
			struct vapro_bundle b = fragment(0, 0, 40, 40.1);

			assert_int_equal(analysis__add_bundle(analysis, &b), -EINVAL);
			assert_int_equal(analysis__add_thread(analysis, &again), 0);
		}
		for (uint32_t i = 0; i < 2; i++) {
			/* the first job is in the first window and, under its old name, in the last */
			for (int k = 0; k < (i || window == 0 ? 100 : window == 4 ? 5 : 0); k++) {
				struct vapro_bundle b = fragment(i || !window ? i : 2, 0, 10 * window + 0.1 * k,
								 10 * window + 0.1 * k + 0.099);

				assert_int_equal(analysis__add_bundle(analysis, &b), 0);
			}
		}
		if (window == 0 || window == 4)
			assert_int_equal(
			    analysis__thread_seen(analysis, window ? 2 : 0, begin, window ? 0 : begin + 9900000000ULL),
			    0);
		assert_int_equal(
		    analysis__end_window(analysis, begin, begin + 10000000000ULL, window == 4, &results, &count), 0);
		assert_int_equal(count, window == 0 || window == 4 ? 2 : 1);
		/* jobs are in the order in which they were announced, whatever their numbers */
		assert_true(results[window == 4 ? 0 : count - 1].coverage_total > (window ? 0.95 : 0.85));
		if (window == 4)
			assert_true(results[1].coverage_total == 0); /* 5 fragments are too few for a new job */
	}
	analysis__free(analysis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_interface),
	    cmocka_unit_test(test_users),
	    cmocka_unit_test(test_threads_and_jobs),
	    cmocka_unit_test(test_ended_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
