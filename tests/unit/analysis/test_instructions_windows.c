/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fragments with instructions in windows of an analysis: changes of earlier windows by a better
 * minimum, rare clusters, and input that no sender should send.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "sim.h"

#define UTC 1800000000000000000ULL /* a bin border */
#define MS 1000000ULL
#define S 1000000000ULL

static struct analysis *analysis_of(int ranks)
{
	struct analysis *analysis;
	static struct vapro_config config;
	struct vapro_state edge = {.class = VAPRO_COMPUTATION, .from = "a@1+1", .to = "a@1+2", .labels = ""};

	sim_config(&config);
	config.reference = VAPRO_REFERENCE_FASTEST;
	analysis = analysis__new(&config, VAPRO_BY_INSTRUCTIONS);
	for (int i = 0; i < ranks; i++) {
		struct vapro_thread thread = {.id = (uint32_t)i, .rank = i, .job = "j", .host = "n"};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
	}
	assert_int_equal(analysis__add_state(analysis, &edge), 0);
	return analysis;
}

static int add(struct analysis *analysis, uint32_t rank, uint64_t start_ms, uint64_t ms, double instructions,
	       double loads)
{
	struct vapro_bundle bundle = {
	    .thread = rank,
	    .n = 1,
	    .start_ns = UTC + start_ms * MS,
	    .end_ns = UTC + (start_ms + ms) * MS,
	    .sum_ns = ms * MS,
	    .min_ns = ms * MS,
	    .max_ns = ms * MS,
	};

	bundle.magnitude_min[VAPRO_INSTRUCTIONS] = bundle.magnitude_max[VAPRO_INSTRUCTIONS] = instructions;
	bundle.magnitude_min[VAPRO_NAMED] = bundle.magnitude_max[VAPRO_NAMED] = loads;
	return analysis__add_bundle(analysis, &bundle);
}

static const struct job_result *window(struct analysis *analysis, uint64_t begin_s, uint64_t end_s)
{
	const struct job_result *results;
	uint32_t count;

	assert_int_equal(analysis__end_window(analysis, UTC + begin_s * S, UTC + end_s * S, false, &results, &count),
			 0);
	assert_int_equal(count, 1);
	return results;
}

/* After a step of the clock, or in a hostile file, a window may last for years: its last day is judged. */
static void test_window_of_years(void **state)
{
	const uint64_t day_s = 86400;
	struct analysis *analysis = analysis_of(1);
	const struct job_result *result;

	(void)state;
	for (uint64_t at = 0; at < 15000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
	result = window(analysis, 0 - 1000 * day_s, 15);
	assert_int_equal(result->begin_ns, UTC + 15 * S - day_s * S);
	assert_int_equal(result->heatmap_count, 1);
	assert_int_equal(result->heatmaps[0].bins, day_s * 5);
	assert_true(result->heatmaps[0].rows[0].values[day_s * 5 - 10] == 1);
	analysis__free(analysis);
}

/* A faster member that appears later lowers the reported performance of time that is still in view. */
static void test_better_minimum(void **state)
{
	struct analysis *analysis = analysis_of(2);
	const struct job_result *result;

	(void)state;
	for (uint64_t at = 0; at < 15000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
	result = window(analysis, 0, 15);
	assert_int_equal(result->heatmap_count, 1);
	assert_true(result->heatmaps[0].rows[0].values[60] == 1);
	/* another rank does the same in 50 ms, once */
	for (uint64_t at = 15000; at < 25000; at += 100) {
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
		assert_int_equal(add(analysis, 1, at, at == 20000 ? 50 : 100, 1e6, 0), 0);
	}
	result = window(analysis, 15, 25);
	assert_int_equal(result->heatmap_count, 2);
	assert_int_equal(result->heatmaps[0].begin_ns, UTC + 10 * S);
	assert_int_equal(result->heatmaps[0].bins, 25);
	assert_true(result->heatmaps[0].revision > 0);
	assert_true(fabs(result->heatmaps[0].rows[0].values[0] - 0.5) < 1e-6);
	assert_true(fabs(result->heatmaps[0].rows[0].values[24] - 0.5) < 1e-6);
	assert_int_equal(result->heatmaps[1].begin_ns, UTC + 15 * S);
	assert_true(fabs(result->heatmaps[1].rows[0].values[0] - 0.5) < 1e-6);
	/* nothing new: nothing is reported again */
	for (uint64_t at = 25000; at < 35000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
	result = window(analysis, 25, 35);
	assert_int_equal(result->heatmap_count, 1);
	analysis__free(analysis);
}

/* Only changed bins are reported again. */
static void test_only_what_changed(void **state)
{
	struct analysis *analysis = analysis_of(2);
	const struct job_result *result;

	(void)state;
	for (uint64_t at = 0; at < 15000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, at >= 12000 && at < 13000 ? 3e6 : 1e6, 0), 0);
	window(analysis, 0, 15);
	/* another rank does the work from 12 to 13 s in 50 ms */
	for (uint64_t at = 15000; at < 25000; at += 100) {
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
		assert_int_equal(add(analysis, 1, at, at == 20000 ? 50 : 100, at == 20000 ? 3e6 : 1e6, 0), 0);
	}
	result = window(analysis, 15, 25);
	assert_int_equal(result->heatmap_count, 2);
	assert_int_equal(result->heatmaps[0].begin_ns, UTC + 12 * S);
	assert_int_equal(result->heatmaps[0].bins, 5);
	assert_int_equal(result->heatmaps[0].revision, 1);
	assert_int_equal(result->heatmaps[0].row_count, 1);
	assert_true(fabs(result->heatmaps[0].rows[0].values[4] - 0.5) < 1e-6);
	assert_int_equal(result->heatmaps[1].row_count, 2);
	analysis__free(analysis);
}

static const struct result_uncovered *uncovered(const struct job_result *result, enum vapro_uncovered_reason reason)
{
	for (uint32_t i = 0; i < result->uncovered_count; i++) {
		if (result->uncovered[i].reason == reason)
			return &result->uncovered[i];
	}
	return NULL;
}

static void test_rare(void **state)
{
	struct analysis *analysis = analysis_of(3);
	const struct job_result *result;
	uint32_t id;

	(void)state;
	for (uint64_t at = 0; at < 15000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
	/* equal norms, other vectors: one rank's 0.4 s, another's 0.3 s and 1 s, too short ones, none measured */
	assert_int_equal(add(analysis, 1, 1000, 400, 3e6, 4e6), 0);
	assert_int_equal(add(analysis, 2, 1000, 300, 4e6, 3e6), 0);
	assert_int_equal(add(analysis, 2, 3000, 1000, 4.01e6, 3e6), 0);
	assert_int_equal(add(analysis, 2, 5000, 50, 9e6, 0), 0);
	assert_int_equal(add(analysis, 2, 6000, 3000, 0, 0), 0);
	result = window(analysis, 0, 15);
	assert_int_equal(result->rare_count, 2);
	assert_true(result->rares[0].rank == 2 && result->rares[0].members == 2);
	assert_true(fabs(result->rares[0].seconds - 1.3) < 1e-9 && result->rares[0].norm == 5e6);
	assert_true(result->rares[1].rank == 1 && result->rares[1].members == 1);
	assert_true(result->rares[1].norm == 5e6 && result->rares[1].cluster != result->rares[0].cluster);
	/* a state reports its greatest reason, for all of its uncovered time */
	assert_true(fabs(uncovered(result, VAPRO_NO_WORKLOAD)->share - 4.75 / 43) < 0.01);
	assert_int_equal(result->clusters.states, 1);
	assert_int_equal(result->clusters.clusters, 4);
	assert_int_equal(result->clusters.rare, 3);
	assert_int_equal(result->clusters.approximate, 0);
	id = result->rares[0].cluster;
	/* the next window: only clusters met again are reported, under the same number */
	assert_int_equal(add(analysis, 1, 16000, 500, 4e6, 3e6), 0);
	assert_int_equal(add(analysis, 2, 16000, 200, 4e6, 3e6), 0);
	assert_int_equal(add(analysis, 0, 16000, 200, 2e6, 0), 0); /* a smaller seed before them */
	result = window(analysis, 15, 25);
	assert_int_equal(result->rare_count, 2);
	assert_true(result->rares[0].cluster == id && result->rares[0].members == 4 && result->rares[0].rank == 1);
	assert_true(result->rares[1].rank == 0 && result->rares[1].norm == 2e6);
	/* the fifth fragment makes the cluster known */
	assert_int_equal(add(analysis, 2, 26000, 200, 4e6, 3e6), 0);
	result = window(analysis, 25, 35);
	assert_int_equal(result->rare_count, 0);
	assert_int_equal(result->clusters.rare, 3);
	analysis__free(analysis);
}

static void test_odd_input(void **state)
{
	static const double bad[] = {-1, NAN, INFINITY, 1e151};
	struct analysis *analysis = analysis_of(1);
	const struct job_result *result;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(add(analysis, 0, 0, 100, bad[i], 0), -EINVAL);
	/* one fragment, and the largest possible one */
	assert_int_equal(add(analysis, 0, 0, 200, 1e150, 1e150), 0);
	result = window(analysis, 0, 15);
	assert_int_equal(result->rare_count, 1);
	assert_true(isfinite(result->rares[0].norm));
	/* all zeros: not measured */
	for (uint64_t at = 15000; at < 25000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, 0, 0), 0);
	result = window(analysis, 15, 25);
	assert_int_equal(result->rare_count, 0);
	assert_true(result->coverage_total == 0 && uncovered(result, VAPRO_NO_WORKLOAD));
	analysis__free(analysis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_better_minimum),    cmocka_unit_test(test_window_of_years),
	    cmocka_unit_test(test_only_what_changed), cmocka_unit_test(test_rare),
	    cmocka_unit_test(test_odd_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
