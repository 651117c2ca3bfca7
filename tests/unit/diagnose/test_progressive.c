// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Diagnosis, step by step and on request: counters of one stage after the other, regions chosen by hand,
 * queries during a run.
 */
#include "slow_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* One stage after the other, each with counters of its own, as far down as a factor is major; then stage 1 again. */
static void test_progressive(void **state)
{
	static const enum factor_node nodes[] = {NODE_DRAM,	   NODE_RETIRING,
						 NODE_PREEMPTED,   NODE_FRONTEND_LATENCY,
						 NODE_CLEARS,	   NODE_FRONTEND_BANDWIDTH,
						 NODE_MISPREDICTS, NODE_CORE,
						 NODE_L1,	   NODE_L2,
						 NODE_L3,	   NODE_STORE};

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		struct run run = {.causes = {{nodes[i], 0.6, 1}}, .progressive = true, .seed = 9};
		const char *expected[5] = {"", "", "", "", ""};
		int stage = factor_infos[nodes[i]].stage;
		struct diagnosed diagnosed;
		size_t at = 0;

		/* time that the kernel attributes needs no counters */
		if (nodes[i] == NODE_PREEMPTED)
			stage = 1;
		if (stage == 3)
			expected[1] = "backend";
		if (stage >= 2)
			expected[stage - 1] = factor_infos[factor_infos[nodes[i]].parent].name;
		slow_rank__run(&run, &diagnosed);
		for (int k = 0; k < diagnosed.request_count; k++) {
			if (strcmp(diagnosed.expands[k], expected[at])) {
				at++;
				assert_true(at < sizeof(expected) / sizeof(*expected));
				assert_string_equal(diagnosed.expands[k], expected[at]);
			}
		}
		assert_int_equal(at, stage == 1 ? 0 : stage); /* and back to stage 1 */
		slow_rank__expect_only(&diagnosed, nodes[i], 5);
		assert_true(diagnosed.final);
		for (uint32_t k = 1; k < diagnosed.reports; k++)
			assert_true(diagnosed.stages[k] >= diagnosed.stages[k - 1]);
		if (stage < 3)
			continue;
		/* Counts of a part of the time stand for the whole loss. */
		assert_true(slow_rank__find(&diagnosed, "backend")->impact > 0.9 * diagnosed.lost);
		assert_true(fabs(slow_rank__find(&diagnosed, factor_infos[nodes[i]].name)->impact /
				     slow_rank__find(&diagnosed, "backend")->impact -
				 1) < 0.06);
		assert_int_equal(diagnosed.stages[0], 1);
		assert_false(diagnosed.finals[0]);
		assert_int_equal(diagnosed.stages[diagnosed.reports - 1], 3);
	}
	slow_rank__report_worst("one stage after the other");
}

/* A region chosen by hand: inside of the slow time, around it, and where nothing is slow. */
static void test_selection(void **state)
{
	static const int32_t slow_rank[][2] = {{SLOW, SLOW}}, others[][2] = {{0, 0}, {2, 3}};
	const struct vapro_selection inside = {.ranks = slow_rank,
					       .range_count = 1,
					       .begin_ns = SIM_BEGIN_NS + (uint64_t)13e9,
					       .end_ns = SIM_BEGIN_NS + (uint64_t)15e9};
	const struct vapro_selection all = {.relative = true, .begin_ns = (uint64_t)10e9};
	const struct vapro_selection quick = {
	    .ranks = others, .range_count = 2, .relative = true, .begin_ns = (uint64_t)12e9, .end_ns = (uint64_t)18e9};
	static const enum factor_node nodes[] = {NODE_RETIRING, NODE_WAKEUP_WAIT, NODE_SYSTEM_CALLS,
						 NODE_HARD_IRQ, NODE_CORE,	  NODE_L2};
	struct run run = {.causes = {{NODE_DRAM, 0.6, 1}}, .groups = ALL_GROUPS, .selection = &inside, .seed = 6};
	struct diagnosed diagnosed;

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		run.causes[0].node = nodes[i];
		run.seed = 60 + i;
		slow_rank__run(&run, &diagnosed);
		assert_int_equal(diagnosed.chosen_count, 1);
		slow_rank__expect_only(&diagnosed, nodes[i], 3);
	}
	slow_rank__report_worst("a region chosen by hand");
	run.causes[0].node = NODE_DRAM;
	run.seed = 6;
	slow_rank__run(&run, &diagnosed);
	assert_int_equal(diagnosed.chosen_count, 1);
	slow_rank__expect_only(&diagnosed, NODE_DRAM, 3);
	/* Two of six seconds of the variance. */
	assert_true(fabs(diagnosed.chosen[0].lost / diagnosed.lost - 1 / 3.0) < 0.03);
	assert_true(diagnosed.chosen[0].begin == 13 && diagnosed.chosen[0].end == 15);
	assert_int_equal(diagnosed.chosen[0].normal, 0);
	assert_string_equal(diagnosed.chosen[0].who, "rank 1");
	run.selection = &all;
	run.seed = 6;
	slow_rank__run(&run, &diagnosed);
	assert_int_equal(diagnosed.chosen_count, 1);
	slow_rank__expect_only(&diagnosed, NODE_DRAM, 3);
	/* All time beyond the fastest fragments adds up, quiet as it is. */
	assert_true(diagnosed.chosen[0].lost > diagnosed.lost &&
		    diagnosed.chosen[0].lost < diagnosed.lost + 0.02 * RANKS * 20);
	assert_true(diagnosed.chosen[0].normal > 1000);
	assert_true(diagnosed.chosen[0].begin == 10 && diagnosed.chosen[0].end == 30);
	assert_string_equal(diagnosed.chosen[0].who, "ranks 0-3");
	run.selection = &quick;
	run.seed = 6;
	slow_rank__run(&run, &diagnosed);
	assert_int_equal(diagnosed.chosen_count, 1);
	assert_int_equal(diagnosed.chosen[0].abnormal, 0);
	for (uint32_t i = 0; i < diagnosed.count; i++)
		assert_false(diagnosed.factor[i].major);
	assert_true(diagnosed.chosen[0].performance > 0.98);
	assert_string_equal(diagnosed.chosen[0].who, "ranks 0,2-3");
}

static void assert_same(const struct diagnosed *a, const struct diagnosed *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->reports, b->reports);
	assert_string_equal(a->verdict, b->verdict);
	assert_true(a->lost == b->lost);
	for (uint32_t i = 0; i < a->count; i++) {
		assert_string_equal(a->factor[i].name, b->factor[i].name);
		assert_true(a->factor[i].share == b->factor[i].share && a->factor[i].impact == b->factor[i].impact);
	}
}

/*
 * A query between windows has the response of a region chosen beforehand, as long as its data is
 * retained, and the run goes on as without a query.
 */
static void test_question(void **state)
{
	static const int32_t slow_rank[][2] = {{SLOW, SLOW}};
	const struct vapro_selection inside = {.ranks = slow_rank,
					       .range_count = 1,
					       .begin_ns = SIM_BEGIN_NS + (uint64_t)13e9,
					       .end_ns = SIM_BEGIN_NS + (uint64_t)15e9},
				     all = {.begin_ns = SIM_BEGIN_NS},
				     over = {.begin_ns = SIM_BEGIN_NS, .end_ns = SIM_BEGIN_NS + (uint64_t)9e9},
				     later = {.begin_ns = SIM_BEGIN_NS + (uint64_t)25e9};
	static const struct {
		double at, window, remember;
		uint64_t bytes;
		double retained_from;
		bool reported;
	} diagnoses[] = {
	    {14.9, 0, 0, 0, 0, true},		  /* in the first window, which is not reported yet */
	    {24.9, 0, 0, 0, 10, true},		  /* the present view reaches back to it */
	    {28.9, 3, 0, 0, 26, false},		  /* the view does not reach back any more */
	    {28.9, 3, 60, 0, 0, true},		  /* reached with retention for 60 s */
	    {28.9, 3, 20, 0, 7, true},		  /* retained for just long enough */
	    {28.9, 3, 10, 0, 17, false},	  /* not retained for long enough */
	    {28.9, 3, 60, 1000 * 250, 20, false}, /* too few bytes retained */
	};
	struct run run = {.causes = {{NODE_DRAM, 0.6, 1}}, .groups = ALL_GROUPS, .seed = 6}, quiet_run;
	struct diagnosed diagnosed, quiet_response;
	struct response *response =
	    mmap(NULL, sizeof(*response), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(response != MAP_FAILED);
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		run.seed = 6;
		run.response = NULL;
		run.query = NULL;
		run.query_at = diagnoses[i].at;
		run.window = diagnoses[i].window;
		run.remember = diagnoses[i].remember;
		run.remember_bytes = diagnoses[i].bytes;
		quiet_run = run;
		quiet_run.remember = 0;
		slow_rank__run(&quiet_run, &quiet_response);
		run.response = response;
		run.query = &inside;
		slow_rank__run(&run, &diagnosed);
		assert_same(&diagnosed, &quiet_response);
		assert_int_equal(response->jobs, 1);
		assert_true(response->end == diagnoses[i].at);
		if (diagnoses[i].bytes ? response->begin < diagnoses[i].retained_from
				       : fabs(response->begin - diagnoses[i].retained_from) > 0.21)
			fail_msg("case %zu begins at %g", i, response->begin);
		assert_int_equal(response->diagnosed.chosen_count, diagnoses[i].reported);
		if (!diagnoses[i].reported) {
			assert_int_equal(response->fragments, 0);
			continue;
		}
		slow_rank__expect_only(&response->diagnosed, NODE_DRAM, 3);
		assert_string_equal(response->diagnosed.chosen[0].who, "rank 1");
		assert_true(response->diagnosed.chosen[0].begin == 13);
		assert_true(response->diagnosed.chosen[0].end == fmin(15, diagnoses[i].at));
		assert_true(response->fragments > 60 && response->judged > 0.99);
	}
	/* regions of all times, of the past, and of the future */
	run.window = run.remember = 0;
	run.remember_bytes = 0;
	run.query_at = 24.9;
	run.seed = 6;
	run.query = &all;
	slow_rank__run(&run, &diagnosed);
	assert_int_equal(response->diagnosed.chosen_count, 1);
	assert_true(response->diagnosed.chosen[0].begin == response->begin &&
		    response->diagnosed.chosen[0].end == 24.9);
	assert_true(response->diagnosed.chosen[0].lost > diagnosed.lost);
	assert_true(response->diagnosed.chosen[0].lost < diagnosed.lost + 0.02 * RANKS * 15);
	run.query = &over;
	run.seed = 6;
	slow_rank__run(&run, &diagnosed);
	assert_true(response->jobs == 1 && !response->diagnosed.chosen_count && !response->fragments);
	run.query = &later;
	run.seed = 6;
	slow_rank__run(&run, &diagnosed);
	assert_true(response->jobs == 1 && !response->diagnosed.chosen_count && !response->fragments);
	munmap(response, sizeof(*response));
}

static void add_write(struct analysis *analysis, double begin, double end, uint32_t flags)
{
	struct vapro_bundle bundle = {.state = 1, .n = 1, .flags = flags};

	bundle.start_ns = SIM_BEGIN_NS + (uint64_t)llround(begin * 1e9);
	bundle.end_ns = SIM_BEGIN_NS + (uint64_t)llround(end * 1e9);
	bundle.sum_ns = bundle.min_ns = bundle.max_ns = bundle.end_ns - bundle.start_ns;
	bundle.factor[VAPRO_BLOCKED_IO] = (double)bundle.sum_ns * 0.9;
	bundle.magnitude_min[VAPRO_BYTES] = bundle.magnitude_max[VAPRO_BYTES] = 4096;
	assert_int_equal(analysis__add_bundle(analysis, &bundle), 0);
}

static void end_window(struct analysis *analysis, double begin, double end)
{
	const struct job_result *results;
	uint32_t count;

	assert_int_equal(analysis__end_window(analysis, SIM_BEGIN_NS + (uint64_t)(begin * 1e9),
					      SIM_BEGIN_NS + (uint64_t)(end * 1e9), false, &results, &count),
			 0);
}

/* A rank that is stuck in a write is in the response; only once, when the write has ended. */
static void test_question_about_the_stuck(void **state)
{
	static const struct vapro_state write = {1,  VAPRO_IO, NULL, "a@b+0x5", "fd_kind=file function=write",
						 "", NULL,     NULL, NULL,	NULL};
	const struct vapro_selection all = {.begin_ns = SIM_BEGIN_NS};
	struct response *response =
	    mmap(NULL, sizeof(*response), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct run run = {.query = &all, .response = response, .query_at = 16};
	struct analysis *analysis;
	struct vapro_config config;

	(void)state;
	assert_true(response != MAP_FAILED);
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_non_null(analysis);
	analysis__remember(analysis, 60, 1U << 30);
	assert_int_equal(
	    analysis__add_thread(analysis,
				 &(struct vapro_thread){.world_size = 1, .pid = 9, .tid = 9, .job = "j", .host = "n"}),
	    0);
	{
		struct vapro_state first = {0, VAPRO_COMPUTATION, "a", "b", "", "", NULL, NULL, NULL, NULL};

		assert_int_equal(analysis__add_state(analysis, &first), 0);
		assert_int_equal(analysis__add_state(analysis, &write), 0);
	}
	for (double t = 0.1; t < 12; t += 0.02)
		add_write(analysis, t, t + 0.002, 0);
	add_write(analysis, 12, 15, VAPRO_BUNDLE_OPEN);
	end_window(analysis, 0, 15);
	slow_rank__query(&run, analysis);
	assert_int_equal(response->diagnosed.chosen_count, 1);
	assert_int_equal(response->diagnosed.chosen[0].class, VAPRO_IO);
	assert_true(fabs(response->diagnosed.chosen[0].lost - 3) < 0.05);
	assert_true(slow_rank__find(&response->diagnosed, "blocked_io")->major);
	add_write(analysis, 12, 17, 0);
	for (double t = 17.1; t < 24; t += 0.02)
		add_write(analysis, t, t + 0.002, 0);
	run.query_at = 25;
	slow_rank__query(&run, analysis);
	assert_true(fabs(response->diagnosed.chosen[0].lost - 5) < 0.05);
	end_window(analysis, 15, 25);
	run.query_at = 26;
	slow_rank__query(&run, analysis);
	assert_true(fabs(response->diagnosed.chosen[0].lost - 5) < 0.05);
	/* the whole job is silent: its activity is retained, for a minute */
	end_window(analysis, 25, 35);
	end_window(analysis, 35, 45);
	run.query_at = 45;
	slow_rank__query(&run, analysis);
	assert_int_equal(response->diagnosed.chosen_count, 1);
	assert_true(fabs(response->diagnosed.chosen[0].lost - 5) < 0.05);
	analysis__free(analysis);
	munmap(response, sizeof(*response));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_progressive),
	    cmocka_unit_test(test_selection),
	    cmocka_unit_test(test_question),
	    cmocka_unit_test(test_question_about_the_stuck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
