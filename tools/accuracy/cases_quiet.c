/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs without a fault that may look like one. */
#include "cases.h"

static void usual(struct job *job, struct draw *draw, double length_ms)
{
	cases__usual(job, draw, length_ms, 0.05, 0);
}

static double middle(const struct job *job, struct draw *draw)
{
	return draw__between(draw, 0.25, 0.5) * job->seconds;
}

static void jitter(struct job *job, struct draw *draw, double length_ms)
{
	cases__usual(job, draw, length_ms, 0.05, draw__unit(draw) < 0.3 ? 0.1 : 0);
	job->jitter = draw__between(draw, 0.01, 0.06);
}

static void jitter_small(struct job *job, struct draw *draw, double length_ms)
{
	jitter(job, draw, length_ms);
	job->ranks = 1 << draw__int(draw, 0, 3);
	job->hosts = 1;
}

static void jitter_1024(struct job *job, struct draw *draw, double length_ms)
{
	jitter(job, draw, length_ms);
	job->ranks = 1024;
	job->hosts = 32;
	job->seconds = 60;
}

/* Ten minutes of 4,096 ranks, 20 bundles of each a second. */
static void jitter_4096(struct job *job, struct draw *draw, double length_ms)
{
	jitter(job, draw, length_ms);
	job->ranks = 4096;
	job->hosts = 64;
	job->cyclic = false;
	job->seconds = 600;
	job->bulk = true;
	job->step_count = JOB_ALLREDUCE + 1;
}

static void tails(struct job *job, struct draw *draw, double length_ms)
{
	usual(job, draw, length_ms);
	job__effect(job, EFFECT_TAILS, 0, 0, draw__between(draw, 2.5, 4))->share = 0.002 * pow(10, draw__unit(draw));
}

static void lucky(struct job *job, struct draw *draw, double length_ms)
{
	usual(job, draw, length_ms);
	job__effect(job, EFFECT_LUCKY, middle(job, draw), 0, 0.6)->ranks = cases__rank(job, draw);
}

/* One rank sets up while all others' cores idle: its first seconds are faster. */
static void turbo(struct job *job, struct draw *draw, double length_ms)
{
	usual(job, draw, length_ms);
	job__effect(job, EFFECT_SLOW, 0, draw__between(draw, 2, 6), 1 / draw__between(draw, 1.15, 1.4))->ranks =
	    cases__rank(job, draw);
}

static void power_limit(struct job *job, struct draw *draw, double length_ms)
{
	usual(job, draw, length_ms);
	job__effect(job, EFFECT_FREQUENCY, 30, 0, draw__between(draw, 1.04, 1.1));
}

/* The second half of each host's ranks run on slower cores; where `reported`, their frequency says so. */
static void core_types(struct job *job, struct draw *draw, double length_ms)
{
	bool reported;

	usual(job, draw, length_ms);
	reported = draw__unit(draw) < 0.3;
	job->core_types = true;
	job->second_core = (struct job_ranks){RANKS_SECOND_SOCKETS, 0, 0};
	job__effect(job, reported ? EFFECT_FREQUENCY : EFFECT_SLOW, 0, 0, draw__between(draw, 1.2, 1.4))->ranks =
	    job->second_core;
}

static void cold(struct job *job, struct draw *draw, double length_ms)
{
	usual(job, draw, length_ms);
	job__effect(job, EFFECT_COLD, 0, 0, draw__between(draw, 2, 3))->share = 10;
}

/* Two or three groups of durations in one state, or in both. */
static void groups(struct job *job, struct draw *draw, double length_ms)
{
	bool alike = draw__unit(draw) < 0.5;
	int count = draw__int(draw, 1, 2);

	usual(job, draw, length_ms);
	for (int i = 0; i < count; i++) {
		struct job_effect *effect = job__effect(job, EFFECT_GROUPS, 0, 0, draw__between(draw, 1.4, 2.5));

		effect->share = draw__between(draw, 0.1, 0.5);
		effect->alike = alike;
		effect->steps = 1U << JOB_COMPUTE;
	}
}

static void more_work_all(struct job *job, struct draw *draw, double length_ms)
{
	usual(job, draw, length_ms);
	job__effect(job, EFFECT_WORK, 0, 0, draw__between(draw, 1.1, 1.8))->ranks = cases__host(job, draw);
}

static void more_work_one(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;

	usual(job, draw, length_ms);
	effect = job__effect(job, EFFECT_WORK, 0, 0, draw__between(draw, 1.2, 2));
	effect->ranks = cases__host(job, draw);
	effect->steps = 1U << (draw__unit(draw) < 0.5 ? JOB_COMPUTE : JOB_MEMORY);
}

/* Ranks on two hosts get more work, others as much less. */
static void moved(struct job *job, struct draw *draw, double length_ms)
{
	int width = draw__int(draw, 2, 6), border, other;
	double factor = draw__between(draw, 1.2, 1.6), begin = draw__between(draw, 20, 35);

	usual(job, draw, length_ms);
	/* of block placement the border of two hosts lies within, of cyclic any neighbours do */
	border = 8 * draw__int(draw, 1, job->hosts - 1);
	other = (border + job->ranks / 2) % job->ranks;
	if (other < width)
		other = width;
	if (other > job->ranks - width)
		other = job->ranks - width;
	job__effect(job, EFFECT_WORK, begin, 0, factor)->ranks =
	    (struct job_ranks){RANKS_RANGE, border - width, border + width - 1};
	if (other - width > border + width - 1 || other + width - 1 < border - width)
		job__effect(job, EFFECT_WORK, begin, 0, 2 - factor)->ranks =
		    (struct job_ranks){RANKS_RANGE, other - width, other + width - 1};
}

/* Work moves from one rank to another. */
static void moved_pair(struct job *job, struct draw *draw, double length_ms)
{
	double part = draw__between(draw, 0.25, 0.6), begin = draw__between(draw, 20, 35);
	int rank, other;

	usual(job, draw, length_ms);
	rank = draw__int(draw, 0, job->ranks - 1);
	other = (rank + draw__int(draw, 1, job->ranks - 1)) % job->ranks;
	job__effect(job, EFFECT_WORK, begin, 0, 1 + part)->ranks = (struct job_ranks){RANKS_RANGE, rank, rank};
	job__effect(job, EFFECT_WORK, begin, 0, 1 - part)->ranks = (struct job_ranks){RANKS_RANGE, other, other};
}

/* A computation of all ranks changes its work, for a while or for good. */
static void phases(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;
	double begin;

	usual(job, draw, length_ms);
	begin = middle(job, draw);
	effect = job__effect(job, EFFECT_WORK, begin, draw__unit(draw) < 0.5 ? 0 : begin + draw__between(draw, 8, 30),
			     draw__unit(draw) < 0.3 ? 0.6 : draw__between(draw, 1.25, 2));
	if (draw__unit(draw) < 0.7)
		effect->steps = 1U << JOB_COMPUTE;
}

#define S .part = "simulated", .kind =
static const struct accuracy_case cases[] = {
    {S "jitter", CASE_QUIET, {0.1, 1, 20, 500, 2000}, jitter},
    {S "jitter-small", CASE_QUIET, {1, 20, 500}, jitter_small},
    {S "jitter-1024", CASE_QUIET | CASE_LARGE, {20, 500}, jitter_1024},
    {S "jitter-4096", CASE_QUIET | CASE_LARGE, {5}, jitter_4096},
    {S "tails", CASE_QUIET, {1, 20, 500}, tails},
    {S "lucky", CASE_QUIET, {1, 20, 500}, lucky},
    {S "turbo", CASE_QUIET, {1, 20, 500}, turbo},
    {S "power-limit", CASE_QUIET, {1, 20, 500}, power_limit},
    {S "core-types", CASE_QUIET, {1, 20, 500}, core_types},
    {S "cold", CASE_QUIET, {1, 20, 500}, cold},
    {S "groups", CASE_QUIET, {1, 20, 500}, groups},
    {S "more-work-all", CASE_QUIET, {1, 20, 500}, more_work_all},
    {S "more-work-one", CASE_QUIET, {1, 20, 500}, more_work_one},
    {S "moved", CASE_QUIET, {1, 20, 500}, moved},
    {S "moved-pair", CASE_QUIET, {1, 20, 500}, moved_pair},
    {S "phases", CASE_QUIET, {1, 20, 500}, phases},
};

const struct case_table quiet_cases = {cases, sizeof(cases) / sizeof(*cases)};
