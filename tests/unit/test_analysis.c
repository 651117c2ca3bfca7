/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pure floors from end to end, on simulated jobs. */
#include "sim.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct sim_report report;

static void run(const struct sim_scenario *scenario)
{
	sim_run(scenario, VAPRO_BY_ARGUMENTS, &report);
}

/* Says all that was found before it fails. */
#define expect(condition)                                                                                              \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			sim_print(&report);                                                                            \
			fail_msg("%s", #condition);                                                                    \
		}                                                                                                      \
	} while (0)

static const struct sim_found *effect_of(uint64_t id)
{
	for (int i = 0; i < report.found_count; i++) {
		if (report.found[i].effect_of == id)
			return &report.found[i];
	}
	return NULL;
}

/* One hog, one alarm: at its rank, its time, its cost, by its name; the other rank's waiting is its effect. */
static void expect_hog(const struct sim_scenario *scenario)
{
	const struct sim_hog *hog = &scenario->hogs[0];
	double truth = 0;
	const struct sim_found *alarm, *effect;
	int last = hog->rank;

	run(scenario);
	for (int i = 0; i < scenario->hog_count; i++) {
		truth += report.truth_preempted[scenario->hogs[i].rank];
		last = scenario->hogs[i].rank;
	}
	expect(report.alarms == 1);
	expect(report.ever_alarms == 1);
	alarm = sim_alarm(&report);
	expect(alarm->class == VAPRO_COMPUTATION);
	expect(alarm->first_rank == hog->rank && alarm->last_rank == last);
	expect(alarm->rank_count == (uint32_t)scenario->hog_count);
	expect(fabs(alarm->begin - hog->begin) <= 0.4 && fabs(alarm->end - hog->end) <= 0.4);
	expect(fabs(alarm->lost - truth) <= 0.15 * truth);
	expect(alarm->lost == alarm->lost_by_class[VAPRO_COMPUTATION]);
	expect(!strcmp(alarm->major, "preempted"));
	expect(alarm->preempted > 0.9);
	expect(fabs(alarm->level_sum[1] - 1) < 1e-9 && fabs(alarm->level_sum[2] - 1) < 1e-9);
	expect(!strcmp(alarm->interferer, "hog") && alarm->interferer_pid >= hog->pid);
	expect(alarm->interferer_pid < hog->pid + (uint32_t)scenario->hog_count);
	expect(strstr(alarm->advice, "hog (pid ") != NULL);
	expect(alarm->closed == 1 && alarm->state == VAPRO_REGION_CLOSED);
	expect(alarm->exemplars == 5 && alarm->sites >= 2);
	expect(alarm->culprits >= 1);
	if (scenario->hog_count == scenario->ranks)
		return;
	effect = effect_of(alarm->id);
	expect(effect && effect->class == VAPRO_COMMUNICATION && !effect->alarm);
	expect(effect->first_rank != hog->rank);
}

static void test_hog(void **state)
{
	struct sim_scenario scenario = {
	    .ranks = 2, .seconds = 30, .seed = 1, .noise = 0.04, .hogs = {{0, 18.1, 21.1, 77}}, .hog_count = 1};

	(void)state;
	expect_hog(&scenario);
}

static void test_hog_straddles_windows(void **state)
{
	struct sim_scenario scenario = {.ranks = 2, .seconds = 40, .noise = 0.04, .hog_count = 1};

	(void)state;
	for (int i = 0; i < 8; i++) {
		scenario.seed = 20 + (uint64_t)i;
		scenario.hogs[0] = (struct sim_hog){i & 1, 12.3 + 0.35 * i, 15.3 + 0.35 * i, 77};
		expect_hog(&scenario);
	}
	/* Over three windows it is still one, with growing end. */
	scenario.seconds = 50;
	scenario.hogs[0] = (struct sim_hog){1, 14, 37, 77};
	expect_hog(&scenario);
	expect(sim_alarm(&report)->tellings == 4);
}

static void test_hog_of_one_second(void **state)
{
	struct sim_scenario scenario = {.ranks = 2, .seconds = 25, .noise = 0.04, .hog_count = 1, .bin_noise = 0.1};

	(void)state;
	for (int i = 0; i < 6; i++) {
		scenario.seed = 40 + (uint64_t)i;
		scenario.hogs[0] = (struct sim_hog){i & 1, 16.1 + 0.37 * i, 17.1 + 0.37 * i, 77};
		expect_hog(&scenario);
	}
}

static void test_hog_in_first_window(void **state)
{
	struct sim_scenario scenario = {.ranks = 2, .seconds = 30, .noise = 0.05, .hog_count = 1};

	(void)state;
	for (int i = 0; i < 4; i++) {
		scenario.seed = 60 + (uint64_t)i;
		scenario.hogs[0] = (struct sim_hog){i & 1, 5 + 0.13 * i, 8 + 0.13 * i, 77};
		expect_hog(&scenario);
	}
}

static void test_hog_at_other_scales(void **state)
{
	static const double scales[] = {0.1, 0.5, 5, 12};
	struct sim_scenario scenario = {.ranks = 2, .seconds = 30, .noise = 0.03, .hog_count = 1, .write_every = 10};

	(void)state;
	for (int i = 0; i < 4; i++) {
		scenario.seed = 70 + (uint64_t)i;
		scenario.scale = scales[i];
		scenario.hogs[0] = (struct sim_hog){i & 1, 19.3, 22.3, 77};
		expect_hog(&scenario);
	}
	/* Iterations of a third of a second: certified in the second window, told in retrospect. */
	scenario.scale = 25;
	scenario.hogs[0] = (struct sim_hog){1, 5.5, 8.5, 77};
	expect_hog(&scenario);
}

static void test_hog_next_to_naps(void **state)
{
	struct sim_scenario scenario = {.ranks = 2,
					.seconds = 30,
					.seed = 80,
					.noise = 0.04,
					.naps = true,
					.hogs = {{1, 18, 21, 77}},
					.hog_count = 1};

	(void)state;
	expect_hog(&scenario);
}

/* Threads that wait for each other at barriers are rows of their own; the rank's line stays one. */
static void test_threads_of_a_rank(void **state)
{
	struct sim_scenario scenario = {.ranks = 4,
					.seconds = 30,
					.seed = 3,
					.noise = 0.04,
					.hogs = {{2, 18, 21, 77}},
					.hog_count = 1,
					.threads = true};

	(void)state;
	expect_hog(&scenario);
	assert_string_equal(sim_alarm(&report)->who, "thread 2 of rank 0");
	assert_non_null(strstr(sim_alarm(&report)->advice, "thread 2 of rank 0"));
	assert_false(report.partial);
	assert_true(report.thread_lines >= 4);
	scenario.hog_count = 0;
	run(&scenario);
	expect(report.found_count == 0);
	assert_int_equal(report.thread_lines, 0);
}

static void test_threads_in_each_others_way(void **state)
{
	struct sim_scenario scenario = {.ranks = 4,
					.seconds = 30,
					.seed = 3,
					.noise = 0.04,
					.hogs = {{2, 18, 21, 1001}},
					.hog_count = 1,
					.threads = true};

	(void)state;
	/* it is preempted by another thread of its process */
	run(&scenario);
	expect(report.found_count > 0);
	expect(report.ever_alarms == 0);
	/* and what it loses to others is still told */
	scenario.hogs[0].pid = 77;
	scenario.spins = true;
	run(&scenario);
	expect(report.alarms == 1);
	expect(!strcmp(sim_alarm(&report)->who, "thread 2 of rank 0"));
	expect(effect_of(sim_alarm(&report)->id) != NULL);
	scenario.hog_count = 0;
	scenario.transfer_begin = 12;
	scenario.transfer_end = 22;
	scenario.transfer_ns = 2e7;
	run(&scenario);
	expect(report.found_count > 0);
	expect(report.ever_alarms == 0);
}

static void test_two_hogs(void **state)
{
	struct sim_scenario scenario = {.ranks = 2,
					.seconds = 30,
					.seed = 3,
					.noise = 0.04,
					.hogs = {{0, 18, 21, 77}, {1, 18, 21, 78}},
					.hog_count = 2};

	(void)state;
	expect_hog(&scenario);
}

static void test_two_hogs_apart(void **state)
{
	struct sim_scenario scenario = {.ranks = 2,
					.seconds = 40,
					.seed = 4,
					.noise = 0.04,
					.hogs = {{0, 18, 21, 77}, {1, 27, 30, 78}},
					.hog_count = 2};

	(void)state;
	run(&scenario);
	expect(report.alarms == 2 && report.ever_alarms == 2);
}

static void test_many_ranks(void **state)
{
	struct sim_scenario scenario = {
	    .ranks = 64, .seconds = 25, .seed = 5, .noise = 0.03, .scale = 2, .hog_count = 8};

	(void)state;
	for (int i = 0; i < 8; i++)
		scenario.hogs[i] = (struct sim_hog){16 + i, 17, 20, 500 + (uint32_t)i};
	expect_hog(&scenario);
}

static void test_quiet(void **state)
{
	static const double scales[] = {1, 0.3, 3, 1, 8};

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct sim_scenario scenario = {.ranks = 2 + i % 3,
						.seconds = 30,
						.seed = 100 + (uint64_t)i,
						.noise = 0.01 + 0.0037 * i,
						.bin_noise = i & 1 ? 0.15 : 0,
						.naps = i % 5 == 4,
						.write_every = i % 4 ? 0 : 25,
						.scale = scales[i % 5]};

		run(&scenario);
		expect(report.ever_alarms == 0);
		expect(report.coverage_max > 0.5);
		expect(report.drifts == 0);
	}
}

static void test_random_work(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		struct sim_scenario scenario = {.ranks = 2 + i,
						.seconds = 40,
						.seed = 200 + (uint64_t)i,
						.noise = 0.03,
						.random_work = true,
						.scale = i & 1 ? 1 : 0.2};

		run(&scenario);
		expect(report.coverage_max < 0.1);
		expect(report.ever_alarms == 0);
	}
}

static void test_phases(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct sim_scenario scenario = {
		    .ranks = 1 + i, .seconds = 60, .seed = 300 + (uint64_t)i, .noise = 0.04};

		/* One state changes its work on all ranks. */
		scenario.phase_at = 22 + 5 * i;
		scenario.phase_factor = 1.5 + 0.3 * i;
		run(&scenario);
		expect(report.ever_alarms == 0 && report.drifts == 0);
		/* All states do. */
		scenario.phase_factor = 0;
		scenario.grow_at = 23.7 + 5 * i;
		scenario.grow_factor = 1.5 + 0.3 * i;
		run(&scenario);
		expect(report.ever_alarms == 0 && report.drifts == 0);
		/* Work that alternates between two amounts. */
		scenario.grow_factor = 0;
		scenario.alternating = true;
		run(&scenario);
		expect(report.ever_alarms == 0);
	}
}

static void test_drift(void **state)
{
	struct sim_scenario scenario = {.ranks = 3, .seconds = 80, .seed = 6, .noise = 0.03, .drift = 0.007};

	(void)state;
	run(&scenario);
	expect(report.drifts > 0);
	expect(report.ever_alarms == 0);
}

static void test_io_stall(void **state)
{
	struct sim_scenario scenario = {.ranks = 2,
					.seconds = 105,
					.seed = 7,
					.noise = 0.03,
					.write_every = 10,
					.stall_rank = 1,
					.stall_at = 21,
					.stall_s = 60};

	(void)state;
	for (int tells = 0; tells < 2; tells++) {
		const struct sim_found *alarm;

		scenario.stall_tells = tells;
		run(&scenario);
		expect(report.alarms == 1 && report.ever_alarms == 1);
		alarm = sim_alarm(&report);
		expect(alarm->class == VAPRO_IO);
		expect(alarm->first_rank == 1 && alarm->rank_count == 1);
		expect(alarm->ever_open && !alarm->still_open);
		expect(alarm->tellings >= 6 && alarm->closed == 1);
		expect(fabs(alarm->begin - 21) <= 0.4 && fabs(alarm->end - 81) <= 0.4);
		expect(fabs(alarm->lost - 60) < 1);
		expect(alarm->lost_by_class[VAPRO_COMPUTATION] < 0.1);
		expect(effect_of(alarm->id) != NULL);
		expect(!tells || !strcmp(alarm->major, "blocked_io"));
		for (int i = 0; i < report.found_count; i++)
			expect(report.found[i].class != VAPRO_COMPUTATION);
	}
}

/* Writes that are sometimes slow, and always were, are nobody's alarm. */
static void test_io_habit(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct sim_scenario scenario = {.ranks = 2,
						.seconds = 40,
						.seed = 400 + (uint64_t)i,
						.noise = 0.03,
						.write_every = 1 + i,
						.flush_share = 0.1 + 0.15 * i};

		run(&scenario);
		expect(report.ever_alarms == 0);
	}
}

/* Programs that are irregular by themselves: two amounts of work at random, sleep at random. */
static void test_irregular_programs(void **state)
{
	static const double scales[] = {1, 8, 0.3, 3};

	(void)state;
	for (int i = 0; i < 16; i++) {
		struct sim_scenario scenario = {.ranks = 1 + i % 4,
						.seconds = 50,
						.seed = 500 + (uint64_t)i,
						.noise = 0.03,
						.scale = scales[i % 4]};

		scenario.modes = 0.1 + 0.05 * i;
		run(&scenario);
		expect(report.ever_alarms == 0);
		scenario.modes = 0;
		scenario.odd_naps = 0.02 * (1 + i);
		run(&scenario);
		expect(report.ever_alarms == 0);
	}
}

static void test_io_stall_until_the_end(void **state)
{
	struct sim_scenario scenario = {.ranks = 2,
					.seconds = 45,
					.seed = 8,
					.noise = 0.03,
					.write_every = 10,
					.stall_rank = 0,
					.stall_at = 18,
					.stall_s = 600,
					.stall_tells = true};
	const struct sim_found *alarm;

	(void)state;
	run(&scenario);
	expect(report.alarms == 1);
	alarm = sim_alarm(&report);
	expect(alarm->class == VAPRO_IO && alarm->still_open && alarm->state == VAPRO_REGION_CLOSED);
	expect(fabs(alarm->lost - 27) < 0.5);
}

static void test_memory(void **state)
{
	struct sim_scenario scenario = {.ranks = 4,
					.seconds = 40,
					.seed = 9,
					.noise = 0.03,
					.memory_rank = 2,
					.memory_begin = 19,
					.memory_end = 23,
					.memory_factor = 1.6};
	const struct sim_found *alarm;

	(void)state;
	/* The kernel tells nothing, but several states of one rank are slow together. */
	run(&scenario);
	expect(report.alarms == 1 && report.ever_alarms == 1);
	alarm = sim_alarm(&report);
	expect(alarm->first_rank == 2 && alarm->rank_count == 1);
	expect(fabs(alarm->begin - 19) <= 0.4 && fabs(alarm->end - 23) <= 0.4);
	expect(!strcmp(alarm->major, "on_cpu"));
	expect(alarm->culprit == 2);
	expect(effect_of(alarm->id) != NULL);
}

static void test_transfer(void **state)
{
	struct sim_scenario scenario = {.ranks = 4,
					.seconds = 40,
					.seed = 10,
					.noise = 0.01,
					.transfer_begin = 20,
					.transfer_end = 25,
					.transfer_ns = 4e6};
	const struct sim_found *alarm;

	(void)state;
	run(&scenario);
	expect(report.alarms == 1);
	alarm = sim_alarm(&report);
	expect(alarm->class == VAPRO_COMMUNICATION && alarm->rank_count == 4);
	expect(alarm->effect_of == 0 && alarm->lost_by_class[VAPRO_COMPUTATION] < 0.2);
	/* Where ranks are missing one of them may be late. */
	scenario.world_size = 8;
	run(&scenario);
	expect(report.alarms == 0 && report.partial);
}

static void test_imbalance(void **state)
{
	struct sim_scenario scenario = {.ranks = 3, .seconds = 30, .seed = 11, .noise = 0.03, .slow_rank_factor = 1.4};

	(void)state;
	run(&scenario);
	expect(report.ever_alarms == 0);
	expect(report.imbalances >= 3);
	expect(report.imbalance.slow_rank == 2 && report.imbalance.fast_rank < 2);
	expect(fabs(report.imbalance.slow_ns / report.imbalance.fast_ns - 1.4) < 0.05);
	expect(report.imbalance.share > 0.1);
}

static void test_governed(void **state)
{
	struct sim_scenario scenario = {.ranks = 2, .seconds = 30, .seed = 12, .noise = 0.03, .governed_share = 0.3};

	(void)state;
	run(&scenario);
	expect(report.ever_alarms == 0);
	expect(report.governed > 0.15 && report.governed <= 0.31);
	expect(report.coverage_last > 0.6 && report.coverage_last < 0.85);
	/* the same time, of calls that were let go one by one */
	scenario.thinned = true;
	run(&scenario);
	expect(report.ever_alarms == 0);
	expect(report.governed > 0.15 && report.governed <= 0.31);
	expect(report.not_seen < 0.1);
}

static void test_instructions(void **state)
{
	struct sim_scenario scenario = {
	    .ranks = 3, .seconds = 30, .seed = 13, .noise = 0.02, .hogs = {{1, 18, 21, 77}}, .hog_count = 1};
	const struct sim_found *alarm;

	(void)state;
	sim_run(&scenario, VAPRO_BY_INSTRUCTIONS, &report);
	expect(report.alarms == 1);
	alarm = sim_alarm(&report);
	expect(alarm->first_rank == 1 && alarm->rank_count == 1);
	expect(fabs(alarm->begin - 18) <= 0.4 && fabs(alarm->end - 21) <= 0.4);
	expect(!strcmp(alarm->major, "preempted"));
	/* The alternating program that needs caution without a PMU is simply two clusters with one. */
	scenario.hog_count = 0;
	scenario.alternating = true;
	sim_run(&scenario, VAPRO_BY_INSTRUCTIONS, &report);
	expect(report.alarms == 0 && report.found_count == 0);
	expect(report.coverage_computation > 0.8 && report.performance > 0.9);
}

/* A rank whose CPU is slow from start to end: other ranks tell, where it is known that they do the same. */
static void test_slow_from_start(void **state)
{
	struct sim_scenario scenario = {.ranks = 4,
					.seconds = 30,
					.seed = 14,
					.noise = 0.02,
					.memory_rank = 2,
					.memory_end = 1e9,
					.memory_factor = 1.5};
	const struct sim_found *alarm;

	(void)state;
	sim_run(&scenario, VAPRO_BY_INSTRUCTIONS, &report);
	expect(report.alarms == 1 && report.imbalances == 0);
	alarm = sim_alarm(&report);
	expect(alarm->class == VAPRO_COMPUTATION && alarm->confirmed);
	expect(alarm->first_rank == 2 && alarm->rank_count == 1);
	expect(alarm->begin < 0.5 && alarm->end > 29.5);
	expect(fabs(alarm->performance - 1 / 1.5) < 0.05);
	/* without instructions nobody knows whether it has more to do: shown, and no variance at all */
	sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
	expect(report.ever_alarms == 0);
	for (int i = 0; i < report.found_count; i++)
		expect(report.found[i].class != VAPRO_COMPUTATION);
	expect(report.imbalances >= 3 && report.imbalance.slow_rank == 2);
	expect(fabs(report.imbalance.slow_ns / report.imbalance.fast_ns - 1.5) < 0.05);
	/* and with instructions one that has more to do is not slow */
	scenario.memory_factor = 0;
	scenario.slow_rank_factor = 1.5;
	sim_run(&scenario, VAPRO_BY_INSTRUCTIONS, &report);
	expect(report.ever_alarms == 0);
}

static void test_deterministic(void **state)
{
	struct sim_scenario scenario = {
	    .ranks = 4, .seconds = 30, .seed = 14, .noise = 0.05, .hogs = {{1, 14, 16, 77}}, .hog_count = 1};
	struct sim_report first;

	(void)state;
	run(&scenario);
	first = report;
	run(&scenario);
	assert_memory_equal(first.truth_preempted, report.truth_preempted, sizeof(first.truth_preempted));
	assert_int_equal(first.found_count, report.found_count);
	for (int i = 0; i < first.found_count; i++)
		assert_true(first.found[i].lost == report.found[i].lost && first.found[i].id == report.found[i].id);
}

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
	/* Nothing to say. */
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
	/* Stuck in something never seen before: shown at once, not confirmed, and closed in the end. */
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
	/* Its end is told; what it lost counts once. */
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
	/* Told anew from its beginning, with a higher revision. */
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
		assert_true(results[i].coverage_total > 0.95);
		assert_int_equal(results[i].variance_count, 0);
		assert_int_equal(results[i].heatmaps[0].row_count, 1);
		assert_int_equal(results[i].heatmaps[0].bins, 50);
	}
	analysis__free(analysis);
}

/* A job that ended is forgotten, and its name may come back; the other one goes on as if nothing were. */
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

		for (uint32_t i = 0; i < 2; i++) {
			/* the first is there in the first window and, under its old name, in the last */
			for (int k = 0; k < (i || window == 0 ? 100 : window == 4 ? 5 : 0); k++) {
				struct vapro_bundle b =
				    fragment(i, 0, 10 * window + 0.1 * k, 10 * window + 0.1 * k + 0.099);

				assert_int_equal(analysis__add_bundle(analysis, &b), 0);
			}
		}
		if (window == 0 || window == 4)
			assert_int_equal(analysis__thread_seen(analysis, 0, begin, window ? 0 : begin + 9900000000ULL),
					 0);
		assert_int_equal(
		    analysis__end_window(analysis, begin, begin + 10000000000ULL, window == 4, &results, &count), 0);
		assert_int_equal(count, window == 0 || window == 4 ? 2 : 1);
		assert_true(results[count - 1].coverage_total > 0.95);
		if (window == 4)
			assert_true(results[0].coverage_total == 0); /* 5 fragments are too few for what is new */
	}
	analysis__free(analysis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hog),
	    cmocka_unit_test(test_hog_straddles_windows),
	    cmocka_unit_test(test_hog_of_one_second),
	    cmocka_unit_test(test_hog_in_first_window),
	    cmocka_unit_test(test_hog_at_other_scales),
	    cmocka_unit_test(test_hog_next_to_naps),
	    cmocka_unit_test(test_threads_of_a_rank),
	    cmocka_unit_test(test_threads_in_each_others_way),
	    cmocka_unit_test(test_two_hogs),
	    cmocka_unit_test(test_two_hogs_apart),
	    cmocka_unit_test(test_many_ranks),
	    cmocka_unit_test(test_quiet),
	    cmocka_unit_test(test_random_work),
	    cmocka_unit_test(test_phases),
	    cmocka_unit_test(test_drift),
	    cmocka_unit_test(test_io_stall),
	    cmocka_unit_test(test_io_habit),
	    cmocka_unit_test(test_irregular_programs),
	    cmocka_unit_test(test_io_stall_until_the_end),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_transfer),
	    cmocka_unit_test(test_imbalance),
	    cmocka_unit_test(test_governed),
	    cmocka_unit_test(test_instructions),
	    cmocka_unit_test(test_slow_from_start),
	    cmocka_unit_test(test_deterministic),
	    cmocka_unit_test(test_interface),
	    cmocka_unit_test(test_threads_and_jobs),
	    cmocka_unit_test(test_ended_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
