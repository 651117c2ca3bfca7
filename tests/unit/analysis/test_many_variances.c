// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A job with noise on many ranks: hundreds of variances in one window are right, each with the culprits of
 * its own time, and no variance costs memory by the number of ranks.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "sim.h"

#define RANKS 300
#define BINS 75
#define BIN VAPRO_BIN_NS
#define MS 1000000ULL
#define EACH (15 * MS)
#define FRAGMENTS 6
#define LASTS 5
#define BYTES_A_VARIANCE 21000

/* Ranks 0, 3, 6, ... share their CPU with another task for LASTS bins, each group of ten ranks at another time. */
static bool disturbed(uint32_t rank, uint32_t bin)
{
	uint32_t begin = 20 + 10 * (rank / 3 % 5);

	return rank % 3 == 0 && bin >= begin && bin < begin + LASTS;
}

static void add_bundle(struct analysis *analysis, uint32_t rank, uint32_t bin, uint32_t state, uint64_t each_ns,
		       uint64_t preempted_ns)
{
	struct vapro_bundle bundle = {.thread = rank,
				      .state = state,
				      .n = FRAGMENTS,
				      .start_ns = SIM_BEGIN_NS + bin * BIN,
				      .end_ns = SIM_BEGIN_NS + (bin + 1) * BIN - MS,
				      .sum_ns = FRAGMENTS * (each_ns + preempted_ns),
				      .min_ns = each_ns + preempted_ns,
				      .max_ns = each_ns + preempted_ns};

	bundle.factor[VAPRO_PREEMPTED] = (double)(FRAGMENTS * preempted_ns);
	assert_int_equal(analysis__add_bundle(analysis, &bundle), 0);
}

static const struct job_result *run(struct analysis *analysis, bool noisy)
{
	const struct job_result *results;
	uint32_t count;

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		char host[16];
		struct vapro_thread thread = {
		    .id = rank, .rank = (int32_t)rank, .world_size = RANKS, .pid = 10 + rank, .job = "j", .host = host};

		snprintf(host, sizeof(host), "n%u", rank / 2);
		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(analysis, rank, SIM_BEGIN_NS, 0), 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct vapro_state state = {.id = i, .from = i ? NULL : "a@1+0x1", .to = "a@1+0x2", .labels = ""};

		state.class = i ? VAPRO_COMMUNICATION : VAPRO_COMPUTATION;
		assert_int_equal(analysis__add_state(analysis, &state), 0);
	}
	for (uint32_t bin = 0; bin < BINS; bin++) {
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			add_bundle(analysis, rank, bin, 0, EACH, noisy && disturbed(rank, bin) ? EACH : 0);
			add_bundle(analysis, rank, bin, 1, 3 * MS, 0);
		}
	}
	assert_int_equal(
	    analysis__end_window(analysis, SIM_BEGIN_NS, SIM_BEGIN_NS + BINS * BIN, false, &results, &count), 0);
	assert_int_equal(count, 1);
	return results;
}

static void test_many_variances(void **state)
{
	struct vapro_config config;
	struct analysis *analysis, *quiet;
	const struct job_result *result;
	struct vapro_shed with, without;

	(void)state;
	sim_config(&config);
	quiet = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_int_equal(run(quiet, false)->variance_count, 0);
	analysis__shed(quiet, &without);
	analysis__free(quiet);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	result = run(analysis, true);
	assert_int_equal(result->variance_count, RANKS / 3);
	for (uint32_t i = 0; i < result->variance_count; i++) {
		const struct result_variance *variance = &result->variances[i];
		uint32_t group = (uint32_t)variance->ranks[0] / 3 % 5;

		assert_true(variance->alarm);
		assert_int_equal(variance->rank_count, 1);
		assert_int_equal(variance->begin_ns, SIM_BEGIN_NS + (20 + 10 * group) * BIN);
		assert_int_equal(variance->end_ns - variance->begin_ns, LASTS * BIN);
		/* twenty ranks lost as much in the same time: the first five of them */
		assert_int_equal(variance->culprit_count, 5);
		for (uint32_t k = 0; k < 5; k++) {
			assert_int_equal(variance->culprits[k].rank, 3 * (group + 5 * k));
			assert_true(fabs(variance->culprits[k].lost_seconds - variance->lost_seconds) <
				    0.01 * variance->lost_seconds);
		}
		assert_int_equal(variance->diagnosis.shared_count, 1);
		assert_string_equal(variance->diagnosis.shared[0].fact, "host");
		assert_int_equal(variance->diagnosis.shared[0].others, 1);
	}
	analysis__shed(analysis, &with);
	assert_true(with.bytes - without.bytes < BYTES_A_VARIANCE * (RANKS / 3));
	analysis__free(analysis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_variances)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
