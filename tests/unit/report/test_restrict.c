// SPDX-License-Identifier: GPL-2.0-or-later
/* What of a response to a query a user other than root gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/response.h"

#define ANN 1002 /* users as in struct vapro_thread */
#define BOB 1003

/* Users may see the system's tasks. */
static bool shows(void *ctx, uint32_t user, const struct result_interferer *task)
{
	(void)ctx;
	(void)user;
	return !strcmp(task->comm, "kswapd0");
}

static void users_get_their_own_jobs_alone(void **state)
{
	struct result_interferer tasks[] = {
	    {.comm = "secret", .pid = 7, .relation = VAPRO_OTHER_JOB, .rank = 3, .job = "slurm:9.0"},
	    {.comm = "kswapd0", .pid = 8, .relation = VAPRO_FOREIGN, .rank = -1},
	    {.comm = "own", .pid = 9, .relation = VAPRO_SAME_JOB, .rank = 1},
	};
	struct result_interferer culprit = tasks[0], blamed = tasks[0];
	struct result_cause cause = {.cause = "preempted", .culprit = &blamed};
	struct result_variance variances[] = {
	    {.causes = &cause,
	     .cause_count = 1,
	     .diagnosis = {.interferers = tasks,
			   .interferer_count = 3,
			   .culprit = &culprit,
			   .verdict = "secret was it",
			   .advice = "ask secret"}},
	    {.diagnosis = {.interferers = &tasks[1], .interferer_count = 1, .verdict = "kswapd0 was it"}},
	};
	const struct job_result jobs[] = {
	    {.job = "slurm:8.0", .user = BOB},
	    {.job = "slurm:7.0", .user = ANN, .selections = variances, .selection_count = 2}};
	struct response response = {.jobs = jobs, .job_count = 2};

	(void)state;
	assert_int_equal(response__restrict(&response, ANN, shows, NULL), 0);
	assert_int_equal(response.job_count, 1);
	assert_string_equal(response.jobs[0].job, "slurm:7.0");
	assert_string_equal(tasks[0].comm, "(another user)");
	assert_int_equal(tasks[0].pid, 0);
	assert_int_equal(tasks[0].relation, VAPRO_FOREIGN);
	assert_null(tasks[0].job);
	assert_string_equal(tasks[1].comm, "kswapd0");
	assert_string_equal(tasks[2].comm, "own");
	assert_string_equal(culprit.comm, "(another user)");
	assert_string_equal(blamed.comm, "(another user)");
	/* sentences with names */
	assert_null(variances[0].diagnosis.verdict);
	assert_null(variances[0].diagnosis.advice);
	assert_string_equal(variances[1].diagnosis.verdict, "kswapd0 was it");
	free((struct job_result *)response.jobs);
	response = (struct response){.jobs = jobs, .job_count = 2};
	assert_int_equal(response__restrict(&response, 1999, shows, NULL), 0);
	assert_int_equal(response.job_count, 0);
	free((struct job_result *)response.jobs);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(users_get_their_own_jobs_alone)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
