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

/* A job of one process, of which fragments come from a time on, of a state of its own. */
static void add_short_job(struct analysis *analysis, uint32_t number, uint64_t from_ns, unsigned fragments)
{
	char name[32], to[32];
	const struct vapro_thread thread = {
	    .id = number, .rank = -1, .pid = 10 + number, .tid = 10 + number, .job = name, .host = "n1"};
	const struct vapro_state state = {.id = number, .class = VAPRO_COMPUTATION, .from = "a@1+0x1", .to = to};
	const struct vapro_place place = {.thread = number, .cpu = 1, .socket = -1, .numa = -1, .cgroup = name};

	snprintf(name, sizeof(name), "none:pid-%u", 10 + number);
	snprintf(to, sizeof(to), "a@1+0x%x", number);
	assert_int_equal(analysis__add_thread(analysis, &thread), 0);
	assert_int_equal(analysis__add_state(analysis, &state), 0);
	assert_int_equal(analysis__place(analysis, &place), 0);
	assert_int_equal(analysis__thread_seen(analysis, number, from_ns, 0), 0);
	for (unsigned i = 0; i < fragments; i++) {
		struct vapro_bundle bundle = {.thread = number,
					      .state = number,
					      .n = 1,
					      .start_ns = from_ns + i * 50000000ULL,
					      .sum_ns = i % 40 > 30 ? 45000000 : 20000000};

		bundle.end_ns = bundle.start_ns + bundle.sum_ns;
		bundle.min_ns = bundle.max_ns = bundle.sum_ns;
		assert_int_equal(analysis__add_bundle(analysis, &bundle), 0);
	}
}

/* Three jobs in each window, one of which goes on into the next one. */
static void run_short_jobs(struct lines *into, bool checkpoints)
{
	const uint64_t window_ns = 10000000000ULL;
	const struct job_result *results;
	struct vapro_config config;
	struct analysis *analysis;
	uint32_t number = 0, count;

	run.into = into;
	run.checkpoints = checkpoints;
	run.resumed = 0;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	for (uint64_t window = 0; window < 20; window++) {
		uint64_t begin_ns = SIM_BEGIN_NS + window * window_ns, end_ns = begin_ns + window_ns;

		for (uint32_t i = 0; i < 3; i++, number++) {
			add_short_job(analysis, number, begin_ns + i * 1000000, i ? 80 : 190);
			assert_int_equal(
			    analysis__thread_seen(analysis, number, 0, i ? end_ns - i : end_ns + window_ns / 2), 0);
			if (number >= 9)
				assert_int_equal(analysis__state_gone(analysis, number - 9), 0);
		}
		assert_int_equal(analysis__end_window(analysis, begin_ns, end_ns, window == 19, &results, &count), 0);
	}
	assert_true(stg__threads(analysis->context.stg) < 20);
	assert_true(stg__states(analysis->context.stg) < 20);
	assert_true(stg__jobs(analysis->context.stg) < 20);
	analysis__free(analysis);
}

/* Numbers that are given again are the same ones after loading. */
static void test_short_jobs(void **state)
{
	struct lines plain = {0}, resumed = {0};

	(void)state;
	run_short_jobs(&plain, false);
	end_run();
	run_short_jobs(&resumed, true);
	assert_int_equal(run.resumed, 40);
	end_run();
	assert_same(&plain, &resumed);
	clear_lines(&plain);
	clear_lines(&resumed);
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
	    cmocka_unit_test(test_hog),	       cmocka_unit_test(test_memory_cap), cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_short_jobs), cmocka_unit_test(test_refused),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(run.last);
	return failed;
}
