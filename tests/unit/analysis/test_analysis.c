/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pure floors from end to end, on simulated jobs: with hogs, and without. */
#include "simulated.h"

/* Expects one alarm for one hog: with its rank, its time, its cost and its name. */
static const struct sim_found *expect_cause(const struct sim_scenario *scenario)
{
	const struct sim_hog *hog = &scenario->hogs[0];
	double truth = 0;
	const struct sim_found *alarm;
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
	/* at least what the kernel attributes; of calls those that were held up by it alone */
	expect(alarm->lost >= alarm->lost_by_class[VAPRO_COMPUTATION]);
	expect(alarm->lost <=
	       1.02 * (alarm->lost_by_class[VAPRO_COMPUTATION] + fmax(0, alarm->lost_by_class[VAPRO_COMMUNICATION])));
	expect(!strcmp(alarm->major, "preempted"));
	expect(alarm->preempted > 0.9);
	expect(fabs(alarm->level_sum[1] - 1) < 1e-9 && fabs(alarm->level_sum[2] - 1) < 1e-9);
	expect(!strcmp(alarm->interferer, "hog") && alarm->interferer_pid >= hog->pid);
	expect(alarm->interferer_pid < hog->pid + (uint32_t)scenario->hog_count);
	expect(strstr(alarm->advice, "hog (pid ") != NULL);
	expect(alarm->closed == 1 && alarm->state == VAPRO_REGION_CLOSED);
	expect(alarm->exemplars == 5 && alarm->sites >= 2);
	expect(alarm->culprits >= 1);
	return alarm;
}

/* Expects the alarm, and the other rank's waiting as its effect. */
static void expect_hog(const struct sim_scenario *scenario)
{
	const struct sim_found *alarm = expect_cause(scenario), *effect;

	if (scenario->hog_count == scenario->ranks)
		return;
	effect = effect_of(alarm->id);
	expect(effect && effect->class == VAPRO_COMMUNICATION && !effect->alarm);
	expect(effect->first_rank != scenario->hogs[0].rank);
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
	/* Over three windows there is still one alarm, with growing end. */
	scenario.seconds = 50;
	scenario.hogs[0] = (struct sim_hog){1, 14, 37, 77};
	expect_hog(&scenario);
	expect(sim_alarm(&report)->reports == 4);
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
	/* Iterations of a third of a second: certified in the second window, reported in retrospect. */
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
	/* another thread of its process preempts the thread */
	run(&scenario);
	expect(report.found_count > 0);
	expect(report.ever_alarms == 0);
	/* its loss to other processes is still reported */
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

static void test_oversubscribed(void **state)
{
	struct sim_scenario scenario = {.ranks = 8,
					.seconds = 30,
					.seed = 3,
					.noise = 0.04,
					.hogs = {{2, 18, 21, 1001}},
					.hog_count = 1,
					.cpus = "0-1"};
	const struct sim_found *found;

	(void)state;
	/* 8 ranks on 2 CPUs: time that one rank takes from another is no alarm, and the words have the numbers */
	run(&scenario);
	expect(report.found_count > 0);
	expect(report.ever_alarms == 0);
	for (found = report.found; found->effect_of; found++)
		;
	expect(found->oversubscribed.cpus == 2);
	expect(found->oversubscribed.threads > 7 && found->oversubscribed.threads < 8.1);
	expect(strstr(found->evidence, "oversubscribed: ") && strstr(found->evidence, "share 2 CPUs"));
	expect(strstr(found->advice, "The job is oversubscribed"));
	/* of a job that fills a part of the window only, its own time counts */
	scenario.seconds = 6;
	scenario.hogs[0] = (struct sim_hog){2, 3, 5, 1001};
	run(&scenario);
	expect(report.found_count > 0);
	expect(report.ever_alarms == 0);
	for (found = report.found; found->effect_of; found++)
		;
	expect(found->oversubscribed.threads > 7 && found->oversubscribed.threads < 8.1);
	scenario.seconds = 30;
	scenario.hogs[0] = (struct sim_hog){2, 18, 21, 1001};
	/* with a CPU for each the rank was displaced: an alarm, but no other rank is called an intruder */
	scenario.cpus = "0-3,8-11";
	run(&scenario);
	expect(report.alarms == 1);
	found = sim_alarm(&report);
	expect(!found->oversubscribed.cpus);
	expect(found->relation == VAPRO_SAME_JOB);
	expect(strstr(found->advice, "Threads of the job ran on each other's CPUs"));
	/* a hog from outside is an alarm in an oversubscribed job, too */
	scenario.hogs[0].pid = 77;
	scenario.cpus = "0-1";
	run(&scenario);
	expect(report.alarms == 1);
	expect(!sim_alarm(&report)->oversubscribed.cpus);
	expect(sim_alarm(&report)->relation == VAPRO_FOREIGN);
	scenario.hogs[0].pid = SIM_MONITOR;
	run(&scenario);
	expect(report.alarms == 1);
	expect(sim_alarm(&report)->relation == VAPRO_MONITOR);
	expect(strstr(sim_alarm(&report)->advice, "This monitor"));
}

/* What vaprod takes while it attaches is its overhead, which is reported as that. */
static void test_monitor_for_a_moment(void **state)
{
	struct sim_scenario scenario = {.ranks = 2,
					.seconds = 30,
					.seed = 3,
					.noise = 0.02,
					.hogs = {{1, 18.01, 18.09, SIM_MONITOR}},
					.hog_count = 1};

	(void)state;
	run(&scenario);
	expect(report.found_count == 1);
	expect(report.ever_alarms == 0);
	expect(report.found[0].relation == VAPRO_MONITOR);
	scenario.hogs[0].pid = 77;
	run(&scenario);
	expect(report.alarms == 1);
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

/* Time that others take is lost whatever the work is; the speed of the rest is unknown. */
static void test_hog_in_random_work(void **state)
{
	struct sim_scenario scenario = {.ranks = 2,
					.seconds = 40,
					.noise = 0.03,
					.random_work = true,
					.hogs = {{0, 18.1, 22.1, 77}},
					.hog_count = 1};

	(void)state;
	for (int i = 0; i < 6; i++) {
		scenario.seed = 250 + (uint64_t)i;
		scenario.hogs[0].rank = i & 1;
		scenario.scale = i < 3 ? 1 : 5;
		expect_cause(&scenario);
		expect(report.coverage_max < 0.1);
		expect(isnan(report.performance));
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
		/* All states change their work. */
		scenario.phase_factor = 0;
		scenario.grow_at = 23.7 + 5 * i;
		scenario.grow_factor = 1.5 + 0.3 * i;
		run(&scenario);
		expect(report.ever_alarms == 0);
		/* Work that alternates between two amounts. */
		scenario.grow_factor = 0;
		scenario.alternating = true;
		run(&scenario);
		expect(report.ever_alarms == 0);
	}
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
	    cmocka_unit_test(test_monitor_for_a_moment),
	    cmocka_unit_test(test_two_hogs),
	    cmocka_unit_test(test_two_hogs_apart),
	    cmocka_unit_test(test_oversubscribed),
	    cmocka_unit_test(test_many_ranks),
	    cmocka_unit_test(test_quiet),
	    cmocka_unit_test(test_random_work),
	    cmocka_unit_test(test_hog_in_random_work),
	    cmocka_unit_test(test_phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
