/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The generator of synthetic jobs and the scorer: the measure of accuracy must itself be right. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/accuracy/cases.h"
#include "../../tools/accuracy/score.h"
#include "near.h"

#define RANKS 64

/* A sink that checks the order of events and sums them up. */
struct recorder {
	struct stream_sink sink;
	uint64_t hash, bundles, open, last_end[RANKS], window_end;
	unsigned windows, states, threads;
	double seconds[RANKS], open_seconds[RANKS], class_seconds[RANKS][VAPRO_CLASSES];
	double factor[RANKS][VAPRO_FACTORS], preempted[RANKS],
	    instructions[RANKS]; /* instructions of a fragment of the first step */
	enum vapro_class class[JOB_STEPS];
	bool ended;
};

static struct recorder recorder;

static void put_bundle(const struct vapro_bundle *bundle)
{
	double seconds = (double)bundle->sum_ns / 1e9;

	assert_true(bundle->thread < recorder.threads && bundle->state < recorder.states);
	assert_true(bundle->n && bundle->min_ns <= bundle->max_ns && bundle->end_ns >= bundle->start_ns);
	assert_true(bundle->sum_ns <= bundle->end_ns - bundle->start_ns + 1000ULL * bundle->n);
	if (bundle->flags & VAPRO_BUNDLE_OPEN) {
		recorder.open++;
		recorder.open_seconds[bundle->thread] = seconds;
		return;
	}
	assert_true(bundle->end_ns >= recorder.last_end[bundle->thread]);
	recorder.last_end[bundle->thread] = bundle->end_ns;
	recorder.bundles++;
	if (!bundle->state)
		recorder.instructions[bundle->thread] = bundle->magnitude_min[VAPRO_INSTRUCTIONS];
	recorder.seconds[bundle->thread] += seconds;
	recorder.class_seconds[bundle->thread][recorder.class[bundle->state]] += seconds;
	for (int i = 0; recorder.class[bundle->state] == VAPRO_COMPUTATION && i < VAPRO_FACTORS; i++)
		recorder.factor[bundle->thread][i] += bundle->factor[i] / 1e9;
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	(void)sink;
	for (size_t i = 0; event->type == STREAM_BUNDLE && i < sizeof(event->bundle) / 8; i++) {
		uint64_t word;

		memcpy(&word, (const char *)&event->bundle + 8 * i, 8);
		recorder.hash = draw__mix(recorder.hash ^ word);
	}
	switch (event->type) {
	case STREAM_THREAD:
		recorder.threads++;
		break;
	case STREAM_STATE:
		recorder.class[recorder.states++] = event->state.class;
		break;
	case STREAM_BUNDLE:
		put_bundle(&event->bundle);
		break;
	case STREAM_INTERFERENCE:
		recorder.preempted[event->interference.thread] += (double)event->interference.preempted_ns / 1e9;
		break;
	case STREAM_WINDOW:
		if (recorder.windows++)
			assert_int_equal(event->window.begin_ns, recorder.window_end);
		recorder.window_end = event->window.end_ns;
		for (int rank = 0; rank < RANKS; rank++) {
			assert_true(recorder.last_end[rank] + JOB_BEGIN_NS <= recorder.window_end + JOB_MONO_NS);
			recorder.open_seconds[rank] *= event->window.last;
		}
		break;
	case STREAM_END:
		recorder.ended = true;
		break;
	default:
		break;
	}
	return 0;
}

static struct job_totals simulate(const struct job *job, enum vapro_workload_source source, struct truths *truths)
{
	struct job_totals totals;

	memset(&recorder, 0, sizeof(recorder));
	recorder.sink.put = put;
	assert_int_equal(job__run(job, source, 15, &recorder.sink, truths, &totals), 0);
	assert_true(recorder.ended);
	assert_int_equal(recorder.bundles, totals.bundles);
	return totals;
}

static struct job usual(double length_ms)
{
	struct job job = {.seed = 7, .ranks = 16, .hosts = 2, .seconds = 40, .jitter = 0.01};

	job__program(&job, length_ms * 1e6, 0.05, 0.1);
	return job;
}

static void test_time_is_complete(void **state)
{
	struct job job = usual(20);
	struct job_totals totals;
	struct truths truths;

	(void)state;
	job__effect(&job, EFFECT_CPU_BUSY, 10, 20, 2)->ranks = (struct job_ranks){RANKS_RANGE, 3, 3};
	job__effect(&job, EFFECT_SLOW, 5, 25, 1.5)->ranks = (struct job_ranks){RANKS_HOST, 1, 1};
	job__effect(&job, EFFECT_TAILS, 0, 0, 3)->share = 0.01;
	job__effect(&job, EFFECT_CALLS, 15, 30, 3);
	totals = simulate(&job, VAPRO_BY_INSTRUCTIONS, &truths);
	assert_near(totals.fragment_seconds, totals.elapsed_seconds, 1e-6);
	for (int rank = 0; rank < job.ranks; rank++)
		assert_near(recorder.seconds[rank] + recorder.open_seconds[rank], job.seconds, 1e-5);
	truths__free(&truths);
}

static void test_bulk_time_is_complete(void **state)
{
	struct job job = usual(5);
	struct truths truths;

	(void)state;
	job.step_count = JOB_ALLREDUCE + 1;
	job.bulk = true;
	simulate(&job, VAPRO_BY_INSTRUCTIONS, &truths);
	assert_int_equal(recorder.bundles, 16 * 40 * 5 * 4);
	for (int rank = 0; rank < job.ranks; rank++)
		assert_near(recorder.seconds[rank], job.seconds, 1e-3);
	truths__free(&truths);
}

static void test_same_seed_same_events(void **state)
{
	struct job job = usual(1);
	struct truths truths;
	uint64_t hash;

	(void)state;
	job.seconds = 10;
	job__effect(&job, EFFECT_CPU_BUSY, 3, 5, 2)->ranks = (struct job_ranks){RANKS_RANGE, 3, 3};
	simulate(&job, VAPRO_BY_ARGUMENTS, &truths);
	truths__free(&truths);
	hash = recorder.hash;
	simulate(&job, VAPRO_BY_ARGUMENTS, &truths);
	truths__free(&truths);
	assert_true(hash == recorder.hash);
	job.seed++;
	simulate(&job, VAPRO_BY_ARGUMENTS, &truths);
	truths__free(&truths);
	assert_true(hash != recorder.hash);
}

static void test_hog_takes_what_the_truth_says(void **state)
{
	struct job job = usual(20);
	struct truths truths;

	(void)state;
	job__fault(&job, VAPRO_COMPUTATION, FINDING_ALARM, FINDING_ALARM, EFFECT_CPU_BUSY, 20, 30, 2)->ranks =
	    (struct job_ranks){RANKS_RANGE, 5, 5};
	simulate(&job, VAPRO_BY_ARGUMENTS, &truths);
	assert_int_equal(truths.count, 1);
	assert_int_equal(truths.items[0].rank_count, 1);
	assert_int_equal(truths.items[0].ranks[0], 5);
	assert_near(recorder.factor[5][VAPRO_PREEMPTED], truths.items[0].lost[VAPRO_COMPUTATION], 1e-6);
	assert_near(truths.items[0].attributed,
		    truths.items[0].lost[0] + truths.items[0].lost[1] + truths.items[0].lost[2], 1e-9);
	assert_near(1 + truths.items[0].lost[VAPRO_COMPUTATION] / truths.items[0].base, 2, 0.06);
	assert_near(truths.items[0].begin, 20, 0.05);
	assert_near(truths.items[0].end, 30, 0.05);
	assert_false(truths.items[0].unsupported);
	/* a waiting rank is preempted, too, at no cost */
	assert_true(recorder.preempted[5] >= truths.items[0].lost[VAPRO_COMPUTATION]);
	for (int rank = 0; rank < job.ranks; rank++)
		assert_true(rank == 5 || recorder.preempted[rank] == 0);
	truths__free(&truths);
}

static void test_slow_node_and_waiting(void **state)
{
	struct job job = usual(20), calm = usual(20);
	double before, calls = 0;
	struct truths truths;

	(void)state;
	simulate(&calm, VAPRO_BY_ARGUMENTS, &truths);
	truths__free(&truths);
	before = recorder.class_seconds[0][VAPRO_COMMUNICATION];
	job__fault(&job, VAPRO_COMPUTATION, FINDING_ALARM, FINDING_PLACE, EFFECT_SLOW, 0, 0, 1.25)->ranks =
	    (struct job_ranks){RANKS_HOST, 1, 1};
	simulate(&job, VAPRO_BY_ARGUMENTS, &truths);
	assert_int_equal(truths.items[0].rank_count, 8);
	assert_int_equal(truths.items[0].ranks[0], 8);
	assert_near(1 + truths.items[0].lost[VAPRO_COMPUTATION] / truths.items[0].base, 1.25, 1e-6);
	assert_true(truths.items[0].expected == FINDING_PLACE);
	assert_false(truths.items[0].unsupported);
	/* a state's first ten members are warm-up: it can be judged from the eleventh on */
	assert_true(truths.items[0].judged > 10 * 0.97 * 1.25 * (job.steps[0].ns + job.steps[2].ns) / 1e9);
	/* the others wait for the slow rank, and their waiting is no loss of theirs */
	calls = recorder.class_seconds[0][VAPRO_COMMUNICATION];
	assert_near(calls - before, truths.items[0].lost[VAPRO_COMPUTATION] / 8, 0.15 * (calls - before));
	truths__free(&truths);
}

static void test_frequency_and_memory_show_in_factors(void **state)
{
	struct job job = usual(20);
	struct truths truths;
	double on_cpu = 0;

	(void)state;
	job__fault(&job, VAPRO_COMPUTATION, FINDING_ALARM, FINDING_ALARM, EFFECT_FREQUENCY, 20, 0, 1.5)->ranks =
	    (struct job_ranks){RANKS_RANGE, 2, 2};
	job__fault(&job, VAPRO_COMPUTATION, FINDING_ALARM, FINDING_PLACE, EFFECT_SLOW, 20, 0, 1.5)->ranks =
	    (struct job_ranks){RANKS_RANGE, 9, 9};
	simulate(&job, VAPRO_BY_INSTRUCTIONS, &truths);
	assert_int_equal(truths.count, 2);
	/* all but the fragment that was open at the end */
	assert_near(recorder.factor[2][VAPRO_FREQUENCY], truths.items[0].lost[VAPRO_COMPUTATION], 0.02);
	assert_true(recorder.factor[9][VAPRO_FREQUENCY] == 0);
	assert_near(recorder.factor[9][VAPRO_MEMORY] - recorder.factor[8][VAPRO_MEMORY],
		    truths.items[1].lost[VAPRO_COMPUTATION], 0.02 * truths.items[1].lost[VAPRO_COMPUTATION] + 0.3);
	for (int i = VAPRO_RETIRING; i <= VAPRO_BACKEND; i++)
		on_cpu += recorder.factor[9][i];
	assert_near(on_cpu, recorder.class_seconds[9][VAPRO_COMPUTATION], 1e-3);
	truths__free(&truths);
}

static void test_stalls_are_truths_of_their_own(void **state)
{
	struct job job = usual(500);
	struct job_effect *effect;
	struct truths truths;

	(void)state;
	effect = job__fault(&job, VAPRO_COMPUTATION, FINDING_ALARM, FINDING_ALARM, EFFECT_STALLS, 5, 35, 1);
	effect->period = 10;
	effect->length = 0.3;
	effect->cause = VAPRO_STEAL;
	simulate(&job, VAPRO_BY_ARGUMENTS, &truths);
	assert_int_equal(truths.count, 3);
	for (size_t i = 0; i < truths.count; i++) {
		assert_true(truths.items[i].stall && truths.items[i].rank_count == 1);
		assert_near(truths.items[i].lost[VAPRO_COMPUTATION], 0.3, 1e-9);
		assert_true(truths.items[i].first <= truths.items[i].begin &&
			    truths.items[i].end <= truths.items[i].last);
	}
	/* 500 ms each: the first fragment has no predecessor to compare with */
	assert_true(truths.items[0].unsupported);
	assert_true(recorder.open > 0);
	truths__free(&truths);
}

static void test_work_is_in_the_counts(void **state)
{
	struct job job = usual(20);
	struct truths truths;

	(void)state;
	job__effect(&job, EFFECT_WORK, 0, 0, 1.5)->ranks = (struct job_ranks){RANKS_HOST, 0, 0};
	simulate(&job, VAPRO_BY_INSTRUCTIONS, &truths);
	assert_int_equal(truths.count, 0);
	assert_near(recorder.class_seconds[0][VAPRO_COMPUTATION] / recorder.class_seconds[15][VAPRO_COMPUTATION], 1.5,
		    0.02);
	assert_near(recorder.instructions[0] / recorder.instructions[15], 1.5, 0.02);
	truths__free(&truths);
}

static void test_places(void **state)
{
	struct job job = {.ranks = 64, .hosts = 3};

	(void)state;
	assert_int_equal(job__host(&job, 42), 1);
	assert_int_equal(job__host(&job, 43), 2);
	job = (struct job){.ranks = 36, .hosts = 1};
	assert_int_equal(job__socket(&job, 17), 0);
	assert_int_equal(job__socket(&job, 18), 1);
	job = (struct job){.ranks = 64, .hosts = 8, .cyclic = true};
	assert_int_equal(job__host(&job, 2), 2);
	assert_int_equal(job__host(&job, 58), 2);
	assert_int_equal(job__socket(&job, 2), 4);
	assert_int_equal(job__socket(&job, 58), 5);
}

static void test_every_case_makes_a_job(void **state)
{
	const struct case_table *const tables[] = {&fault_cases, &call_cases, &quiet_cases, &papers_cases};

	(void)state;
	for (size_t table = 0; table < sizeof(tables) / sizeof(*tables); table++) {
		for (size_t i = 0; i < tables[table]->count; i++) {
			const struct accuracy_case *at = &tables[table]->cases[i];

			for (int length = 0; length == 0 || at->lengths_ms[length] > 0; length++) {
				struct job job;

				cases__make(at, at->lengths_ms[length], 3, &job);
				assert_true(job.ranks > 0 && job.hosts > 0 && job.seconds > 0 && job.step_count > 0);
				assert_true(job.effect_count <= JOB_EFFECTS && job.fault_count <= JOB_FAULTS);
				assert_true(!(at->type & CASE_QUIET) == (job.fault_count > 0));
				for (int effect = 0; effect < job.effect_count; effect++)
					assert_true(job.effects[effect].begin < job.seconds);
			}
		}
	}
}

/* ---- the scorer */

static int32_t ranks_3[] = {3}, ranks_3_4[] = {3, 4}, ranks_9[] = {9}, ranks_0_7[] = {0, 1, 2, 3, 4, 5, 6, 7};

static struct truth fault(enum vapro_class class, int32_t *ranks, uint32_t count, double begin, double end, double lost)
{
	struct truth truth = {
	    .class = class, .expected = FINDING_ALARM, .ranks = ranks, .rank_count = count, .begin = begin, .end = end};

	truth.first = begin;
	truth.last = end;
	truth.fragment = 0.02;
	truth.lost[class] = lost;
	truth.base = end - begin - lost;
	return truth;
}

static struct found_variance alarm(enum vapro_class class, int32_t *ranks, uint32_t count, double begin, double end,
				   double lost)
{
	static uint64_t id;

	return (struct found_variance){.id = ++id,
				       .class = class,
				       .ranks = ranks,
				       .rank_count = count,
				       .begin = begin,
				       .end = end,
				       .lost = lost,
				       .alarm = true,
				       .severity = VAPRO_WARNING,
				       .confidence = VAPRO_CONFIRMED,
				       .raised = 35,
				       .dropped = NAN};
}

static void score(struct truth *truths, size_t truth_count, struct found_variance *variances, size_t count,
		  struct score *score)
{
	struct job job = {.ranks = 16, .hosts = 2, .seconds = 60};
	struct truths all = {truths, truth_count};
	struct findings findings = {.variances = variances, .variance_count = count};

	score__job(&job, VAPRO_BY_ARGUMENTS, &all, &findings, score);
}

static void test_overlaps(void **state)
{
	(void)state;
	assert_near(score__ranks(ranks_3, 1, ranks_3_4, 2), 0.5, 1e-12);
	assert_near(score__ranks(ranks_3, 1, ranks_9, 1), 0, 1e-12);
	assert_near(score__ranks(ranks_3_4, 2, ranks_0_7, 8), 0.25, 1e-12);
	assert_near(score__times(0, 10, 5, 15), 1.0 / 3, 1e-12);
	assert_near(score__times(0, 10, 10, 15), 0, 1e-12);
}

static void test_one_alarm_for_one_fault(void **state)
{
	struct truth truths[] = {fault(VAPRO_COMPUTATION, ranks_3, 1, 30, 40, 5)};
	struct found_variance found[] = {
	    alarm(VAPRO_COMPUTATION, ranks_3, 1, 30, 34, 2),   /* a part of the fault */
	    alarm(VAPRO_COMPUTATION, ranks_3, 1, 34.2, 40, 3), /* the better hit */
	    alarm(VAPRO_IO, ranks_3, 1, 32, 33, 1),	       /* another class */
	    alarm(VAPRO_COMPUTATION, ranks_9, 1, 30, 40, 1),   /* another rank */
	};
	struct score result;

	(void)state;
	score(truths, 1, found, 4, &result);
	assert_true(result.truths[0].hit && result.truths[0].apart == APART_NOT);
	assert_near(result.truths[0].overlap, 0.58, 1e-9);
	assert_near(result.truths[0].begin_error, 4.2, 1e-9);
	assert_near(result.truths[0].end_error, 0, 1e-9);
	assert_near(result.truths[0].lost_error, -0.4, 1e-9);
	assert_near(result.truths[0].delay, 5, 1e-9);
	assert_false(result.truths[0].times_good);
	assert_int_equal(result.truths[0].parts, 1);
	assert_int_equal(result.by_kind[ALARM_HIT], 1);
	assert_int_equal(result.by_kind[ALARM_PART], 1);
	assert_int_equal(result.by_kind[ALARM_WRONG_CLASS], 1);
	assert_int_equal(result.by_kind[ALARM_FALSE], 1);
}

static void test_what_is_no_alarm(void **state)
{
	struct truth truths[] = {fault(VAPRO_COMPUTATION, ranks_3, 1, 30, 40, 5)};
	struct found_variance found[] = {alarm(VAPRO_COMPUTATION, ranks_3, 1, 30, 40, 5)};
	struct score result;

	(void)state;
	found[0].alarm = false;
	found[0].dropped = 55;
	score(truths, 1, found, 1, &result);
	assert_false(result.truths[0].hit);
	assert_int_equal(result.withdrawn, 1);
	/* a fault below the bars is apart, and its alarm is not wrong */
	truths[0] = fault(VAPRO_COMPUTATION, ranks_3, 1, 30, 40, 0.5);
	found[0] = alarm(VAPRO_COMPUTATION, ranks_3, 1, 31, 32, 0.5);
	score(truths, 1, found, 1, &result);
	assert_true(result.truths[0].apart == APART_BELOW);
	assert_int_equal(result.by_kind[ALARM_ALLOWED], 1);
}

static void test_places_and_drifts(void **state)
{
	struct truth truths[] = {fault(VAPRO_COMPUTATION, ranks_0_7, 8, 0, 60, 80)};
	struct found_imbalance imbalance = {VAPRO_COMPUTATION, ranks_0_7, 8, .first = 25, .last = 60};
	struct job job = {.ranks = 16, .hosts = 2, .seconds = 60};
	struct truths all = {truths, 1};
	struct findings findings = {.imbalances = &imbalance, .imbalance_count = 1};
	struct score result;

	(void)state;
	imbalance.ratio_slow = 1.24;
	truths[0].base = 8 * 50;
	truths[0].expected = FINDING_PLACE;
	score__job(&job, VAPRO_BY_ARGUMENTS, &all, &findings, &result);
	assert_true(result.truths[0].apart == APART_NOT && result.truths[0].hit && result.truths[0].retained);
	assert_string_equal(result.truths[0].by, "imbalance");
	assert_near(result.truths[0].found_ratio, 1.24, 1e-9);
	imbalance.rank_count = 1;
	score__job(&job, VAPRO_BY_ARGUMENTS, &all, &findings, &result);
	assert_false(result.truths[0].hit);
	truths[0].expected = FINDING_DRIFT;
	findings.drift = (struct found_drift){.first = 25, .last = 60, .ratio = 1.3, .windows = 2};
	score__job(&job, VAPRO_BY_ARGUMENTS, &all, &findings, &result);
	assert_true(result.truths[0].hit);
	/* 5 % of a node is required where work is counted */
	truths[0].expected = FINDING_ALARM;
	truths[0].lost[VAPRO_COMPUTATION] = 0.055 * truths[0].base;
	assert_true(score__apart(&job, VAPRO_BY_ARGUMENTS, &truths[0]) == APART_BELOW);
	assert_true(score__apart(&job, VAPRO_BY_INSTRUCTIONS, &truths[0]) == APART_NOT);
	truths[0].unsupported = true;
	assert_true(score__apart(&job, VAPRO_BY_INSTRUCTIONS, &truths[0]) == APART_UNSUPPORTED);
}

static void test_ranks_in_words(void **state)
{
	const int32_t ranks[] = {0, 1, 2, 5, 7, 8};
	char text[48];

	(void)state;
	findings__ranks(ranks, 6, text, sizeof(text));
	assert_string_equal(text, "0-2,5,7-8");
	findings__ranks(ranks, 6, text, 9);
	assert_string_equal(text, "0-2,5...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_time_is_complete),
	    cmocka_unit_test(test_bulk_time_is_complete),
	    cmocka_unit_test(test_same_seed_same_events),
	    cmocka_unit_test(test_hog_takes_what_the_truth_says),
	    cmocka_unit_test(test_slow_node_and_waiting),
	    cmocka_unit_test(test_frequency_and_memory_show_in_factors),
	    cmocka_unit_test(test_stalls_are_truths_of_their_own),
	    cmocka_unit_test(test_work_is_in_the_counts),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_every_case_makes_a_job),
	    cmocka_unit_test(test_overlaps),
	    cmocka_unit_test(test_one_alarm_for_one_fault),
	    cmocka_unit_test(test_what_is_no_alarm),
	    cmocka_unit_test(test_places_and_drifts),
	    cmocka_unit_test(test_ranks_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
