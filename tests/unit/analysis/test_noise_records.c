// SPDX-License-Identifier: GPL-2.0-or-later
/* Noise components of jobs as windows report them: whom they hit, how often, and when they are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <vapro/analysis.h>

#include "near.h"
#include "sim.h"

#define BIN VAPRO_BIN_NS
#define START 8900000000ULL /* a bin of these years */
#define UTC(s) (START * BIN + (uint64_t)((s)*1e9))
#define RANKS 4

static struct analysis *analysis;
static const struct job_result *result;

static int begin(void **state)
{
	struct vapro_config config;

	(void)state;
	sim_config(&config);
	config.noise_share = 0.005;
	config.min_lost_s = 0.1;
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct vapro_thread thread = {.id = i,
					      .rank = (int32_t)i,
					      .world_size = RANKS,
					      .pid = 10 + i,
					      .tid = 10 + i,
					      .job = "j",
					      .host = i < 2 ? "n0" : "n1"};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(analysis, i, UTC(0), 0), 0);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	analysis__free(analysis);
	return 0;
}

/* Slices of a task in one bin of a rank. */
static void hit(uint32_t rank, uint64_t at, const char *comm, uint32_t slices, uint32_t us)
{
	struct vapro_interference one = {.thread = rank,
					 .pid = 100,
					 .process = 100,
					 .bin = START + at,
					 .preempted_ns = (uint64_t)slices * us * 1000,
					 .slices = slices,
					 .longest_us = us};

	snprintf(one.comm, sizeof(one.comm), "%s", comm);
	assert_int_equal(analysis__add_interference(analysis, &one), 0);
}

/* Ends a window of [from, to) s, in which all ranks ran. */
static void window(unsigned from, unsigned to, bool last)
{
	const struct vapro_process_facts facts = {.pid = 10, .job = "j", .wall_ns = (to - from) * 1000000000ULL};
	uint32_t count;

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		for (uint64_t at = from * 5; at < to * 5; at++)
			assert_int_equal(
			    analysis__add_account(
				analysis, &(struct vapro_account){.thread = rank, .bin = START + at, .on_cpu_ns = BIN}),
			    0);
	}
	assert_int_equal(analysis__add_facts(analysis, &facts), 0);
	assert_int_equal(analysis__end_window(analysis, UTC(from), UTC(to), last, &result, &count), 0);
	assert_int_equal(count, 1);
}

/* 200 us at 100 Hz on one rank: its number, length and period, and nothing of other ranks or tasks. */
static void one_task_hits_one_rank(void **state)
{
	const struct result_noise *noise;

	(void)state;
	for (uint64_t at = 0; at < 75; at++) {
		hit(2, at, "ticker", 20, 200);
		hit(0, at, "kworker/0:1", 1, 5); /* 0.0025 % */
		hit(1, at, "kworker/1:1", 1, 5);
	}
	hit(3, 10, "ticker", 1, 100); /* not worth its name */
	window(0, 15, false);
	assert_int_equal(result->noise_count, 1);
	noise = result->noise;
	assert_string_equal(noise->what, "ticker");
	assert_int_equal(noise->id, 1);
	assert_int_equal(noise->revision, 1);
	assert_false(noise->final);
	assert_int_equal(noise->slices, 1501);
	assert_near(noise->lost_s, 0.3001, 1e-9);
	assert_near(noise->longest_s, 200e-6, 1e-12);
	assert_near(noise->period_s, 0.010, 1e-9);
	assert_near(noise->share, 0.02, 1e-9);
	assert_int_equal(noise->rank_count, 1);
	assert_int_equal(noise->ranks[0], 2);
	assert_int_equal(noise->host_count, 1);
	assert_string_equal(noise->hosts[0], "n1");
	assert_int_equal(noise->pid, 100);
	assert_int_equal(noise->begin_ns, START * BIN);
	assert_int_equal(noise->end_ns, (START + 75) * BIN);

	/* a tenth more is no news; the end is */
	for (uint64_t at = 75; at < 83; at++)
		hit(2, at, "ticker", 20, 200);
	window(15, 25, false);
	assert_int_equal(result->noise_count, 0);
	window(25, 35, true);
	assert_int_equal(result->noise_count, 1);
	assert_true(result->noise->final);
	assert_int_equal(result->noise->id, 1);
	assert_int_equal(result->noise->revision, 2);
	assert_int_equal(result->noise->slices, 1661);
	assert_near(result->noise->period_s, 35.0 / 1660, 1e-9);
}

/* A daemon on all hosts, each second: one component, with a period for each rank. */
static void one_name_on_all_hosts_is_one(void **state)
{
	const struct result_noise *noise;

	(void)state;
	for (uint64_t at = 0; at < 75; at += 5) {
		for (uint32_t rank = 0; rank < RANKS; rank++)
			hit(rank, at, "agent", rank == 3 ? 2 : 1, 10000);
	}
	window(0, 15, false);
	assert_int_equal(result->noise_count, 1);
	noise = result->noise;
	assert_int_equal(noise->slices, 15 * 5);
	assert_int_equal(noise->rank_count, RANKS);
	assert_int_equal(noise->host_count, 2);
	assert_string_equal(noise->hosts[1], "n1");
	assert_near(noise->period_s, 1, 1e-9);
	assert_near(noise->period_least_s, 0.5, 1e-9);
	assert_near(noise->period_most_s, 1, 1e-9);
	assert_near(noise->share, 0.75 / 60, 1e-9);
}

/* A job whose threads have all ended is reported for the last time. */
static void the_end_of_a_job_is_final(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 75; at++)
		hit(1, at, "ticker", 20, 200);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		assert_int_equal(analysis__thread_seen(analysis, rank, UTC(0), UTC(14)), 0);
	window(0, 15, false);
	assert_int_equal(result->noise_count, 1);
	assert_true(result->noise->final);
}

/* Loaded from a checkpoint, an analysis goes on as the one that was saved. */
static void checkpoints_have_all_of_it(void **state)
{
	struct analysis *other;
	struct vapro_config config;
	uint8_t *data;
	char err[256];
	size_t size;

	(void)state;
	for (uint64_t at = 0; at < 75; at++)
		hit(2, at, "ticker", 20, 200);
	window(0, 15, false);
	assert_int_equal(analysis__save(analysis, &data, &size, err, sizeof(err)), 0);
	sim_config(&config);
	config.noise_share = 0.005;
	config.min_lost_s = 0.1;
	other = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_int_equal(analysis__load(other, data, size, err, sizeof(err)), 0);
	free(data);
	analysis__free(analysis);
	analysis = other;
	for (uint64_t at = 75; at < 125; at++)
		hit(2, at, "ticker", 20, 200);
	window(15, 25, false);
	assert_int_equal(result->noise_count, 1);
	assert_int_equal(result->noise->id, 1);
	assert_int_equal(result->noise->revision, 2);
	assert_int_equal(result->noise->slices, 2500);
	assert_near(result->noise->period_s, 0.010, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(one_task_hits_one_rank, begin, end),
	    cmocka_unit_test_setup_teardown(one_name_on_all_hosts_is_one, begin, end),
	    cmocka_unit_test_setup_teardown(the_end_of_a_job_is_final, begin, end),
	    cmocka_unit_test_setup_teardown(checkpoints_have_all_of_it, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
