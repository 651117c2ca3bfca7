// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads of a team that wait for a disturbed one while no probe shows it. The main thread has fragments of 20 ms that
 * take twice as long from 6 s to 9 s, the other thread has only an account, or fragments beside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <vapro/analysis.h>

#include "near.h"
#include "sim.h"

#define MS 1000000ULL
#define BIN VAPRO_BIN_NS
#define START 8900000005ULL
#define UTC(s) (START * BIN + (uint64_t)((s)*1e9))
#define HOG(t) ((t) > 5.999 && (t) < 8.999)

static struct analysis *analysis;

static struct found {
	unsigned alarms, own[2], effects;
	double lost[2], waited, caused; /* lost: own losses by thread */
} found;

static int begin(void **state)
{
	const struct vapro_state list[] = {
	    {.id = 0, .class = VAPRO_COMPUTATION, .from = "e@1+1", .to = "e@1+2", .labels = ""},
	    {.id = 1, .class = VAPRO_COMPUTATION, .from = "e@1+3", .to = "e@1+4", .labels = ""}};
	struct vapro_config config;

	(void)state;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	for (uint32_t i = 0; i < 2; i++) {
		struct vapro_thread thread = {.id = i,
					      .rank = 0,
					      .thread = i,
					      .world_size = 1,
					      .pid = 10,
					      .tid = 10 + i,
					      .job = "j",
					      .host = "h"};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(analysis, i, UTC(0), 0), 0);
		assert_int_equal(analysis__add_state(analysis, &list[i]), 0);
	}
	memset(&found, 0, sizeof(found));
	return 0;
}

static int end(void **state)
{
	(void)state;
	analysis__free(analysis);
	return 0;
}

static void fragment(uint32_t thread, double from, double length, double preempted)
{
	struct vapro_bundle one = {
	    .thread = thread, .state = thread, .n = 1, .start_ns = UTC(from), .end_ns = UTC(from + length)};

	one.sum_ns = one.min_ns = one.max_ns = one.end_ns - one.start_ns;
	one.factor[VAPRO_PREEMPTED] = preempted * 1e9;
	assert_int_equal(analysis__add_bundle(analysis, &one), 0);
}

/* Adds fragments of so many s, twice as long in the disturbance; preempted: of a fragment then. */
static void fragments(uint32_t thread, double length, double preempted)
{
	for (double t = 0; t < 19.99;) {
		fragment(thread, t, HOG(t) ? 2 * length : length, HOG(t) ? preempted : 0);
		t += HOG(t) ? 2 * length : length;
	}
}

/* Adds the account of a thread, which loses so many ms of each bin in the disturbance. */
static void account(uint32_t thread, uint64_t lost_ms)
{
	for (uint64_t at = 0; at < 100; at++) {
		uint64_t lost = at >= 30 && at < 45 ? lost_ms * MS : 0;
		const struct vapro_account sums = {
		    .thread = thread, .bin = START + at, .on_cpu_ns = BIN - lost, .preempted_ns = lost};

		assert_int_equal(analysis__add_account(analysis, &sums), 0);
	}
}

static void count(const struct result_variance *at)
{
	found.alarms += at->alarm;
	if (at->effect_of) {
		assert_int_equal(at->class, VAPRO_COMMUNICATION);
		assert_int_equal(at->threads[0].thread, 0);
		assert_true(at->site_count > 0);
		found.effects++;
		found.waited += at->lost_seconds;
		return;
	}
	assert_int_equal(at->class, VAPRO_COMPUTATION);
	found.own[at->threads[0].thread]++;
	found.lost[at->threads[0].thread] += at->lost_seconds;
	found.caused += at->caused_seconds;
}

/* Ends the windows, 15 s and 5 s long, and counts the variances. */
static void windows(void)
{
	const struct vapro_process_facts facts = {.pid = 10, .job = "j", .wall_ns = 10 * BIN};
	const struct job_result *result;
	uint32_t jobs;

	for (unsigned from = 0; from < 20; from = 15) {
		bool last = from == 15;

		assert_int_equal(analysis__add_facts(analysis, &facts), 0);
		assert_int_equal(analysis__end_window(analysis, UTC(from), UTC(last ? 20 : 15), last, &result, &jobs),
				 0);
		assert_int_equal(jobs, 1);
		for (uint32_t i = 0; i < result->variance_count; i++) {
			if (result->variances[i].state == VAPRO_REGION_CLOSED || last)
				count(&result->variances[i]);
		}
		if (last)
			break;
	}
}

static void a_wait_is_no_loss_of_its_own(void **state)
{
	(void)state;
	fragments(0, 0.02, 0);
	account(0, 0);
	account(1, 100);
	windows();
	assert_int_equal(found.alarms, 1);
	assert_int_equal(found.own[0], 0);
	assert_int_equal(found.own[1], 1);
	assert_near(found.lost[1], 1.5, 0.01);
	assert_int_equal(found.effects, 1);
	assert_near(found.waited, 1.5, 0.05);
	assert_near(found.caused, 1.5, 0.05);
}

/* Fragments of 0.3 s reach beyond the disturbance, in which work takes twice as long. */
static void a_wait_in_long_fragments(void **state)
{
	(void)state;
	for (double work = 0; work < 18; work += 0.3) {
		double from = work + fmin(1.5, fmax(0, work - 6)), to = work + 0.3 + fmin(1.5, fmax(0, work + 0.3 - 6));

		fragment(0, from, to - from, 0);
	}
	account(0, 0);
	account(1, 100);
	windows();
	assert_int_equal(found.own[1], 1);
	assert_near(found.lost[1], 1.5, 0.01);
	assert_near(found.lost[0], 0, 0.01);
	assert_near(found.waited, 1.5, 0.05);
}

/* Where the other thread lost nothing the slow work is the main thread's own. */
static void a_slow_thread_stays_slow(void **state)
{
	(void)state;
	fragments(0, 0.02, 0);
	account(0, 0);
	account(1, 0);
	windows();
	assert_int_equal(found.effects, 0);
	assert_near(found.lost[0], 1.5, 0.05);
}

/* No more can have been a wait than the other thread lost. */
static void the_rest_is_its_own(void **state)
{
	(void)state;
	fragments(0, 0.02, 0);
	account(0, 0);
	account(1, 50);
	windows();
	assert_near(found.lost[0] + found.lost[1], 1.5, 0.05);
	assert_near(found.waited, 0.75, 0.05);
}

static void both_are_disturbed(void **state)
{
	(void)state;
	fragments(0, 0.02, 0.02);
	account(0, 100);
	account(1, 100);
	windows();
	assert_int_equal(found.effects, 0);
	assert_near(found.lost[0] + found.lost[1], 3, 0.05);
}

/* Fragments of the other thread show that probes are open: a wait would be a call. */
static void a_seen_team_shows_its_waits(void **state)
{
	(void)state;
	fragments(0, 0.02, 0);
	fragments(1, 0.02, 0.02);
	account(0, 0);
	account(1, 100);
	windows();
	assert_int_equal(found.effects, 0);
	assert_near(found.lost[0] + found.lost[1], 3, 0.05);
}

#define TEAM(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEAM(a_wait_is_no_loss_of_its_own), TEAM(a_wait_in_long_fragments), TEAM(a_slow_thread_stays_slow),
	    TEAM(the_rest_is_its_own),		TEAM(both_are_disturbed),	TEAM(a_seen_team_shows_its_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
