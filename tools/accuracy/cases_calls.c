/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of communication and IO. */
#include "cases.h"

#define ALARM FINDING_ALARM

/* All transfers are slow for a while. */
static void network_all(struct job *job, struct draw *draw, double length_ms)
{
	double begin, length = draw__between(draw, 8, 25);

	cases__usual(job, draw, length_ms, 0.15, 0);
	job->jitter = draw__between(draw, 0.005, 0.015);
	begin = draw__between(draw, length_ms >= 400 ? 50 : 25, 0.5 * job->seconds);
	job__fault(job, VAPRO_COMMUNICATION, ALARM, ALARM, EFFECT_CALLS, begin, begin + length,
		   draw__between(draw, 2, 4));
}

static const struct accuracy_case cases[] = {
    {"simulated", "network-all", CASE_FAULT, {1, 20, 500}, network_all},
};

const struct case_table call_cases = {cases, sizeof(cases) / sizeof(*cases)};
