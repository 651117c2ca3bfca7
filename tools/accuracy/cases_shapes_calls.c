/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of network and IO in programs of many shapes, alone and beside a hog. Their rows have no bar. */
#include "cases.h"
#include "shape.h"

#define ALARM FINDING_ALARM

struct network {
	int ranks;				     /* of the usual program; 0: 16 */
	const struct shape *shape;		     /* NULL: the usual program */
	uint32_t steps;				     /* calls that it slows */
	double more_ms;				     /* that each of them takes longer ... */
	double of_ms;				     /* ... of so many */
	enum { ALL, HALF, QUARTER, RANK, LINK } who; /* the upper half or quarter: their switch; both its ends */
	enum { ALONE, AT_ONCE, TOUCHING, AFTER, EVER } when; /* and a hog */
};

/* Prepares the usual program: calls take so many ms. */
static void usual(struct job *job, struct draw *draw, int ranks, double calls_ms)
{
	job->ranks = ranks ? ranks : 16;
	job->hosts = job->ranks < 4 ? job->ranks : 4;
	job->seconds = 60;
	job->jitter = draw__between(draw, 0.005, 0.02);
	job__program(job, 40e6, calls_ms / 40, 0);
}

static void network(struct job *job, struct draw *draw, double length_ms)
{
	const struct network *network = job->variant;
	double from = draw__between(draw, 20, 26), to = from + draw__between(draw, 10, 15);
	struct job_effect *effect;
	int rank;

	(void)length_ms;
	job->shape = network->shape;
	job->few = true;
	if (job->shape)
		job->shape->prepare(job, draw);
	else
		usual(job, draw, network->ranks, network->of_ms);
	rank = job->ranks > 2 ? draw__int(draw, 1, job->ranks / 2 - 1) : 0;
	effect = job__fault(job, VAPRO_COMMUNICATION, ALARM, ALARM, EFFECT_CALLS, network->when == EVER ? 0 : from,
			    network->when == EVER ? 0 : to, 1 + network->more_ms / network->of_ms);
	effect->steps = network->steps;
	if (network->who == HALF || network->who == QUARTER)
		effect->ranks = (struct job_ranks){
		    RANKS_RANGE, job->ranks - job->ranks / (network->who == HALF ? 2 : 4), job->ranks - 1};
	if (network->who == RANK || network->who == LINK)
		effect->ranks = (struct job_ranks){RANKS_RANGE, rank, rank + (network->who == LINK)};
	if (network->when == ALONE || network->when == EVER)
		return;
	effect = job__fault(job, VAPRO_COMPUTATION, ALARM, ALARM, EFFECT_CPU_BUSY,
			    network->when == AT_ONCE ? from + 4 : fmax(10, from - 12),
			    network->when == AT_ONCE	? to + 4
			    : network->when == TOUCHING ? from
							: from - 2,
			    2);
	effect->ranks = (struct job_ranks){RANKS_RANGE, rank, rank};
}

/* Some messages of one host are lost, and come a fifth of a second later. */
static void lost_messages(struct job *job, struct draw *draw, double length_ms)
{
	double from = draw__between(draw, 18, 24);
	struct job_effect *effect;

	(void)length_ms;
	job->few = true;
	usual(job, draw, 0, .3);
	effect = job__fault(job, VAPRO_COMMUNICATION, ALARM, ALARM, EFFECT_HITS, from, from + 20, 2);
	effect->ranks = cases__host(job, draw);
	effect->period = *(const double *)job->variant;
	effect->length = 0.2;
}

/* Each rank writes in each fourth step; the files of some ranks lie on a slow storage target. */
struct storage {
	double from, to; /* 0: always */
	double factor;
	bool hog;
	enum { TARGET, ONE, HOST, EVERYBODY } who; /* a target of eight has ranks r and r + 8 */
	double scatter;				   /* sigma of healthy writes, log-normal */
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
	job->noise.writes = storage->scatter;
	for (int i = 0; i < 1 + (storage->who == TARGET); i++) {
		struct job_effect *effect = job__effect(job, EFFECT_CALLS, storage->from, storage->to, storage->factor);

		if (!i)
			job->faults[job->fault_count++] =
			    (struct job_fault){.class = VAPRO_IO, .expected = {ALARM, ALARM}};
		effect->fault = 1;
		effect->ranks = storage->who == HOST ? cases__host(job, draw)
				: storage->who == EVERYBODY
				    ? (struct job_ranks){RANKS_ALL, 0, 0}
				    : (struct job_ranks){RANKS_RANGE, rank + 8 * i, rank + 8 * i};
		effect->steps = 1U << JOB_WRITE;
		effect->cause = VAPRO_BLOCKED_IO;
		effect->reported = true;
	}
	if (storage->hog)
		job__fault(job, VAPRO_COMPUTATION, ALARM, ALARM, EFFECT_CPU_BUSY, storage->from + 4, storage->to + 4, 2)
		    ->ranks = (struct job_ranks){RANKS_RANGE, rank + 3, rank + 3};
}

/* One write of a shared file system does not come back for a while. */
static void write_stall(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;

	job->ranks = 16;
	job->hosts = 4;
	job->seconds = 60;
	job->few = true;
	job->jitter = draw__between(draw, 0.005, 0.02);
	job__program(job, length_ms * 1e6, 0.005, 0.12);
	job->steps[JOB_WRITE].every = 4;
	job->noise.writes = *(const double *)job->variant;
	effect = job__fault(job, VAPRO_IO, ALARM, ALARM, EFFECT_STALLS, draw__between(draw, 30, 45), 0, 1);
	effect->ranks = cases__rank(job, draw);
	effect->steps = 1U << JOB_WRITE;
	effect->length = draw__between(draw, 1, 3);
	effect->cause = VAPRO_BLOCKED_IO;
	effect->reported = true;
}

/* Some ranks need longer for the second checkpoint, or for what is written at the end. */
struct late_write {
	int step; /* of shape_phases */
	double from, to, factor;
	enum { WRITES_HOST, WRITES_RANK, WRITES_HALF } who;
};

static void checkpoint(struct job *job, struct draw *draw, double length_ms)
{
	const struct late_write *late = job->variant;
	struct job_effect *effect;
	int rank;

	(void)length_ms;
	job->shape = &shape_phases;
	job->few = true;
	job->shape->prepare(job, draw);
	effect = job__fault(job, VAPRO_IO, ALARM, ALARM, EFFECT_CALLS, late->from, late->to, late->factor);
	rank = draw__int(draw, 1, job->ranks - 1);
	effect->ranks = late->who == WRITES_HOST   ? cases__host(job, draw)
			: late->who == WRITES_RANK ? (struct job_ranks){RANKS_RANGE, rank, rank}
						   : (struct job_ranks){RANKS_RANGE, 0, job->ranks * 3 / 8 - 1};
	effect->steps = 1U << late->step;
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
		S text, CASE_FAULT, {0}, network, VARIANT(struct network, 0, __VA_ARGS__)                              \
	}
#define HITS(text, ...)                                                                                                \
	{                                                                                                              \
		S text, CASE_FAULT | CASE_LARGE, .study = namd, .variant = VARIANT(struct hits, __VA_ARGS__)           \
	}
#define STORAGE(text, length_ms, ...)                                                                                  \
	{                                                                                                              \
		S text, CASE_FAULT, {length_ms}, storage, VARIANT(struct storage, __VA_ARGS__)                         \
	}
#define CHECKPOINT(text, ...)                                                                                          \
	{                                                                                                              \
		S text, CASE_FAULT, {0}, checkpoint, VARIANT(struct late_write, __VA_ARGS__)                           \
	}
#define GRID_CALLS (1U << 1 | 1U << 3)
#define RING_CALLS (1U << JOB_EXCHANGE | 1U << JOB_ALLREDUCE)
#define PHASE_CALLS (1U << 4 | 1U << 6)
#define PHASE_WRITE 8
#define PHASE_OUTPUT 11
static const struct accuracy_case cases[] = {
    NETWORK("grid-network", &shape_grid, GRID_CALLS, 6, .3, ALL, ALONE),
    NETWORK("grid-switch", &shape_grid, 1U << 1, 8, .3, HALF, ALONE),
    NETWORK("grid-hog+network", &shape_grid, GRID_CALLS, 6, .3, ALL, AT_ONCE),
    NETWORK("grid-hog-network", &shape_grid, GRID_CALLS, 6, .3, ALL, AFTER),
    NETWORK("grid-hog|network", &shape_grid, GRID_CALLS, 6, .3, ALL, TOUCHING),
    NETWORK("grid-row", &shape_grid, 1U << 1, 8, .3, QUARTER, ALONE),
    NETWORK("grid-hog+switch", &shape_grid, 1U << 1, 8, .3, HALF, AT_ONCE),
    NETWORK("amr-network", &shape_amr, 1U << 1, 8, .3, ALL, ALONE),
    NETWORK("amr-hog+network", &shape_amr, 1U << 1, 8, .3, ALL, AT_ONCE),
    NETWORK("amr-hog-network", &shape_amr, 1U << 1, 8, .3, ALL, AFTER),
    NETWORK("mpmd-hog+network", &shape_mpmd, 1U << 1 | 1U << 3, 4, .1, ALL, AT_ONCE),
    NETWORK("nested-network", &shape_nested, 1U << 1, .6, .05, ALL, ALONE),
    NETWORK("nested-hog+network", &shape_nested, 1U << 1, .6, .05, ALL, AT_ONCE),
    NETWORK("phases-network", &shape_phases, PHASE_CALLS, 6, .3, ALL, ALONE),
    NETWORK("phases-hog+network", &shape_phases, PHASE_CALLS, 6, .3, ALL, AT_ONCE),
    NETWORK("mpmd-network", &shape_mpmd, 1U << 1 | 1U << 3, 4, .1, ALL, ALONE),
    NETWORK("gpu-network", &shape_gpu, 1U << 3, 8, .2, ALL, ALONE),
    NETWORK("gpu-hog+network", &shape_gpu, 1U << 3, 8, .2, ALL, AT_ONCE),
    NETWORK("stealing-network", &shape_stealing, 1U << 1, 3, .01, ALL, ALONE),
    NETWORK("farm-nic", &shape_farm, 1U << 1 | 1U << 3, 6, .02, RANK, ALONE),
    NETWORK("sweep-network", &shape_sweep, 1U << 0, 3, .04, ALL, ALONE),
    NETWORK("uncoupled-nic", &shape_uncoupled, 1U << 3, 3.6, 1.2, RANK, ALONE),
    NETWORK("uncoupled-nic-always", &shape_uncoupled, 1U << 3, 3.6, 1.2, RANK, EVER),
    STORAGE("storage-spell", 60, 25, 50, 6, false, TARGET, 0),
    STORAGE("storage-always", 60, 0, 0, 4, false, TARGET, 0),
    STORAGE("storage-hog", 60, 25, 45, 6, true, TARGET, 0),
    STORAGE("storage-spell20", 20, 25, 50, 6, false, TARGET, 0),
    STORAGE("storage-always20", 20, 0, 0, 4, false, TARGET, 0),
    STORAGE("storage-rank", 60, 25, 50, 6, false, ONE, 0),
    STORAGE("storage-rank-always", 60, 0, 0, 3, false, ONE, 0),
    STORAGE("storage-host", 60, 25, 50, 6, false, HOST, 0),
    STORAGE("storage-host-always", 60, 0, 0, 3, false, HOST, 0),
    STORAGE("storage-host-hog", 60, 25, 45, 6, true, HOST, 0),
    STORAGE("storage-all", 60, 30, 50, 8, false, EVERYBODY, 0),
    STORAGE("storage-rare", 250, 25, 50, 6, false, TARGET, 0),
    STORAGE("storage-rare-host", 250, 25, 50, 6, false, HOST, 0),
    STORAGE("storage-rare-all", 250, 30, 0, 20, false, EVERYBODY, .1),
    STORAGE("storage-scatter", 60, 25, 50, 10, false, TARGET, .3),
    STORAGE("storage-host-scatter", 60, 25, 50, 10, false, HOST, .3),
    NETWORK("ring-network", NULL, RING_CALLS, 6, .3, ALL, ALONE),
    NETWORK("ring-hog+network", NULL, RING_CALLS, 6, .3, ALL, AT_ONCE),
    NETWORK("ring-link", NULL, 1U << JOB_EXCHANGE, 15, .3, LINK, ALONE),
    {S "ring-two", CASE_FAULT, {0}, network, VARIANT(struct network, 2, NULL, RING_CALLS, 8, .3, ALL, ALONE)},
    {S "ring-loss", CASE_FAULT, {0}, lost_messages, VARIANT(double, 1.5)},
    {S "storage-stall", CASE_FAULT, {60}, write_stall, VARIANT(double, 0)},
    {S "storage-stall-sigma.6", CASE_FAULT, {60}, write_stall, VARIANT(double, .6)},
    CHECKPOINT("phases-checkpoint", PHASE_WRITE, 59, 66, 3.5, WRITES_HOST),
    CHECKPOINT("phases-checkpoint-rank", PHASE_WRITE, 59, 66, 4, WRITES_RANK),
    CHECKPOINT("phases-checkpoint-ranks", PHASE_WRITE, 59, 66, 3, WRITES_HALF),
    CHECKPOINT("phases-output", PHASE_OUTPUT, 70, 75, 4, WRITES_HOST),
    HITS("namd-sends", .02134, 0, ALARM),
    HITS("namd-sends-mild", .2, 0, FINDING_REPORTED),
    HITS("namd-sends-all", .02134, 3, ALARM),
};

const struct case_table shape_call_cases = {cases, sizeof(cases) / sizeof(*cases)};
