/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A new analysis takes over from a checkpoint before and after each window, in simulated jobs: every line is that of
 * a run without checkpoints.
 */
#include "checkpointed.h"

#include "sim.h"

/* Runs a scenario without and with checkpoints. */
static void check_scenario(const struct sim_scenario *scenario, enum vapro_workload_source source)
{
	static struct sim_report report;
	struct lines plain = {0}, taken_over = {0};

	report = (struct sim_report){0};
	run.into = &plain;
	sim_run(scenario, source, &report);
	end_run();
	report = (struct sim_report){0};
	run.into = &taken_over;
	run.checkpoints = true;
	run.taken_over = 0;
	sim_run(scenario, source, &report);
	assert_true(run.taken_over >= 2 * plain.windows);
	end_run();
	assert_same(&plain, &taken_over);
	clear_lines(&plain);
	clear_lines(&taken_over);
}

static void test_hog(void **state)
{
	const struct sim_scenario scenario = {
	    .ranks = 4,
	    .seconds = 62,
	    .seed = 7,
	    .noise = 0.03,
	    .hogs = {{.rank = 2, .begin = 25, .end = 44, .pid = 4711}},
	    .hog_count = 1,
	};

	(void)state;
	check_scenario(&scenario, VAPRO_BY_ARGUMENTS);
	check_scenario(&scenario, VAPRO_BY_INSTRUCTIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hog),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(run.last);
	return failed;
}
