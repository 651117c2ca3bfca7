/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of computation in programs of many shapes. Everything is demanded, however few fragments were seen before. */
#include "cases.h"
#include "shape.h"

#define C VAPRO_COMPUTATION
#define ALARM FINDING_ALARM
#define PLACE FINDING_PLACE

struct shaped {
	const struct shape *shape;
	bool sizes; /* each piece of work has another size: without counts a silent slowdown cannot be seen */
	bool device;
};

static const struct shaped *begin(struct job *job, struct draw *draw)
{
	const struct shaped *shaped = job->variant;

	job->shape = shaped->shape;
	job->few = true;
	job->shape->prepare(job, draw);
	return shaped;
}

/* Rank 0 of a farm has next to no work. */
static int rank_of(const struct job *job, struct draw *draw)
{
	return draw__int(draw, 1, job->ranks - 1);
}

static struct job_ranks one(int rank)
{
	return (struct job_ranks){RANKS_RANGE, rank, rank};
}

static double onset(struct draw *draw)
{
	return draw__between(draw, 18, 30);
}

static struct job_effect *hog_of(struct job *job, struct draw *draw, int rank, double begin, double seconds)
{
	struct job_effect *effect =
	    job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, begin, begin + seconds, draw__between(draw, 1.5, 2.6));

	effect->ranks = one(rank);
	return effect;
}

static void hog(struct job *job, struct draw *draw, double length_ms)
{
	const struct shaped *shaped = begin(job, draw);
	struct job_effect *effect;

	(void)length_ms;
	effect = hog_of(job, draw, rank_of(job, draw), onset(draw), draw__between(draw, 7, 15));
	/* little of a device's program is on the CPU */
	effect->factor += shaped->device ? 2 : 0;
}

/* A rank or a host that is slow for no reason that the kernel knows; the device of a GPU program. */
static struct job_effect *slow(struct job *job, const struct shaped *shaped, enum finding arguments, double from,
			       double to, double factor)
{
	if (shaped->device)
		return job__fault(job, C, ALARM, ALARM, EFFECT_DEVICE, from, to, factor);
	return job__fault(job, C, ALARM, shaped->sizes ? FINDING_NONE : arguments, EFFECT_SLOW, from, to, factor);
}

static void silent(struct job *job, struct draw *draw, double length_ms)
{
	const struct shaped *shaped = begin(job, draw);
	double from = onset(draw);

	(void)length_ms;
	slow(job, shaped, ALARM, from, from + draw__between(draw, 8, 15), draw__between(draw, 1.35, 1.9))->ranks =
	    one(rank_of(job, draw));
}

static void host(struct job *job, struct draw *draw, double length_ms)
{
	const struct shaped *shaped = begin(job, draw);
	double from = onset(draw);

	(void)length_ms;
	slow(job, shaped, PLACE, from, from + draw__between(draw, 12, 20), draw__between(draw, 1.22, 1.5))->ranks =
	    cases__host(job, draw);
}

/* A host that is slow from the first second to the last. */
static void always(struct job *job, struct draw *draw, double length_ms)
{
	const struct shaped *shaped = begin(job, draw);
	struct job_effect *effect;

	(void)length_ms;
	effect = slow(job, shaped, PLACE, 0, 0, draw__between(draw, 1.22, 1.5));
	effect->ranks = cases__host(job, draw);
	/* the last host may have a program of its own: then no other rank shows what it should take */
	if (shaped->shape == &shape_mpmd && effect->ranks.first == job->hosts - 1)
		effect->ranks.first = effect->ranks.last = 0;
	/* that a device is slow for ever is no more certain with counts */
	for (int mode = 0; shaped->device && mode < JOB_MODES; mode++)
		job->faults[0].expected[mode] = PLACE;
}

static void frequency(struct job *job, struct draw *draw, double length_ms)
{
	double from;

	(void)length_ms;
	begin(job, draw);
	from = onset(draw);
	job__fault(job, C, ALARM, ALARM, EFFECT_FREQUENCY, from, from + draw__between(draw, 10, 20),
		   draw__between(draw, 1.3, 1.6))
	    ->ranks = cases__host(job, draw);
}

static void quota(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;

	(void)length_ms;
	begin(job, draw);
	effect = hog_of(job, draw, rank_of(job, draw), onset(draw), draw__between(draw, 8, 15));
	effect->cause = VAPRO_THROTTLED;
	effect->period = 0.1;
	effect->share = draw__between(draw, 0.3, 0.6);
	effect->factor = 1;
}

/* A process is stopped for two seconds. */
static void stop(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;

	(void)length_ms;
	begin(job, draw);
	effect = job__fault(job, C, ALARM, ALARM, EFFECT_STALLS, draw__between(draw, 25, 40), 0, 1);
	effect->ranks = one(rank_of(job, draw));
	effect->length = 2;
	effect->cause = VAPRO_STOPPED;
}

/* A hog on one rank; another rank of another host is silently slow, from the middle of it on. */
static void overlap(struct job *job, struct draw *draw, double length_ms)
{
	const struct shaped *shaped = begin(job, draw);
	double from = onset(draw), seconds = draw__between(draw, 8, 14);
	int rank = rank_of(job, draw), other = (rank + job->ranks / 2) % job->ranks;

	(void)length_ms;
	hog_of(job, draw, rank, from, seconds);
	slow(job, shaped, ALARM, from + 0.5 * seconds, from + 1.5 * seconds, draw__between(draw, 1.4, 1.9))->ranks =
	    one(other ? other : job->ranks / 2 - 1);
}

/* A hog that moves to the CPU of another rank. */
static void follow(struct job *job, struct draw *draw, double length_ms)
{
	double from = 0, seconds = 0;
	int rank;

	(void)length_ms;
	begin(job, draw);
	from = onset(draw);
	seconds = draw__between(draw, 6, 10);
	rank = rank_of(job, draw);
	hog_of(job, draw, rank, from, seconds);
	hog_of(job, draw, rank > 1 ? rank - 1 : rank + 1, from + seconds, draw__between(draw, 6, 10));
}

/* Steal of time by a hypervisor on one host, ranks placed in turn. */
static void steal(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;

	(void)length_ms;
	begin(job, draw);
	job->cyclic = true;
	effect = hog_of(job, draw, 0, onset(draw), draw__between(draw, 8, 15));
	effect->ranks = cases__host(job, draw);
	effect->cause = VAPRO_STEAL;
}

/* Few or many ranks. */
struct sized {
	const struct shape *shape;
	int ranks, hosts;
};

static void sized(struct job *job, struct draw *draw, double length_ms)
{
	const struct sized *sized = job->variant;

	(void)length_ms;
	job->shape = sized->shape;
	job->few = true;
	job->ranks = sized->ranks;
	job->hosts = sized->hosts;
	job->shape->prepare(job, draw);
	if (job->ranks > 256)
		shape__scale(job, 8);
	hog_of(job, draw, draw__int(draw, 0, job->ranks - 1), job->ranks == 1 ? 38 : 28, draw__between(draw, 6, 12));
}

/* A rank is late for observation and then gets a hog; others leave. */
static void late(struct job *job, struct draw *draw, double length_ms)
{
	(void)length_ms;
	begin(job, draw);
	job->watch = (struct job_watch){job->ranks * 3 / 4, 15, 0};
	hog_of(job, draw, draw__int(draw, job->watch.first, job->ranks - 1), 32, draw__between(draw, 7, 12));
}

static void left(struct job *job, struct draw *draw, double length_ms)
{
	(void)length_ms;
	begin(job, draw);
	job->watch = (struct job_watch){job->ranks * 3 / 4, 0, 35};
	hog_of(job, draw, draw__int(draw, 1, job->watch.first - 1), 28, draw__between(draw, 10, 14));
}

/* ---- Work that comes rarely, or never twice */

struct rarely {
	const struct shape *shape;
	int ranks, hosts, iterations;
	double length_s;	      /* of a piece, of the first iteration */
	double jitter, from, seconds; /* of the job; slow from */
	double factor;
	struct job_ranks ranks_of;
	enum finding arguments;
};

static void rarely(struct job *job)
{
	const struct rarely *rarely = job->variant;

	job->shape = rarely->shape;
	job->few = true;
	job->ranks = rarely->ranks;
	job->hosts = rarely->hosts;
	job->iterations = rarely->iterations;
	job->seconds = rarely->seconds;
	job->jitter = rarely->jitter;
	job->shape->prepare(job, NULL);
	job->steps[0].ns = rarely->length_s * S_NS;
	if (rarely->factor > 1)
		job__fault(job, C, ALARM, rarely->arguments, EFFECT_SLOW, rarely->from, 0, rarely->factor)->ranks =
		    rarely->ranks_of;
}

#define S .part = "shapes", .kind =
#define EACH(text, name, function, sizes, device)                                                                      \
	{                                                                                                              \
		S text, CASE_FAULT, {0}, function, VARIANT(struct shaped, &shape_##name, sizes, device)                \
	}
#define SHAPE(name, sizes, device)                                                                                     \
	EACH(#name "-hog", name, hog, sizes, device), EACH(#name "-silent", name, silent, sizes, device),              \
	    EACH(#name "-host", name, host, sizes, device), EACH(#name "-always", name, always, sizes, device),        \
	    EACH(#name "-quota", name, quota, sizes, device), EACH(#name "-stop", name, stop, sizes, device),          \
	    EACH(#name "-overlap", name, overlap, sizes, device), EACH(#name "-follow", name, follow, sizes, device),  \
	    EACH(#name "-steal", name, steal, sizes, device)
#define RARE(text, ...)                                                                                                \
	{                                                                                                              \
		S text, CASE_FAULT | CASE_LARGE, .study = rarely, .variant = VARIANT(struct rarely, __VA_ARGS__)       \
	}
#define EP(pieces) &shape_pieces, 64, 4, pieces, 60.0 / pieces, .005, 0, 85, 1.4, {RANKS_RANGE, 3, 3}, PLACE
#define HPL(count, longest, from, seconds)                                                                             \
	&shape_shrinking, 36, 1, count, longest, .004, from, seconds, 1.222, {RANKS_SOCKET, 1, 1}, FINDING_NONE

static const struct accuracy_case cases[] = {
    SHAPE(grid, false, false),
    SHAPE(sweep, false, false),
    SHAPE(farm, true, false),
    SHAPE(stealing, true, false),
    SHAPE(amr, false, false),
    SHAPE(phases, false, false),
    SHAPE(mpmd, false, false),
    SHAPE(uncoupled, false, false),
    SHAPE(gpu, false, true),
    SHAPE(nested, false, false),
    EACH("grid-frequency", grid, frequency, false, false),
    EACH("farm-frequency", farm, frequency, true, false),
    EACH("amr-frequency", amr, frequency, false, false),
    EACH("uncoupled-frequency", uncoupled, frequency, false, false),
    EACH("grid-late", grid, late, false, false),
    EACH("uncoupled-late", uncoupled, late, false, false),
    EACH("farm-left", farm, left, true, false),
    EACH("uncoupled-left", uncoupled, left, false, false),
    {S "uncoupled-1", CASE_FAULT, {0}, sized, VARIANT(struct sized, &shape_uncoupled, 1, 1)},
    {S "grid-2", CASE_FAULT, {0}, sized, VARIANT(struct sized, &shape_grid, 2, 2)},
    {S "amr-4096", CASE_FAULT | CASE_LARGE, {0}, sized, VARIANT(struct sized, &shape_amr, 4096, 256)},
    {S "uncoupled-1024", CASE_FAULT | CASE_LARGE, {0}, sized, VARIANT(struct sized, &shape_uncoupled, 1024, 64)},
    RARE("ep1", EP(1)),
    RARE("ep6", EP(6)),
    RARE("hpl208", HPL(208, 1.15, 0, 98)),
    RARE("hpl208-middle", HPL(208, 1.15, 20, 95)),
    RARE("hpl1000", HPL(1000, .24, 0, 105)),
    RARE("hpl1000-middle", HPL(1000, .24, 20, 100)),
    RARE("long2s", &shape_pieces, 16, 4, 0, 2, .005, 0, 60, 1.3, {RANKS_HOST, 1, 1}, PLACE),
};

const struct case_table shape_fault_cases = {cases, sizeof(cases) / sizeof(*cases)};
