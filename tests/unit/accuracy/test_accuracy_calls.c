/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times of the simulation's calls (tools/accuracy/cost.c), with and without a fault. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/accuracy/job.h"

static int ignore(struct stream_sink *sink, const struct stream_event *event)
{
	(void)sink;
	(void)event;
	return 0;
}

static struct job_totals simulate(const struct job *job, struct truths *truths)
{
	struct stream_sink sink = {.put = ignore};
	struct job_totals totals;

	assert_int_equal(job__run(job, VAPRO_BY_ARGUMENTS, 15, &sink, truths, &totals), 0);
	return totals;
}

/* Checks that work and the truth's loss to slow calls, per rank, sum up to the whole time of a job. */
static void assert_complete(struct job *job, double length_ns, double factor, double tolerance)
{
	struct job_totals without, with;
	struct truths truths;
	double done, lost;

	job__program(job, length_ns, 0.2, 0);
	without = simulate(job, &truths);
	truths__free(&truths);
	job__fault(job, VAPRO_COMMUNICATION, FINDING_ALARM, FINDING_ALARM, EFFECT_CALLS, 0, 0, factor);
	with = simulate(job, &truths);
	assert_int_equal(truths.count, 1);
	done = (double)with.fragments / (double)without.fragments;
	lost = truths.items[0].lost[VAPRO_COMMUNICATION] / job->ranks;
	truths__free(&truths);
	if (fabs(done * job->seconds + lost - job->seconds) > tolerance * job->seconds)
		fail_msg("%.3f s lost in %.3f s, %.3f of the work done", lost, job->seconds, done);
}

/* A single rank waits for no other: it loses the truth's time to a fault, and its other time is unchanged. */
static void test_calls_cost_what_the_truth_says(void **state)
{
	struct job job = {.seed = 3, .ranks = 1, .hosts = 1, .seconds = 10};

	(void)state;
	assert_complete(&job, 1e5, 3, 0.001);
}

/* Ranks that wait for each other's slow transfers lose that time, too: the truth has the job's whole loss. */
static void test_waiting_for_slow_transfers(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed < 4; seed++) {
		struct job job = {.seed = seed, .ranks = 8, .hosts = 2, .seconds = 20};

		assert_complete(&job, 1e6, 4, 0.002);
	}
}

/*
 * A fault that lasts to the end of a run ends there, or with the last call that shows it: a call that the run's end
 * cuts off before a fault's least cost does not show it. Both cases occur.
 */
static void test_end_of_run(void **state)
{
	unsigned cut = 0, seen = 0;

	(void)state;
	for (unsigned seed = 1; seed < 30; seed++) {
		struct job job = {.seed = seed, .ranks = 4, .hosts = 1, .seconds = 15};
		const struct truth *truth;
		struct truths truths;

		job__program(&job, 5e8, 0.2, 0);
		job__fault(&job, VAPRO_COMMUNICATION, FINDING_ALARM, FINDING_ALARM, EFFECT_CALLS, 5, 0, 4);
		simulate(&job, &truths);
		assert_int_equal(truths.count, 1);
		truth = &truths.items[0];
		assert_true(truth->end <= truth->shown && truth->shown <= truth->last && truth->last <= job.seconds);
		assert_true(truth->end > job.seconds - 2);
		cut += truth->shown < truth->last;
		seen += truth->shown == job.seconds;
		truths__free(&truths);
	}
	assert_true(cut && seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_calls_cost_what_the_truth_says),
	    cmocka_unit_test(test_waiting_for_slow_transfers),
	    cmocka_unit_test(test_end_of_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
