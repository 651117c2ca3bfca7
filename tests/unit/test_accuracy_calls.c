/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the simulation's calls take (tools/accuracy/cost.c), with and without a fault. */
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

/* One rank waits for nobody: a fault takes from it what the truth says, and the rest of its time goes as without. */
static void test_calls_cost_what_the_truth_says(void **state)
{
	struct job job = {.seed = 3, .ranks = 1, .hosts = 1, .seconds = 10};
	struct job_totals without, with;
	struct truths truths;

	(void)state;
	job__program(&job, 1e5, 0.2, 0);
	without = simulate(&job, &truths);
	truths__free(&truths);
	job__fault(&job, VAPRO_COMMUNICATION, FINDING_ALARM, FINDING_ALARM, EFFECT_CALLS, 0, 0, 3);
	with = simulate(&job, &truths);
	assert_int_equal(truths.count, 1);
	if (fabs((double)with.fragments / (double)without.fragments * job.seconds +
		 truths.items[0].lost[VAPRO_COMMUNICATION] - job.seconds) > 0.001 * job.seconds)
		fail_msg("%.3f s of %.3f s are missing", truths.items[0].lost[VAPRO_COMMUNICATION], job.seconds);
	truths__free(&truths);
}

/* Where ranks wait for each other's slow transfers they lose that, too: the truth has all that the job loses. */
static void test_waiting_for_slow_transfers(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed < 4; seed++) {
		struct job job = {.seed = seed, .ranks = 8, .hosts = 2, .seconds = 20};
		struct job_totals without, with;
		struct truths truths;
		double lost;

		job__program(&job, 1e6, 0.2, 0);
		without = simulate(&job, &truths);
		truths__free(&truths);
		job__fault(&job, VAPRO_COMMUNICATION, FINDING_ALARM, FINDING_ALARM, EFFECT_CALLS, 0, 0, 4);
		with = simulate(&job, &truths);
		assert_int_equal(truths.count, 1);
		lost = truths.items[0].lost[VAPRO_COMMUNICATION] / job.ranks;
		if (fabs((double)with.fragments / (double)without.fragments * job.seconds + lost - job.seconds) >
		    0.002 * job.seconds)
			fail_msg("%.3f s lost in %.3f s, %.3f of the work done", lost, job.seconds,
				 (double)with.fragments / (double)without.fragments);
		truths__free(&truths);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_calls_cost_what_the_truth_says),
	    cmocka_unit_test(test_waiting_for_slow_transfers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
