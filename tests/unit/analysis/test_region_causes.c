// SPDX-License-Identifier: GPL-2.0-or-later
/* A region with several causes: each has its seconds, ranks and times, they add up to the loss, and a rest is named. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim.h"

#define RANKS 8
#define BINS 75
#define BIN VAPRO_BIN_NS
#define MS 1000000ULL
#define EACH (15 * MS)
#define FRAGMENTS 6

/* What an injection takes from a rank's fragments in some bins; factor VAPRO_FACTORS: nothing explains it. */
struct injection {
	uint32_t rank, begin, end;
	enum vapro_factor factor;
	uint64_t each_ns;
	uint32_t state;	  /* 1: its calls */
	const char *task; /* that ran instead; NULL: none is reported */
};

static struct analysis *analysis;

static int begin(void **state)
{
	struct vapro_config config;

	(void)state;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	return !analysis;
}

static int end(void **state)
{
	(void)state;
	analysis__free(analysis);
	return 0;
}

static void add_task(const struct injection *injection, uint32_t bin)
{
	struct vapro_interference item = {.thread = injection->rank,
					  .pid = 500 + (uint32_t)injection->task[0],
					  .process = 500 + (uint32_t)injection->task[0],
					  .bin = SIM_BEGIN_NS / BIN + bin,
					  .preempted_ns = FRAGMENTS * injection->each_ns};

	snprintf(item.comm, sizeof(item.comm), "%s", injection->task);
	assert_int_equal(analysis__add_interference(analysis, &item), 0);
}

static void add_bundle(uint32_t rank, uint32_t bin, uint32_t state, const struct injection *injections, uint32_t count)
{
	struct vapro_bundle bundle = {.thread = rank,
				      .state = state,
				      .n = FRAGMENTS,
				      .start_ns = SIM_BEGIN_NS + bin * BIN,
				      .end_ns = SIM_BEGIN_NS + (bin + 1) * BIN - MS,
				      .min_ns = state ? 3 * MS : EACH};

	for (uint32_t i = 0; i < count; i++) {
		if (injections[i].state != state || injections[i].rank != rank || bin < injections[i].begin ||
		    bin >= injections[i].end)
			continue;
		bundle.min_ns += injections[i].each_ns;
		if (injections[i].factor < VAPRO_FACTORS)
			bundle.factor[injections[i].factor] += (double)(FRAGMENTS * injections[i].each_ns);
		if (injections[i].task)
			add_task(&injections[i], bin);
	}
	bundle.max_ns = bundle.min_ns;
	bundle.sum_ns = FRAGMENTS * bundle.min_ns;
	assert_int_equal(analysis__add_bundle(analysis, &bundle), 0);
}

static void announce(void)
{
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		struct vapro_thread thread = {
		    .id = rank, .rank = (int32_t)rank, .world_size = RANKS, .pid = 10 + rank, .job = "j", .host = "h"};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(analysis, rank, SIM_BEGIN_NS, 0), 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct vapro_state state = {.id = i, .from = i ? NULL : "a@1+0x1", .to = "a@1+0x2", .labels = ""};

		state.class = i ? VAPRO_COMMUNICATION : VAPRO_COMPUTATION;
		assert_int_equal(analysis__add_state(analysis, &state), 0);
	}
}

/* A window of the bins [from, to) with injections. */
static const struct job_result *window(uint32_t from, uint32_t to, const struct injection *injections,
				       uint32_t injection_count)
{
	const struct job_result *results;
	uint32_t count;

	for (uint32_t bin = from; bin < to; bin++) {
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			add_bundle(rank, bin, 0, injections, injection_count);
			add_bundle(rank, bin, 1, injections, injection_count);
		}
	}
	assert_int_equal(
	    analysis__end_window(analysis, SIM_BEGIN_NS + from * BIN, SIM_BEGIN_NS + to * BIN, false, &results, &count),
	    0);
	assert_int_equal(count, 1);
	return results;
}

/* Runs one window of a job with injections. */
static const struct job_result *run(const struct injection *injections, uint32_t injection_count)
{
	announce();
	return window(0, BINS, injections, injection_count);
}

/* Finds a cause of any variance; it must be there once. */
static const struct result_cause *find(const struct job_result *result, const char *name,
				       const struct result_variance **of)
{
	const struct result_cause *found = NULL;

	for (uint32_t i = 0; i < result->variance_count; i++) {
		for (uint32_t k = 0; k < result->variances[i].cause_count; k++) {
			if (strcmp(result->variances[i].causes[k].cause, name))
				continue;
			assert_null(found);
			found = &result->variances[i].causes[k];
			*of = &result->variances[i];
		}
	}
	return found;
}

/* Checks what holds for the causes of every region. */
static void check_sums(const struct job_result *result)
{
	for (uint32_t i = 0; i < result->variance_count; i++) {
		const struct result_variance *variance = &result->variances[i];
		double lost = 0, caused = 0;

		assert_true(variance->cause_count > 0);
		for (uint32_t k = 0; k < variance->cause_count; k++) {
			const struct result_cause *cause = &variance->causes[k];

			lost += cause->lost_seconds;
			caused += cause->caused_seconds;
			assert_true(cause->lost_seconds > 0 && cause->rank_count > 0);
			assert_true(cause->begin_ns >= variance->begin_ns && cause->end_ns <= variance->end_ns);
			assert_true(cause->begin_ns < cause->end_ns);
			/* the greatest first, what is not explained last */
			if (k && cause->explained)
				assert_true(cause[-1].explained && cause[-1].lost_seconds >= cause->lost_seconds);
		}
		assert_true(fabs(lost - variance->lost_seconds) < 1e-6);
		assert_true(caused <= variance->caused_seconds + 1e-6);
	}
}

static void test_short_in_a_long_one(void **state)
{
	/* a third of the CPU for 6 s, and in it a stop of 4 bins */
	static const struct injection injections[] = {{2, 20, 50, VAPRO_PREEMPTED, 7 * MS, 0, NULL},
						      {2, 30, 34, VAPRO_STOPPED, 9 * MS, 0, NULL}};
	const struct result_variance *variance, *other;
	const struct result_cause *preempted, *stopped;
	const struct job_result *result;

	(void)state;
	result = run(injections, 2);
	check_sums(result);
	preempted = find(result, "preempted", &variance);
	stopped = find(result, "stopped", &other);
	assert_non_null(preempted);
	assert_non_null(stopped);
	assert_ptr_equal(variance, other);
	assert_true(fabs(preempted->lost_seconds - 30 * FRAGMENTS * 7e-3) < 0.02);
	assert_true(fabs(stopped->lost_seconds - 4 * FRAGMENTS * 9e-3) < 0.01);
	assert_int_equal(preempted->begin_ns, SIM_BEGIN_NS + 20 * BIN);
	assert_int_equal(preempted->end_ns, SIM_BEGIN_NS + 50 * BIN);
	assert_int_equal(stopped->begin_ns, SIM_BEGIN_NS + 30 * BIN);
	assert_int_equal(stopped->end_ns, SIM_BEGIN_NS + 34 * BIN);
	assert_true(preempted->explained && stopped->explained);
	assert_string_equal(variance->diagnosis.cause, "preempted");
	assert_non_null(strstr(variance->diagnosis.verdict, "of it stopped"));
}

/* A stop that falls into calls held them up: it takes nothing from the other cause. */
static void test_stopped_in_calls(void **state)
{
	static const struct injection injections[] = {{2, 20, 50, VAPRO_PREEMPTED, 7 * MS, 0, NULL},
						      {2, 30, 36, VAPRO_STOPPED, 8 * MS, 1, NULL}};
	const struct result_variance *variance;
	const struct result_cause *preempted, *stopped;
	const struct job_result *result;

	(void)state;
	result = run(injections, 2);
	check_sums(result);
	preempted = find(result, "preempted", &variance);
	stopped = find(result, "stopped", &variance);
	assert_non_null(preempted);
	assert_non_null(stopped);
	assert_true(fabs(preempted->lost_seconds - 30 * FRAGMENTS * 7e-3) < 0.02);
	assert_true(fabs(stopped->lost_seconds - 6 * FRAGMENTS * 8e-3) < 0.02);
	assert_int_equal(stopped->begin_ns, SIM_BEGIN_NS + 30 * BIN);
	assert_int_equal(stopped->end_ns, SIM_BEGIN_NS + 36 * BIN);
}

/* A hog of three bins in 14 s of a daemon is 4 % of the loss, and strong while it runs. */
static void test_short_hog(void **state)
{
	static const struct injection injections[] = {{2, 5, 75, VAPRO_PREEMPTED, 8 * MS, 0, "daemon"},
						      {2, 30, 33, VAPRO_PREEMPTED, 8 * MS, 0, "hog"}};
	const struct result_variance *variance;
	const struct result_cause *hog = NULL;
	const struct job_result *result;

	(void)state;
	result = run(injections, 2);
	check_sums(result);
	assert_int_equal(result->variance_count, 1);
	variance = &result->variances[0];
	assert_int_equal(variance->cause_count, 2);
	assert_string_equal(variance->causes[0].culprit->comm, "daemon");
	hog = &variance->causes[1];
	assert_string_equal(hog->culprit->comm, "hog");
	assert_true(fabs(hog->lost_seconds - 3 * FRAGMENTS * 8e-3) < 0.01);
	assert_int_equal(hog->begin_ns, SIM_BEGIN_NS + 30 * BIN);
	assert_int_equal(hog->end_ns, SIM_BEGIN_NS + 33 * BIN);
}

/* A task is to blame for what it took half of or more: of several smaller ones none is. */
static void test_several_tasks(void **state)
{
	static const struct injection injections[] = {
	    {2, 20, 50, VAPRO_PREEMPTED, 3 * MS, 0, "alpha"}, {2, 20, 50, VAPRO_PREEMPTED, 2 * MS, 0, "beta"},
	    {2, 20, 50, VAPRO_PREEMPTED, MS / 2, 0, "c"},     {2, 20, 50, VAPRO_PREEMPTED, MS / 2, 0, "d"},
	    {2, 20, 50, VAPRO_PREEMPTED, MS / 2, 0, "e"},
	};
	const struct result_variance *variance;
	const struct job_result *result;

	(void)state;
	result = run(injections, 5);
	check_sums(result);
	variance = &result->variances[0];
	for (uint32_t i = 0; i < variance->cause_count; i++) {
		const struct result_cause *cause = &variance->causes[i];

		assert_true(cause->culprit_seconds <= cause->lost_seconds);
		assert_true(!cause->culprit || cause->culprit_seconds >= 0.5 * cause->lost_seconds);
	}
	assert_non_null(variance->causes[0].culprit);
	assert_string_equal(variance->causes[0].culprit->comm, "alpha");
	assert_non_null(strstr(variance->diagnosis.verdict, "alpha"));
	assert_non_null(strstr(variance->diagnosis.verdict, "beta (pid"));
	assert_non_null(strstr(variance->diagnosis.advice, "beta (pid"));
}

static void test_none_to_blame(void **state)
{
	static struct injection injections[30];
	static const char *const names[] = {"a0", "b1", "c2", "d3", "e4", "f5", "g6", "h7", "i8", "j9"};
	const struct result_variance *variance;
	const struct job_result *result;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		injections[i] = (struct injection){2, 20, 22, VAPRO_PREEMPTED, 3 * MS / 2, 0, names[i]};
	result = run(injections, 10);
	check_sums(result);
	assert_true(result->variance_count > 0);
	variance = &result->variances[0];
	assert_string_equal(variance->causes[0].cause, "preempted");
	assert_null(variance->causes[0].culprit);
	assert_null(variance->diagnosis.culprit);
	assert_non_null(strstr(variance->diagnosis.verdict, "other tasks"));
}

/* Of a region of several ranks, a cause has those that it concerned. */
static void test_own_ranks(void **state)
{
	static const struct injection injections[] = {{2, 20, 40, VAPRO_PREEMPTED, 9 * MS, 0, NULL},
						      {3, 20, 40, VAPRO_PREEMPTED, 9 * MS, 0, NULL},
						      {3, 25, 35, VAPRO_THROTTLED, 6 * MS, 0, NULL}};
	const struct result_cause *throttled, *preempted;
	const struct result_variance *variance;
	const struct job_result *result;

	(void)state;
	result = run(injections, 3);
	check_sums(result);
	throttled = find(result, "throttled", &variance);
	assert_non_null(throttled);
	assert_int_equal(throttled->rank_count, 1);
	assert_int_equal(throttled->ranks[0], 3);
	assert_true(fabs(throttled->lost_seconds - 10 * FRAGMENTS * 6e-3) < 0.02);
	preempted = find(result, "preempted", &variance);
	assert_non_null(preempted);
	assert_int_equal(preempted->rank_count, 2);
	assert_true(fabs(preempted->lost_seconds - 40 * FRAGMENTS * 9e-3) < 0.1);
}

/* A part of less than --min-lost that is hardly any of the loss is no cause, and is lost to no sum either. */
static void test_little(void **state)
{
	static const struct injection injections[] = {{2, 20, 50, VAPRO_PREEMPTED, 9 * MS, 0, NULL},
						      {2, 30, 31, VAPRO_STEAL, 5 * MS, 0, NULL}};
	const struct result_variance *variance;
	const struct job_result *result;

	(void)state;
	result = run(injections, 2);
	check_sums(result);
	assert_null(find(result, "steal", &variance));
	assert_non_null(find(result, "preempted", &variance));
}

/* Soft interrupts for 8 s, timed but for the first: they are the cause, and that second is a region that is not proven.
 */
static void test_soft_interrupts(void **state)
{
	static const struct injection injections[] = {{2, 20, 25, VAPRO_FACTORS, 5 * MS, 0, NULL},
						      {2, 25, 60, VAPRO_SOFT_IRQ, 5 * MS, 0, NULL}};
	const struct result_cause *timed, *before;
	const struct result_variance *variance;
	const struct job_result *result;

	(void)state;
	result = run(injections, 2);
	check_sums(result);
	timed = find(result, "soft_irq", &variance);
	assert_non_null(timed);
	assert_true(variance->alarm);
	assert_int_equal(timed->rank_count, 1);
	assert_int_equal(timed->ranks[0], 2);
	assert_true(fabs(timed->lost_seconds - 35 * FRAGMENTS * 5e-3) < 0.02);
	assert_int_equal(timed->begin_ns, SIM_BEGIN_NS + 25 * BIN);
	assert_int_equal(timed->end_ns, SIM_BEGIN_NS + 60 * BIN);
	assert_non_null(strstr(variance->diagnosis.verdict, "soft interrupts"));
	assert_non_null(strstr(variance->diagnosis.advice, "network, timers or disks"));
	before = find(result, "on_cpu", &variance);
	assert_non_null(before);
	assert_false(variance->alarm);
	assert_true(fabs(before->lost_seconds - 5 * FRAGMENTS * 5e-3) < 0.02);
}

/* Interrupts that are a small part of a region are named by their kind, too. */
static void test_interrupts_beside(void **state)
{
	static const struct injection injections[] = {{2, 20, 60, VAPRO_STOPPED, 12 * MS, 0, NULL},
						      {2, 20, 60, VAPRO_SOFT_IRQ, 2 * MS, 0, NULL},
						      {2, 20, 60, VAPRO_HARD_IRQ, MS / 2, 0, NULL}};
	const struct result_variance *variance;
	const struct result_cause *soft;
	const struct job_result *result;

	(void)state;
	result = run(injections, 3);
	check_sums(result);
	soft = find(result, "soft_irq", &variance);
	assert_non_null(soft);
	assert_true(fabs(soft->lost_seconds - 40 * FRAGMENTS * 2.5e-3) < 0.02);
	assert_null(find(result, "irq", &variance));
	assert_null(find(result, "hard_irq", &variance));
	assert_non_null(strstr(variance->diagnosis.verdict, "soft interrupts"));
}

/* Late fragments join two regions: the one that is over says of which it is a part, and states no loss. */
static void test_merged(void **state)
{
	static const struct injection two[] = {{2, 62, 75, VAPRO_STOPPED, 15 * MS, 0, NULL},
					       {4, 66, 75, VAPRO_STOPPED, 15 * MS, 0, NULL}},
				      late = {3, 66, 75, VAPRO_STOPPED, 15 * MS, 0, NULL},
				      on[] = {{2, 75, 80, VAPRO_STOPPED, 15 * MS, 0, NULL},
					      {3, 75, 80, VAPRO_STOPPED, 15 * MS, 0, NULL},
					      {4, 75, 80, VAPRO_STOPPED, 15 * MS, 0, NULL}};
	const struct result_variance *merged = NULL;
	const struct job_result *result;
	char text[100];

	(void)state;
	result = run(two, 2);
	assert_int_equal(result->variance_count, 2);
	for (uint32_t bin = 66; bin < 75; bin++)
		add_bundle(3, bin, 0, &late, 1);
	result = window(BINS, BINS + 50, on, 3);
	for (uint32_t i = 0; i < result->variance_count; i++) {
		if (!strncmp(result->variances[i].evidence, "merged into", 11))
			merged = &result->variances[i];
	}
	assert_non_null(merged);
	assert_int_equal(merged->state, VAPRO_REGION_CLOSED);
	assert_int_equal(merged->severity, VAPRO_INFO);
	snprintf(text, sizeof(text), "rank 4: a part of what variance %llu is about.",
		 (unsigned long long)merged->effect_of);
	assert_string_equal(merged->diagnosis.verdict, text);
	snprintf(text, sizeof(text), "See variance %llu.", (unsigned long long)merged->effect_of);
	assert_string_equal(merged->diagnosis.advice, text);
}

/*
 * Late fragments join a region that was reported as closed with another one: they stay apart, and no time is in both.
 */
static void test_merged_after_its_end(void **state)
{
	static const struct injection two[] = {{4, 40, 51, VAPRO_THROTTLED, 15 * MS, 0, NULL},
					       {4, 57, 75, VAPRO_STOPPED, 15 * MS, 0, NULL}},
				      late = {4, 51, 57, VAPRO_STOPPED, 15 * MS, 0, NULL},
				      on = {4, 75, 80, VAPRO_STOPPED, 15 * MS, 0, NULL};
	const struct job_result *result;
	const struct result_factor *factors;

	(void)state;
	result = run(two, 2);
	assert_int_equal(result->variance_count, 2);
	for (uint32_t bin = 51; bin < 57; bin++)
		add_bundle(4, bin, 0, &late, 1);
	result = window(BINS, BINS + 50, &on, 1);
	assert_int_equal(result->variance_count, 1);
	factors = result->variances[0].diagnosis.factors;
	assert_string_equal(factors[0].name, "suspension");
	assert_int_equal(result->variances[0].begin_ns, SIM_BEGIN_NS + 51 * BIN);
	assert_true(fabs(factors[0].impact_seconds - 29 * FRAGMENTS * 15e-3) < 1e-6);
	assert_true(fabs(factors[0].impact_seconds - result->variances[0].lost_seconds) < 1e-6);
}

/* Work that becomes shorter makes up for no time without a CPU: a window's performance says what the account says. */
static void test_shorter_work(void **state)
{
	struct injection injections[2 * RANKS];
	const struct job_result *result;

	(void)state;
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		injections[rank] = (struct injection){rank, BINS, BINS + 50, VAPRO_FACTORS, -MS, 0, NULL};
		injections[RANKS + rank] = (struct injection){rank, BINS, BINS + 50, VAPRO_PREEMPTED, MS, 0, NULL};
	}
	assert_true(run(NULL, 0)->performance[VAPRO_COMPUTATION] > 0.999);
	result = window(BINS, BINS + 50, injections, 2 * RANKS);
	assert_true(fabs(result->performance[VAPRO_COMPUTATION] - 14. / 15) < 1e-3);
}

/* Nothing wrong: nothing found. */
static void test_quiet(void **state)
{
	(void)state;
	assert_int_equal(run(NULL, 0)->variance_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_short_in_a_long_one, begin, end),
	    cmocka_unit_test_setup_teardown(test_stopped_in_calls, begin, end),
	    cmocka_unit_test_setup_teardown(test_short_hog, begin, end),
	    cmocka_unit_test_setup_teardown(test_several_tasks, begin, end),
	    cmocka_unit_test_setup_teardown(test_none_to_blame, begin, end),
	    cmocka_unit_test_setup_teardown(test_own_ranks, begin, end),
	    cmocka_unit_test_setup_teardown(test_little, begin, end),
	    cmocka_unit_test_setup_teardown(test_soft_interrupts, begin, end),
	    cmocka_unit_test_setup_teardown(test_interrupts_beside, begin, end),
	    cmocka_unit_test_setup_teardown(test_merged, begin, end),
	    cmocka_unit_test_setup_teardown(test_merged_after_its_end, begin, end),
	    cmocka_unit_test_setup_teardown(test_shorter_work, begin, end),
	    cmocka_unit_test_setup_teardown(test_quiet, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
