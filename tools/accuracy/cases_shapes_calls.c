/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of network and IO in programs of many shapes, alone and beside a hog. Their rows have no bar. */
#include "cases.h"
#include "shape.h"

#define ALARM FINDING_ALARM

struct network {
	const struct shape *shape;
	uint32_t steps;				   /* calls that it slows */
	double more_ms;				   /* that each of them takes longer ... */
	double of_ms;				   /* ... of so many */
	enum { ALL, HALF, RANK } who;		   /* the upper half: their switch */
	enum { ALONE, AT_ONCE, AFTER, EVER } when; /* and a hog */
};

static void network(struct job *job, struct draw *draw, double length_ms)
{
	const struct network *network = job->variant;
	double from = draw__between(draw, 20, 26), to = from + draw__between(draw, 10, 15);
	struct job_effect *effect;
	int rank;

	(void)length_ms;
	job->shape = network->shape;
	job->few = true;
	job->shape->prepare(job, draw);
	rank = draw__int(draw, 1, job->ranks / 2 - 1);
	effect = job__fault(job, VAPRO_COMMUNICATION, ALARM, ALARM, EFFECT_CALLS, network->when == EVER ? 0 : from,
			    network->when == EVER ? 0 : to, 1 + network->more_ms / network->of_ms);
	effect->steps = network->steps;
	if (network->who == HALF)
		effect->ranks = (struct job_ranks){RANKS_RANGE, job->ranks / 2, job->ranks - 1};
	if (network->who == RANK)
		effect->ranks = (struct job_ranks){RANKS_RANGE, rank, rank};
	if (network->when == ALONE || network->when == EVER)
		return;
	effect = job__fault(job, VAPRO_COMPUTATION, ALARM, ALARM, EFFECT_CPU_BUSY,
			    network->when == AFTER ? fmax(10, from - 12) : from + 4,
			    network->when == AFTER ? from - 2 : to + 4, 2);
	effect->ranks = (struct job_ranks){RANKS_RANGE, rank, rank};
}

/* Each rank writes in each fourth step; some ranks' files lie on a slow storage target. */
struct storage {
	double from, to; /* 0: always */
	double factor;
	bool hog;
};

static void storage(struct job *job, struct draw *draw, double length_ms)
{
	const struct storage *storage = job->variant;
	int rank = draw__int(draw, 0, 7);

	job->ranks = 16;
	job->hosts = 4;
	job->seconds = 60;
	job->few = true;
	job->jitter = draw__between(draw, 0.005, 0.02);
	job__program(job, length_ms * 1e6, 0.005, 0.12);
	job->steps[JOB_WRITE].every = 4;
	/* one target of eight: ranks r and r + 8 */
	for (int i = 0; i < 2; i++) {
		struct job_effect *effect = job__effect(job, EFFECT_CALLS, storage->from, storage->to, storage->factor);

		if (!i)
			job->faults[job->fault_count++] =
			    (struct job_fault){.class = VAPRO_IO, .expected = {ALARM, ALARM}};
		effect->fault = 1;
		effect->ranks = (struct job_ranks){RANKS_RANGE, rank + 8 * i, rank + 8 * i};
		effect->steps = 1U << JOB_WRITE;
		effect->cause = VAPRO_BLOCKED_IO;
		effect->reported = true;
	}
	if (storage->hog)
		job__fault(job, VAPRO_COMPUTATION, ALARM, ALARM, EFFECT_CPU_BUSY, storage->from + 4, storage->to + 4, 2)
		    ->ranks = (struct job_ranks){RANKS_RANGE, rank + 3, rank + 3};
}

/* One host needs 3.5 times as long for the second checkpoint. */
static void checkpoint(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;

	(void)length_ms;
	job->shape = &shape_phases;
	job->few = true;
	job->shape->prepare(job, draw);
	effect = job__fault(job, VAPRO_IO, ALARM, ALARM, EFFECT_CALLS, 59, 66, 3.5);
	effect->ranks = cases__host(job, draw);
	effect->steps = 1U << 8; /* its checkpoints */
	effect->cause = VAPRO_BLOCKED_IO;
	effect->reported = true;
}

/* NoiseMiner's NAMD as it was: 4 ranks, sends of rank 0 (of all) take 5.7 ms more, at random. */
struct hits {
	double period_s;
	int last; /* rank */
	enum finding expected;
};

static void namd(struct job *job)
{
	const struct hits *hits = job->variant;
	struct job_effect *effect;

	job->shape = &shape_sends;
	job->few = true;
	job->ranks = 4;
	job->hosts = 1;
	job->seconds = 40;
	job->jitter = 0.01;
	job->shape->prepare(job, NULL);
	effect = job__fault(job, VAPRO_COMMUNICATION, hits->expected, hits->expected, EFFECT_HITS, 0, 0, 2);
	effect->ranks = (struct job_ranks){RANKS_RANGE, 0, hits->last};
	effect->period = hits->period_s;
	effect->length = 5.7e-3;
}

#define S .part = "shapes", .kind =
#define NETWORK(text, ...)                                                                                             \
	{                                                                                                              \
		S text, CASE_FAULT, {0}, network, VARIANT(struct network, __VA_ARGS__)                                 \
	}
#define HITS(text, ...)                                                                                                \
	{                                                                                                              \
		S text, CASE_FAULT | CASE_LARGE, .study = namd, .variant = VARIANT(struct hits, __VA_ARGS__)           \
	}
#define GRID_CALLS (1U << 1 | 1U << 3)
static const struct accuracy_case cases[] = {
    NETWORK("grid-network", &shape_grid, GRID_CALLS, 6, .3, ALL, ALONE),
    NETWORK("grid-switch", &shape_grid, 1U << 1, 8, .3, HALF, ALONE),
    NETWORK("grid-hog+network", &shape_grid, GRID_CALLS, 6, .3, ALL, AT_ONCE),
    NETWORK("grid-hog-network", &shape_grid, GRID_CALLS, 6, .3, ALL, AFTER),
    NETWORK("amr-network", &shape_amr, 1U << 1, 8, .3, ALL, ALONE),
    NETWORK("amr-hog+network", &shape_amr, 1U << 1, 8, .3, ALL, AT_ONCE),
    NETWORK("mpmd-network", &shape_mpmd, 1U << 1 | 1U << 3, 4, .1, ALL, ALONE),
    NETWORK("gpu-network", &shape_gpu, 1U << 3, 8, .2, ALL, ALONE),
    NETWORK("sweep-network", &shape_sweep, 1U << 0, 3, .04, ALL, ALONE),
    NETWORK("uncoupled-nic", &shape_uncoupled, 1U << 3, 3.6, 1.2, RANK, ALONE),
    NETWORK("uncoupled-nic-always", &shape_uncoupled, 1U << 3, 3.6, 1.2, RANK, EVER),
    {S "storage-spell", CASE_FAULT, {60}, storage, VARIANT(struct storage, 25, 50, 6, false)},
    {S "storage-always", CASE_FAULT, {60}, storage, VARIANT(struct storage, 0, 0, 4, false)},
    {S "storage-hog", CASE_FAULT, {60}, storage, VARIANT(struct storage, 25, 45, 6, true)},
    {S "phases-checkpoint", CASE_FAULT, {0}, checkpoint},
    HITS("namd-sends", .02134, 0, ALARM),
    HITS("namd-sends-mild", .2, 0, FINDING_REPORTED),
    HITS("namd-sends-all", .02134, 3, ALARM),
};

const struct case_table shape_call_cases = {cases, sizeof(cases) / sizeof(*cases)};
