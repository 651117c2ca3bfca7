/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of communication and IO. */
#include "cases.h"

#define ALARM FINDING_ALARM

struct calls {
	enum vapro_class class;
	enum { SPELL, TO_THE_END, ALWAYS } when;
	bool one_rank;
};

static double onset(const struct job *job, struct draw *draw, double length_ms)
{
	double least = length_ms >= 400 ? 50 : 25;

	return draw__between(draw, least, fmax(least + 1, 0.5 * job->seconds));
}

static struct job_effect *fault_of_calls(struct job *job, struct draw *draw, double length_ms)
{
	const struct calls *calls = job->variant;
	bool io = calls->class == VAPRO_IO;
	struct job_effect *effect;
	double begin = 0, end = 0;

	cases__usual(job, draw, length_ms, io ? 0.05 : 0.2, io ? 0.2 : 0);
	/* a slowdown must exceed the waiting that jitter causes */
	job->jitter = draw__between(draw, 0.005, 0.015);
	if (calls->when != ALWAYS)
		begin = onset(job, draw, length_ms);
	if (calls->when == SPELL)
		end = begin + draw__between(draw, 6, 25);
	effect = job__fault(job, calls->class, ALARM, ALARM, EFFECT_CALLS, begin, end, draw__between(draw, 2.5, 5));
	effect->steps = io ? 1U << JOB_WRITE : 1U << JOB_EXCHANGE | 1U << JOB_ALLREDUCE;
	effect->cause = VAPRO_BLOCKED_IO;
	effect->reported = io;
	return effect;
}

/* The transfers of one rank end late on this rank only. */
static void choose_rank(struct job *job, struct draw *draw, struct job_effect *effect)
{
	const struct calls *calls = job->variant;

	if (calls->one_rank)
		effect->ranks = cases__rank(job, draw);
}

static void slow_calls(struct job *job, struct draw *draw, double length_ms)
{
	choose_rank(job, draw, fault_of_calls(job, draw, length_ms));
}

/* Writes that hang once. */
static void io_stalls(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;

	cases__usual(job, draw, length_ms, 0.05, 0.2);
	effect =
	    job__fault(job, VAPRO_IO, ALARM, ALARM, EFFECT_STALLS, length_ms >= 400 ? 50 : 25, job->seconds - 3, 1);
	effect->steps = 1U << JOB_WRITE;
	effect->cause = VAPRO_BLOCKED_IO;
	effect->period = draw__between(draw, 7, 10);
	effect->length = draw__between(draw, 0.155, 0.5);
}

static void lasting(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect = fault_of_calls(job, draw, length_ms);

	job->ranks = 16;
	job->hosts = 2;
	job->seconds = 630;
	effect->begin = 30;
	choose_rank(job, draw, effect);
}

#define S .part = "simulated", .kind =
#define NETWORK VAPRO_COMMUNICATION
static const struct accuracy_case cases[] = {
    {S "network-all", CASE_FAULT, {0.1, 1, 20, 500}, slow_calls, VARIANT(struct calls, NETWORK, SPELL, false)},
    {S "network-all-end", CASE_FAULT, {1, 20, 500}, slow_calls, VARIANT(struct calls, NETWORK, TO_THE_END, false)},
    {S "network-rank", CASE_FAULT, {1, 20, 500}, slow_calls, VARIANT(struct calls, NETWORK, SPELL, true)},
    {S "network-rank-end", CASE_FAULT, {1, 20, 500}, slow_calls, VARIANT(struct calls, NETWORK, TO_THE_END, true)},
    {S "network-rank-always", CASE_FAULT, {1, 20, 500}, slow_calls, VARIANT(struct calls, NETWORK, ALWAYS, true)},
    {S "io-all", CASE_FAULT, {1, 20, 500}, slow_calls, VARIANT(struct calls, VAPRO_IO, SPELL, false)},
    {S "io-all-end", CASE_FAULT, {1, 20, 500}, slow_calls, VARIANT(struct calls, VAPRO_IO, TO_THE_END, false)},
    {S "io-rank", CASE_FAULT, {1, 20, 500}, slow_calls, VARIANT(struct calls, VAPRO_IO, SPELL, true)},
    {S "io-rank-always", CASE_FAULT, {1, 20, 500}, slow_calls, VARIANT(struct calls, VAPRO_IO, ALWAYS, true)},
    {S "io-stalls", CASE_FAULT, {1, 20, 500}, io_stalls},
    {S "lasting-network", CASE_LASTING, {1, 20, 500}, lasting, VARIANT(struct calls, NETWORK, TO_THE_END, false)},
    {S "lasting-io", CASE_LASTING, {1, 20, 500}, lasting, VARIANT(struct calls, VAPRO_IO, TO_THE_END, false)},
    {S "lasting-io-rank", CASE_LASTING, {1, 20, 500}, lasting, VARIANT(struct calls, VAPRO_IO, TO_THE_END, true)},
};

const struct case_table call_cases = {cases, sizeof(cases) / sizeof(*cases)};
