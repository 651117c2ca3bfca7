/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A new analysis takes over from a checkpoint before and after each window, in simulated jobs: every line is that of
 * a run without checkpoints.
 */
#include "checkpointed.h"

#include <errno.h>

#include "sim.h"

static const struct sim_scenario hog = {
    .ranks = 4,
    .seconds = 62,
    .seed = 7,
    .noise = 0.03,
    .write_every = 10,
    .hogs = {{.rank = 2, .begin = 25, .end = 44, .pid = 4711}},
    .hog_count = 1,
    .cpus = "0-3",
    .inside = true,
};

static void run_scenario(const struct sim_scenario *scenario, enum vapro_workload_source source, struct lines *into,
			 bool checkpoints)
{
	static struct sim_report report;

	report = (struct sim_report){0};
	run.into = into;
	run.checkpoints = checkpoints;
	run.resumed = 0;
	run.shed = run.variances = 0;
	sim_run(scenario, source, &report);
}

/* Runs a scenario without and with checkpoints. */
static void check(const struct sim_scenario *scenario, enum vapro_workload_source source, uint64_t memory_cap,
		  bool remembers)
{
	struct lines plain = {0}, resumed = {0};
	uint64_t shed, variances;

	run.memory_cap = memory_cap;
	run.remembers = remembers;
	run_scenario(scenario, source, &plain, false);
	shed = run.shed;
	variances = run.variances;
	end_run();
	run.memory_cap = memory_cap;
	run.remembers = remembers;
	run_scenario(scenario, source, &resumed, true);
	assert_int_equal(run.resumed, 2 * plain.windows);
	end_run();
	assert_same(&plain, &resumed);
	assert_true(variances > 0); /* there was something to be forgotten */
	assert_true(!memory_cap || shed > 0);
	clear_lines(&plain);
	clear_lines(&resumed);
}

static void test_hog(void **state)
{
	(void)state;
	check(&hog, VAPRO_BY_ARGUMENTS, 0, false);
	check(&hog, VAPRO_BY_INSTRUCTIONS, 0, false);
}

/* Data is shed by bytes that are held: the same are held after loading. */
static void test_memory_cap(void **state)
{
	(void)state;
	check(&hog, VAPRO_BY_ARGUMENTS, 700000, false);
	check(&hog, VAPRO_BY_ARGUMENTS, 1000000, true);
	check(&hog, VAPRO_BY_INSTRUCTIONS, 800000, true);
}

static void test_kinds(void **state)
{
	const struct sim_scenario scenarios[] = {
	    /* groups of durations in one state, a rank that always has more work, slow memory */
	    {.ranks = 4,
	     .seconds = 45,
	     .seed = 3,
	     .noise = 0.03,
	     .kernels = SIM_ALTERNATING,
	     .slow_rank_factor = 1.3,
	     .memory_rank = 1,
	     .memory_begin = 20,
	     .memory_end = 35,
	     .memory_factor = 1.6},
	    /* an open fragment over windows, naps, late certification */
	    {.ranks = 3,
	     .seconds = 45,
	     .seed = 5,
	     .noise = 0.04,
	     .naps = true,
	     .write_every = 7,
	     .stall_rank = 1,
	     .stall_at = 18,
	     .stall_s = 14,
	     .stall_attributed = true,
	     .flush_share = 0.05},
	    /* drift, transfers, a governor, hogs on several ranks */
	    {.ranks = 4,
	     .seconds = 62,
	     .seed = 9,
	     .noise = 0.03,
	     .drift = 0.007,
	     .transfer_begin = 22,
	     .transfer_end = 34,
	     .transfer_ns = 4e6,
	     .governed_share = 0.2,
	     .hogs = {{.rank = 0, .begin = 12, .end = 30, .pid = 11}, {.rank = 3, .begin = 28, .end = 41, .pid = 12}},
	     .hog_count = 2},
	    /* threads of one process that share CPUs */
	    {.ranks = 4,
	     .seconds = 40,
	     .seed = 2,
	     .noise = 0.03,
	     .threads = true,
	     .cpus = "0-1",
	     .spins = true,
	     .hogs = {{.rank = 1, .begin = 15, .end = 28, .pid = SIM_MONITOR}},
	     .hog_count = 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		check(&scenarios[i], VAPRO_BY_ARGUMENTS, 0, i & 1);
		check(&scenarios[i], VAPRO_BY_INSTRUCTIONS, 0, i & 1);
	}
}

/* What cannot be saved or loaded is refused with a sentence. */
static void test_refused(void **state)
{
	const struct vapro_selection selection = {.end_ns = SIM_BEGIN_NS};
	struct vapro_config config;
	struct analysis *analysis, *other;
	char err[256];
	uint8_t *data, *none;
	size_t size, none_size;

	(void)state;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_int_equal(analysis__save(analysis, &data, &size, err, sizeof(err)), 0);
	config.threshold = 0.5;
	other = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_int_equal(analysis__load(other, data, size, err, sizeof(err)), -ENOTSUP);
	assert_string_equal(err, "the checkpoint is refused: it was made with other settings (threshold: 85%; here "
				 "threshold: 50%)");
	analysis__free(other);
	config.threshold = 0.85;
	other = analysis__new(&config, VAPRO_BY_INSTRUCTIONS);
	assert_int_equal(analysis__load(other, data, size, err, sizeof(err)), -ENOTSUP);
	assert_non_null(strstr(err, "workload source: arguments"));
	analysis__free(other);
	assert_int_equal(
	    analysis__add_thread(analysis, &(struct vapro_thread){.rank = 0, .job = "j", .host = "n1", .pid = 1}), 0);
	assert_int_equal(analysis__load(analysis, data, size, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "into a new analysis only"));
	free(data);
	analysis__free(analysis);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_int_equal(analysis__select(analysis, &selection), 0);
	assert_int_equal(analysis__save(analysis, &none, &none_size, err, sizeof(err)), -ENOTSUP);
	assert_string_equal(err,
			    "the analysis cannot be saved: a region chosen by hand cannot be part of a checkpoint");
	assert_null(none);
	analysis__free(analysis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hog),
	    cmocka_unit_test(test_memory_cap),
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_refused),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(run.last);
	return failed;
}
