/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of communication and IO. */
#include "cases.h"

#define ALARM FINDING_ALARM

enum when { SPELL, TO_THE_END, ALWAYS };

static double onset(const struct job *job, struct draw *draw, double length_ms)
{
	double least = length_ms >= 400 ? 50 : 25;

	return draw__between(draw, least, fmax(least + 1, 0.5 * job->seconds));
}

static struct job_effect *slow_calls(struct job *job, struct draw *draw, double length_ms, enum vapro_class class,
				     enum when when)
{
	bool io = class == VAPRO_IO;
	struct job_effect *effect;
	double begin = 0, end = 0;

	cases__usual(job, draw, length_ms, io ? 0.05 : 0.2, io ? 0.2 : 0);
	/* what is slow must stand out of the waiting that jitter makes */
	job->jitter = draw__between(draw, 0.005, 0.015);
	if (when != ALWAYS)
		begin = onset(job, draw, length_ms);
	if (when == SPELL)
		end = begin + draw__between(draw, 6, 25);
	effect = job__fault(job, class, ALARM, ALARM, EFFECT_CALLS, begin, end, draw__between(draw, 2.5, 5));
	effect->steps = io ? 1U << JOB_WRITE : 1U << JOB_EXCHANGE | 1U << JOB_ALLREDUCE;
	effect->cause = VAPRO_BLOCKED_IO;
	effect->reported = io;
	return effect;
}

static void network_all(struct job *job, struct draw *draw, double length_ms)
{
	slow_calls(job, draw, length_ms, VAPRO_COMMUNICATION, SPELL);
}

static void network_all_end(struct job *job, struct draw *draw, double length_ms)
{
	slow_calls(job, draw, length_ms, VAPRO_COMMUNICATION, TO_THE_END);
}

/* The transfers of one rank end late for itself; its partners have theirs in time. */
static void network_rank(struct job *job, struct draw *draw, double length_ms)
{
	slow_calls(job, draw, length_ms, VAPRO_COMMUNICATION, SPELL)->ranks = cases__rank(job, draw);
}

static void network_rank_end(struct job *job, struct draw *draw, double length_ms)
{
	slow_calls(job, draw, length_ms, VAPRO_COMMUNICATION, TO_THE_END)->ranks = cases__rank(job, draw);
}

static void network_rank_always(struct job *job, struct draw *draw, double length_ms)
{
	slow_calls(job, draw, length_ms, VAPRO_COMMUNICATION, ALWAYS)->ranks = cases__rank(job, draw);
}

static void io_all(struct job *job, struct draw *draw, double length_ms)
{
	slow_calls(job, draw, length_ms, VAPRO_IO, SPELL);
}

static void io_all_end(struct job *job, struct draw *draw, double length_ms)
{
	slow_calls(job, draw, length_ms, VAPRO_IO, TO_THE_END);
}

static void io_rank(struct job *job, struct draw *draw, double length_ms)
{
	slow_calls(job, draw, length_ms, VAPRO_IO, SPELL)->ranks = cases__rank(job, draw);
}

static void io_rank_always(struct job *job, struct draw *draw, double length_ms)
{
	slow_calls(job, draw, length_ms, VAPRO_IO, ALWAYS)->ranks = cases__rank(job, draw);
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

static void lasting(struct job *job, struct draw *draw, double length_ms, enum vapro_class class)
{
	struct job_effect *effect = slow_calls(job, draw, length_ms, class, TO_THE_END);

	job->ranks = 16;
	job->hosts = 2;
	job->seconds = 630;
	effect->begin = 30;
}

static void lasting_network(struct job *job, struct draw *draw, double length_ms)
{
	lasting(job, draw, length_ms, VAPRO_COMMUNICATION);
}

static void lasting_io(struct job *job, struct draw *draw, double length_ms)
{
	lasting(job, draw, length_ms, VAPRO_IO);
}

static void lasting_io_rank(struct job *job, struct draw *draw, double length_ms)
{
	lasting(job, draw, length_ms, VAPRO_IO);
	job->effects[0].ranks = cases__rank(job, draw);
}

#define S "simulated",
static const struct accuracy_case cases[] = {
    {S "network-all", CASE_FAULT, {0.1, 1, 20, 500}, network_all},
    {S "network-all-end", CASE_FAULT, {1, 20, 500}, network_all_end},
    {S "network-rank", CASE_FAULT, {1, 20, 500}, network_rank},
    {S "network-rank-end", CASE_FAULT, {1, 20, 500}, network_rank_end},
    {S "network-rank-always", CASE_FAULT, {1, 20, 500}, network_rank_always},
    {S "io-all", CASE_FAULT, {1, 20, 500}, io_all},
    {S "io-all-end", CASE_FAULT, {1, 20, 500}, io_all_end},
    {S "io-rank", CASE_FAULT, {1, 20, 500}, io_rank},
    {S "io-rank-always", CASE_FAULT, {1, 20, 500}, io_rank_always},
    {S "io-stalls", CASE_FAULT, {1, 20, 500}, io_stalls},
    {S "lasting-network", CASE_LASTING, {1, 20, 500}, lasting_network},
    {S "lasting-io", CASE_LASTING, {1, 20, 500}, lasting_io},
    {S "lasting-io-rank", CASE_LASTING, {1, 20, 500}, lasting_io_rank},
};

const struct case_table call_cases = {cases, sizeof(cases) / sizeof(*cases)};
