/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs of many shapes (tools/accuracy/shape*.c): a rank's time is complete, and who waits for whom. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/accuracy/baseline.h"
#include "../../tools/accuracy/cases.h"
#include "../../tools/accuracy/score.h"
#include "../../tools/accuracy/shape.h"
#include "near.h"

#define RANKS 32

/* Adds up what a job's ranks did. */
struct recorder {
	struct stream_sink sink;
	uint32_t threads;
	uint64_t first[RANKS], last_end[RANKS], seen_from[RANKS];
	double seconds[RANKS], open[RANKS], of_state[RANKS][JOB_STEPS], asleep[RANKS];
	unsigned fragments[RANKS][JOB_STEPS];
};

static struct recorder recorder;

static void put_bundle(const struct vapro_bundle *bundle)
{
	double seconds = (double)bundle->sum_ns / 1e9;
	uint32_t rank = bundle->thread;

	assert_true(rank < recorder.threads);
	if (bundle->flags & VAPRO_BUNDLE_OPEN) {
		recorder.open[rank] = seconds;
		return;
	}
	assert_true(bundle->end_ns >= recorder.last_end[rank]);
	recorder.last_end[rank] = bundle->end_ns;
	if (!recorder.first[rank])
		recorder.first[rank] = bundle->start_ns;
	recorder.seconds[rank] += seconds;
	recorder.of_state[rank][bundle->state] += seconds;
	recorder.fragments[rank][bundle->state] += bundle->n;
	recorder.asleep[rank] += bundle->factor[VAPRO_BLOCKED_OTHER] / 1e9;
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	(void)sink;
	if (event->type == STREAM_THREAD)
		assert_int_equal(event->thread.id, recorder.threads++);
	if (event->type == STREAM_SEEN)
		recorder.seen_from[event->seen.thread] = event->seen.from_ns;
	if (event->type == STREAM_BUNDLE)
		put_bundle(&event->bundle);
	if (event->type == STREAM_WINDOW && !event->window.last)
		memset(recorder.open, 0, sizeof(recorder.open));
	return 0;
}

static struct job_totals simulate(const struct job *job, struct truths *truths)
{
	struct job_totals totals;

	memset(&recorder, 0, sizeof(recorder));
	recorder.sink.put = put;
	assert_int_equal(job__run(job, VAPRO_BY_INSTRUCTIONS, 15, &recorder.sink, truths, &totals), 0);
	return totals;
}

static struct job make(const struct shape *shape, double seconds)
{
	struct job job = {.seed = 5, .ranks = 16, .hosts = 4, .seconds = seconds, .few = true, .shape = shape};
	struct draw draw = {.seed = 11};

	shape->prepare(&job, &draw);
	job.seconds = seconds;
	return job;
}

static struct job_effect *fault(struct job *job, enum effect_kind kind, int rank, double begin, double end,
				double factor)
{
	struct job_effect *effect =
	    job__fault(job, VAPRO_COMPUTATION, FINDING_ALARM, FINDING_ALARM, kind, begin, end, factor);

	effect->ranks = (struct job_ranks){RANKS_RANGE, rank, rank};
	return effect;
}

/* One rank stands still for two seconds. */
static struct job stopped(const struct shape *shape, int rank)
{
	struct job job = make(shape, 20);

	job.jitter = 0;
	fault(&job, EFFECT_STALLS, rank, 10, 0, 1)->length = 2;
	return job;
}

static void test_time_is_complete(void **state)
{
	static const struct shape *const shapes[] = {&shape_grid,   &shape_sweep, &shape_farm,	    &shape_stealing,
						     &shape_amr,    &shape_mpmd,  &shape_uncoupled, &shape_gpu,
						     &shape_nested, &shape_phases};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct job job = make(shapes[i], 45);
		struct job_totals totals;
		struct truths truths;

		fault(&job, EFFECT_CPU_BUSY, 3, 10, 20, 2);
		job__effect(&job, EFFECT_SLOW, 5, 25, 1.5)->ranks = (struct job_ranks){RANKS_HOST, 1, 1};
		job__effect(&job, EFFECT_CALLS, 15, 25, 3);
		job.noise = (struct job_noise){.heavy = .1, .wander = .03, .wander_s = 4, .pareto = 1.6};
		totals = simulate(&job, &truths);
		assert_near(totals.fragment_seconds, totals.elapsed_seconds, 1e-6);
		for (int rank = 0; rank < job.ranks; rank++)
			assert_near(recorder.seconds[rank] + recorder.open[rank], job.seconds, 1e-5);
		assert_int_equal(truths.count, 1);
		assert_int_equal(truths.items[0].ranks[0], 3);
		assert_true(truths.items[0].begin >= 10 && truths.items[0].end <= 20.01);
		truths__free(&truths);
	}
}

/* The row of the late rank waits in the sum of rows, all others in the sum of columns: each rank waits once. */
static void test_grid_waits_by_rows_and_columns(void **state)
{
	enum { ROW = 1, COLUMN = 3 };
	struct job job = stopped(&shape_grid, 5);
	struct truths truths;

	(void)state;
	job.effects[0].steps = 1; /* before the sum of rows */
	simulate(&job, &truths);
	for (int rank = 0; rank < job.ranks; rank++) {
		bool row = rank / 4 == 1, late = rank == 5;
		double in_row = recorder.of_state[rank][ROW], in_column = recorder.of_state[rank][COLUMN];

		assert_true(late || row ? in_column < 0.5 : in_column > 1.9);
		assert_true(row && !late ? in_row > 1.9 : in_row < 0.5);
	}
	assert_near(truths.items[0].lost[VAPRO_COMPUTATION], 2, 1e-6);
	truths__free(&truths);
}

/* Ranks that are down the stream of a sweep wait for a late one; in the next sweep back the others do. */
static void test_only_ranks_downstream_wait(void **state)
{
	struct job job = make(&shape_sweep, 0.4), late;
	double without[RANKS];
	struct truths truths;

	(void)state;
	job.jitter = 0;
	simulate(&job, &truths);
	truths__free(&truths);
	for (int rank = 0; rank < job.ranks; rank++)
		without[rank] = (double)recorder.first[rank] + 1e9 * recorder.of_state[rank][0];
	late = job;
	fault(&late, EFFECT_STALLS, 5, 0, 0, 1)->length = 0.3;
	simulate(&late, &truths);
	truths__free(&truths);
	for (int rank = 0; rank < job.ranks; rank++) {
		bool downstream = rank % 4 >= 1 && rank / 4 >= 1 && rank != 5;
		double waits = recorder.of_state[rank][0] + recorder.open[rank];

		/* ranks above and left of it wait for no rank before the sweep turns */
		if (rank == 0 || rank == 1 || rank == 4)
			assert_true(waits * 1e9 + (double)recorder.first[rank] <= without[rank] + 0.35e9);
		if (downstream)
			assert_true(waits > 0.25);
	}
}

/* A fault of a rank for which no other one waits costs this rank alone. */
static void test_uncoupled_ranks(void **state)
{
	struct job job = make(&shape_uncoupled, 20);
	unsigned before[RANKS];
	struct truths truths;
	double lost;

	(void)state;
	job.jitter = 0;
	simulate(&job, &truths);
	truths__free(&truths);
	for (int rank = 0; rank < job.ranks; rank++)
		before[rank] = recorder.fragments[rank][0];
	fault(&job, EFFECT_CPU_BUSY, 7, 5, 15, 2);
	simulate(&job, &truths);
	for (int rank = 0; rank < job.ranks; rank++) {
		if (rank != 7)
			assert_true(abs((int)recorder.fragments[rank][0] - (int)before[rank]) <= 1);
	}
	/* it does as much less as the truth says, but for the fragment that the end cuts off */
	lost = truths.items[0].lost[VAPRO_COMPUTATION] + truths.items[0].lost[VAPRO_COMMUNICATION];
	assert_near((double)recorder.fragments[7][0] / before[7] + lost / 20, 1, 1.5 / before[7]);
	truths__free(&truths);
}

/* Other workers do the tasks of a slow one, and none of them waits longer. */
static void test_farm_gives_tasks_to_the_free(void **state)
{
	enum { TASK = 0, NEXT = 3 };
	struct job job = make(&shape_farm, 30);
	double waits = 0, waited = 0;
	unsigned tasks = 0;
	struct truths truths;

	(void)state;
	simulate(&job, &truths);
	truths__free(&truths);
	for (int rank = 1; rank < job.ranks; rank++)
		waited += recorder.of_state[rank][NEXT];
	fault(&job, EFFECT_SLOW, 3, 5, 25, 3);
	simulate(&job, &truths);
	truths__free(&truths);
	for (int rank = 1; rank < job.ranks; rank++) {
		waits += recorder.of_state[rank][NEXT];
		tasks += rank == 3 ? 0 : recorder.fragments[rank][TASK];
	}
	assert_true(waits < 1.1 * waited + 0.1);
	assert_true(recorder.fragments[3][TASK] * (unsigned)(job.ranks - 2) < tasks * 2 / 3);
}

/* A rank that waits for its device sleeps, and a slow device costs what the kernel attributes. */
static void test_device(void **state)
{
	struct job job = make(&shape_gpu, 20);
	double share, lost;
	struct truths truths;

	(void)state;
	job.jitter = 0;
	simulate(&job, &truths);
	truths__free(&truths);
	share = recorder.asleep[4];
	assert_true(share > 0.7 * 20);
	fault(&job, EFFECT_DEVICE, 4, 5, 15, 1.5);
	simulate(&job, &truths);
	lost = truths.items[0].lost[VAPRO_COMPUTATION];
	assert_true(lost > 2 && lost < 4);
	assert_near(truths.items[0].attributed, lost, 1e-9);
	/* all others wait for it: they sleep less by their share of what was lost */
	assert_near(recorder.asleep[4] - recorder.asleep[5], lost, 0.05);
	truths__free(&truths);
}

/* A slowdown of one long piece of work lasts to its end. */
static void test_long_piece(void **state)
{
	struct job job = {
	    .seed = 1, .ranks = 8, .hosts = 2, .seconds = 60, .few = true, .iterations = 1, .shape = &shape_pieces};
	struct truths truths;

	(void)state;
	job.shape->prepare(&job, NULL);
	job.steps[0].ns = 40e9;
	fault(&job, EFFECT_SLOW, 3, 0, 0, 1.4);
	simulate(&job, &truths);
	assert_near(truths.items[0].lost[VAPRO_COMPUTATION], 16, 1e-6);
	assert_near(truths.items[0].end, 56, 0.01);
	assert_near(recorder.of_state[2][1], 16, 0.01); /* waits in the sum */
	truths__free(&truths);
}

static void test_ranks_that_are_observed_late(void **state)
{
	struct job job = make(&shape_grid, 30);
	struct truths truths;

	(void)state;
	job.watch = (struct job_watch){12, 10, 25};
	simulate(&job, &truths);
	truths__free(&truths);
	assert_int_equal(recorder.threads, 16);
	for (int rank = 0; rank < 16; rank++) {
		uint64_t from = JOB_MONO_NS + (rank < 12 ? 0 : 10000000000ULL);

		assert_int_equal(recorder.seen_from[rank], from);
		assert_true(recorder.first[rank] >= from);
		assert_true(recorder.last_end[rank] <= JOB_MONO_NS + (rank < 12 ? 30 : 25) * 1000000000ULL);
		assert_true(recorder.seconds[rank] + recorder.open[rank] > (rank < 12 ? 29.9 : 14.6));
	}
	job.watch = (struct job_watch){12, 1, 1};
	simulate(&job, &truths);
	truths__free(&truths);
	assert_int_equal(recorder.threads, 12);
}

static void find(const struct job *job, struct findings *findings, struct truths *truths)
{
	struct stream_sink inner = {.put = put}, *sink;
	struct job_totals totals;

	memset(&recorder, 0, sizeof(recorder));
	sink = baseline__sink(&inner, job, VAPRO_BY_INSTRUCTIONS);
	assert_non_null(sink);
	assert_int_equal(job__run(job, VAPRO_BY_INSTRUCTIONS, 15, sink, truths, &totals), 0);
	assert_int_equal(baseline__find(sink, findings), 0);
	stream__close(sink);
}

static void test_simple_rule(void **state)
{
	struct job job = make(&shape_amr, 30);
	struct findings findings = {0};
	struct score score;
	struct truths truths;

	(void)state;
	job.jitter = 0.01;
	find(&job, &findings, &truths);
	for (size_t i = 0; i < findings.variance_count; i++)
		assert_false(findings.variances[i].alarm && findings.variances[i].class == VAPRO_COMPUTATION);
	findings__free(&findings);
	truths__free(&truths);
	fault(&job, EFFECT_SLOW, 6, 12, 22, 1.8);
	findings = (struct findings){0};
	find(&job, &findings, &truths);
	score__job(&job, VAPRO_BY_INSTRUCTIONS, &truths, &findings, &score);
	assert_int_equal(score.truth_count, 1);
	assert_true(score.truths[0].hit && score.truths[0].jaccard == 1);
	assert_near(1 + score.truths[0].lost_error, 1, 0.25);
	findings__free(&findings);
	truths__free(&truths);
}

/* NoiseMiner's NAMD: eager sends that take 5.7 ms more at random, of one rank, seldom, and of all ranks. */
static void test_random_sends(void **state)
{
	struct vapro_config config;
	int count = 0;

	(void)state;
	config__init(&config);
	for (size_t i = 0; i < shape_call_cases.count; i++) {
		const struct accuracy_case *at = &shape_call_cases.cases[i];
		struct findings findings = {0};
		struct stream_sink *sink;
		struct job_totals totals;
		struct truths truths;
		struct score score;
		struct job job;

		if (strncmp(at->kind, "namd-sends", 10) != 0)
			continue;
		cases__make(at, at->lengths_ms[0], 2, &job);
		sink = findings__sink(&config, VAPRO_BY_ARGUMENTS, &findings);
		assert_non_null(sink);
		assert_int_equal(job__run(&job, VAPRO_BY_ARGUMENTS, config.window_s, sink, &truths, &totals), 0);
		stream__close(sink);
		score__job(&job, VAPRO_BY_ARGUMENTS, &truths, &findings, &score);
		assert_int_equal(score.truth_count, 1);
		assert_true(score.truths[0].hit && score.truths[0].jaccard == 1);
		assert_near(1 + score.truths[0].lost_error, 1, 0.05);
		for (size_t k = 0; k < findings.variance_count; k++)
			assert_null(strstr(findings.variances[k].evidence, "late peers"));
		findings__free(&findings);
		truths__free(&truths);
		count++;
	}
	assert_int_equal(count, 3);
}

/* Both tables have as many jobs as the figures of recall and of false alarms need, and no name twice. */
static void test_cases(void **state)
{
	const struct case_table *const tables[] = {&shape_fault_cases, &shape_call_cases, &shape_quiet_cases};

	(void)state;
	assert_true(shape_fault_cases.count >= 60 && shape_quiet_cases.count >= 100);
	for (size_t table = 0; table < 3; table++) {
		for (size_t i = 0; i < tables[table]->count; i++) {
			const struct accuracy_case *at = &tables[table]->cases[i];
			struct job job;

			for (uint64_t seed = 1; seed < 5; seed++) {
				cases__make(at, at->lengths_ms[0], seed, &job);
				assert_string_equal(at->part, "shapes");
				assert_true(job.ranks > 0 && job.hosts > 0 && job.seconds > 0 && job.step_count > 0);
				assert_true(job.step_count <= JOB_STEPS && job.effect_count <= JOB_EFFECTS);
				assert_true(!(at->type & CASE_QUIET) == (job.fault_count > 0));
				for (int effect = 0; effect < job.effect_count; effect++)
					assert_true(job.effects[effect].begin < job.seconds);
				assert_true(job.watch.first < job.ranks);
			}
			for (size_t other = 0; other < i; other++)
				assert_string_not_equal(at->kind, tables[table]->cases[other].kind);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_time_is_complete),
	    cmocka_unit_test(test_grid_waits_by_rows_and_columns),
	    cmocka_unit_test(test_only_ranks_downstream_wait),
	    cmocka_unit_test(test_uncoupled_ranks),
	    cmocka_unit_test(test_farm_gives_tasks_to_the_free),
	    cmocka_unit_test(test_device),
	    cmocka_unit_test(test_long_piece),
	    cmocka_unit_test(test_ranks_that_are_observed_late),
	    cmocka_unit_test(test_simple_rule),
	    cmocka_unit_test(test_random_sends),
	    cmocka_unit_test(test_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
