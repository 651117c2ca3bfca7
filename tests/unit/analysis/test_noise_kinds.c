/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Noises other than hogs in simulated jobs, from end to end: each is reported as its kind. */
#include "simulated.h"

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
	for (int attributed = 0; attributed < 2; attributed++) {
		const struct sim_found *alarm;

		scenario.stall_attributed = attributed;
		run(&scenario);
		expect(report.alarms == 1 && report.ever_alarms == 1);
		alarm = sim_alarm(&report);
		expect(alarm->class == VAPRO_IO);
		expect(alarm->first_rank == 1 && alarm->rank_count == 1);
		expect(alarm->ever_open && !alarm->still_open);
		expect(alarm->reports >= 6 && alarm->closed == 1);
		expect(fabs(alarm->begin - 21) <= 0.4 && fabs(alarm->end - 81) <= 0.4);
		expect(fabs(alarm->lost - 60) < 1);
		expect(alarm->lost_by_class[VAPRO_COMPUTATION] < 0.1);
		expect(effect_of(alarm->id) != NULL);
		expect(!attributed || !strcmp(alarm->major, "blocked_io"));
		for (int i = 0; i < report.found_count; i++)
			expect(report.found[i].class != VAPRO_COMPUTATION);
	}
}

/* Writes that are sometimes slow, and always were, are no alarm. */
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
					.stall_attributed = true};
	const struct sim_found *alarm;

	(void)state;
	run(&scenario);
	expect(report.alarms == 1);
	alarm = sim_alarm(&report);
	expect(alarm->class == VAPRO_IO && alarm->still_open && alarm->state == VAPRO_REGION_CLOSED);
	expect(fabs(alarm->lost - 27) < 0.5);
}

static const struct sim_scenario slow_memory = {.ranks = 4,
						.seconds = 40,
						.seed = 9,
						.noise = 0.03,
						.memory_rank = 2,
						.memory_begin = 19,
						.memory_end = 23,
						.memory_factor = 1.6};

static void test_memory(void **state)
{
	struct sim_scenario scenario = slow_memory;
	const struct sim_found *alarm;

	(void)state;
	/* The kernel attributes nothing, but several states of one rank are slow together. */
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
	/* Where ranks are not seen, such a rank may be late. */
	scenario.world_size = 8;
	run(&scenario);
	expect(report.alarms == 0 && report.partial);
}

/*
 * Ranks that agree certify long computations from twenty of each on: the verdict rests on computations that were held
 * until there were enough.
 */
static void test_few_that_agree(void **state)
{
	struct sim_scenario scenario = {.ranks = 8, .seconds = 45, .seed = 10, .noise = 0.005, .scale = 70};

	(void)state;
	run(&scenario);
	expect(report.coverage_last > 0.7 && report.alarms == 0);
	/* one rank has no other rank to agree with */
	scenario.ranks = 1;
	run(&scenario);
	expect(report.coverage_last < 0.1);
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
	/* the same time, of calls that were suppressed one by one */
	scenario.thinned = true;
	run(&scenario);
	expect(report.ever_alarms == 0);
	expect(report.governed > 0.15 && report.governed <= 0.31);
	expect(report.not_seen < 0.1);
}

/* Of a region that was observed in part, the loss is projected; what was observed as a whole is not. */
static void test_observed_in_part(void **state)
{
	struct sim_scenario scenario = slow_memory;
	const struct sim_found *alarm;
	double lost;

	(void)state;
	run(&scenario);
	alarm = sim_alarm(&report);
	lost = alarm->lost;
	expect(alarm->observed > 0.9 && alarm->whole_lost == lost);
	scenario.governed_share = 0.4;
	run(&scenario);
	alarm = sim_alarm(&report);
	expect(alarm->observed > 0.5 && alarm->observed < 0.7);
	expect(alarm->lost < 0.8 * lost);
	expect(fabs(alarm->whole_lost / lost - 1) < 0.1);
	/* the kernel attributes at all times */
	scenario.memory_factor = 1;
	scenario.hogs[0] = (struct sim_hog){1, 18, 21, 77};
	scenario.hog_count = 1;
	run(&scenario);
	alarm = sim_alarm(&report);
	expect(alarm->whole_lost - alarm->lost < 0.1 * alarm->lost);
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

/* A rank whose CPU is slow from start to end: other ranks show it, where their work is known to be the same. */
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
	expect(report.alarms == 1 && report.imbalances > 0 && report.imbalance.certain);
	alarm = sim_alarm(&report);
	expect(alarm->class == VAPRO_COMPUTATION && alarm->confirmed);
	expect(alarm->first_rank == 2 && alarm->rank_count == 1);
	expect(alarm->begin < 0.5 && alarm->end > 29.5);
	expect(fabs(alarm->performance - 1 / 1.5) < 0.05);
	expect(fabs(alarm->ratio_slow - 1.5) < 0.05);
	/* where only one kind of work is slow, other work does not hide its slowness */
	scenario.memory_first = true;
	sim_run(&scenario, VAPRO_BY_INSTRUCTIONS, &report);
	alarm = sim_alarm(&report);
	expect(alarm && alarm->performance > 1 / 1.4);
	expect(fabs(alarm->ratio_slow - 1.5) < 0.03 && fabs(alarm->site_ratio - 1.5) < 0.03);
	expect(fabs(report.imbalance.ratio_slow - 1.5) < 0.03 && report.imbalance.ratio < 1.4);
	scenario.memory_first = false;
	/* without instructions the amount of work is unknown: shown, and no variance */
	sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
	expect(report.ever_alarms == 0);
	for (int i = 0; i < report.found_count; i++)
		expect(report.found[i].class != VAPRO_COMPUTATION);
	expect(report.imbalances >= 3 && report.imbalance.slow_rank == 2);
	expect(fabs(report.imbalance.slow_ns / report.imbalance.fast_ns - 1.5) < 0.05);
	/* with instructions a rank with more work is not slow */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_drift),
	    cmocka_unit_test(test_io_stall),
	    cmocka_unit_test(test_io_habit),
	    cmocka_unit_test(test_irregular_programs),
	    cmocka_unit_test(test_io_stall_until_the_end),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_transfer),
	    cmocka_unit_test(test_few_that_agree),
	    cmocka_unit_test(test_imbalance),
	    cmocka_unit_test(test_governed),
	    cmocka_unit_test(test_observed_in_part),
	    cmocka_unit_test(test_instructions),
	    cmocka_unit_test(test_slow_from_start),
	    cmocka_unit_test(test_deterministic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
