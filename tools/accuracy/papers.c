/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The case studies of the papers. */
#include "cases.h"

/* papers/000: SP, one second of another task on one rank's CPU, which takes half of it. */
static void sp(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;

	(void)draw;
	(void)length_ms;
	job->ranks = 8;
	job->hosts = 1;
	job->seconds = 40;
	job->jitter = 0.01;
	job__program(job, 8e6, 0.05, 0);
	effect = job__fault(job, VAPRO_COMPUTATION, FINDING_ALARM, FINDING_ALARM, EFFECT_TAKEN, 20, 21, 2);
	effect->ranks = (struct job_ranks){RANKS_RANGE, 5, 5};
}

static const struct accuracy_case cases[] = {
    {"papers", "sp", CASE_FAULT, {0}, sp},
};

const struct case_table papers_cases = {cases, sizeof(cases) / sizeof(*cases)};
