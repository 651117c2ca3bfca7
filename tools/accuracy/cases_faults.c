/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of computation. */
#include "cases.h"

#define C VAPRO_COMPUTATION
#define ALARM FINDING_ALARM
#define PLACE FINDING_PLACE

/* When a fault begins, seconds: references must be there before it. */
static double onset(const struct job *job, struct draw *draw, double length_ms)
{
	double least = length_ms >= 400 ? 45 : 20;

	return draw__between(draw, least, fmax(least + 1, 0.5 * job->seconds));
}

/* Another task on the CPU of one rank. */
static void hog(struct job *job, struct draw *draw, double length_ms)
{
	double factor = draw__unit(draw) < 0.5 ? draw__between(draw, 1.2, 1.6) : draw__between(draw, 1.6, 3);
	double begin, length;
	struct job_effect *effect;

	cases__usual(job, draw, length_ms, 0.05, 0);
	begin = onset(job, draw, length_ms);
	length = draw__between(draw, fmax(1.2 / (1 - 1 / factor), 4 * length_ms / 1e3), 20);
	effect = job__fault(job, C, ALARM, ALARM, EFFECT_TAKEN, begin, begin + length, factor);
	effect->ranks = cases__rank(job, draw);
}

static const struct accuracy_case cases[] = {
    {"simulated", "hog", CASE_FAULT, {0.1, 1, 20, 500, 2000}, hog},
};

const struct case_table fault_cases = {cases, sizeof(cases) / sizeof(*cases)};
