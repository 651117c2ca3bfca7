/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs of many shapes on healthy machines, and work that changes of itself: every alarm is a false one. */
#include "cases.h"
#include "shape.h"

/*
 * Hosts and sets of ranks that differ by 5 % at equal instructions are reported, as they should be (score.c): what
 * differs between hosts here stays below that.
 */
struct healthy {
	const struct shape *shape;
	struct job_noise noise;
	double varies;
};

static void healthy(struct job *job, struct draw *draw, double length_ms)
{
	const struct healthy *healthy = job->variant;

	(void)length_ms;
	job->shape = healthy->shape;
	job->shape->prepare(job, draw);
	job->noise = healthy->noise;
	if (healthy->varies > 0)
		job->varies = healthy->varies;
}

/* The second sockets are 3 % slower, and ranks are placed in turn. */
static void sockets(struct job *job, struct draw *draw, double length_ms)
{
	healthy(job, draw, length_ms);
	job->cyclic = true;
	job__effect(job, EFFECT_SLOW, 0, 0, 1.03)->ranks = (struct job_ranks){RANKS_SECOND_SOCKETS, 0, 0};
}

/* A cloud of particles gathers on one rank: its work grows by two percent a second from 20 s on. */
static void growth(struct job *job, struct draw *draw, double length_ms)
{
	healthy(job, draw, length_ms);
	job->varies = 0;
	job__effect(job, EFFECT_GROWTH, 20, job->seconds, 1 + 0.02 * (job->seconds - 20))->ranks =
	    cases__rank(job, draw);
}

/* In every 150th step rank 0 has eight times its work. */
static void diagnostics(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;

	healthy(job, draw, length_ms);
	effect = job__effect(job, EFFECT_GROUPS, 0, 0, 8);
	effect->share = 1.0 / 150;
	effect->ranks = (struct job_ranks){RANKS_RANGE, 0, 0};
	effect->steps = 1;
}

/* A quarter of the ranks is observed later than the others, no longer, or never. */
struct watched {
	const struct shape *shape;
	double from, until;
};

static void watched(struct job *job, struct draw *draw, double length_ms)
{
	const struct watched *watched = job->variant;

	(void)length_ms;
	job->shape = watched->shape;
	job->shape->prepare(job, draw);
	job->watch = (struct job_watch){job->ranks * 3 / 4, watched->from, watched->until};
}

struct many {
	const struct shape *shape;
	int ranks, hosts;
};

static void many(struct job *job, struct draw *draw, double length_ms)
{
	const struct many *many = job->variant;

	(void)length_ms;
	job->shape = many->shape;
	job->ranks = many->ranks;
	job->hosts = many->hosts;
	job->shape->prepare(job, draw);
	if (job->ranks > 256)
		shape__scale(job, 8);
}

/* Writes of a shared file system in each fourth step. */
static void writes(struct job *job, struct draw *draw, double length_ms)
{
	job->ranks = 16;
	job->hosts = 4;
	job->seconds = 90;
	job->jitter = draw__between(draw, 0.005, 0.02);
	job__program(job, length_ms * 1e6, 0.005, 0.15);
	job->steps[JOB_WRITE].every = 4;
	job->noise.writes = *(const double *)job->variant;
}

/* A good HPL. */
static void shrinking(struct job *job)
{
	job->shape = &shape_shrinking;
	job->ranks = 16;
	job->hosts = 2;
	job->iterations = 208;
	job->seconds = 80;
	job->jitter = *(const double *)job->variant;
	job->shape->prepare(job, NULL);
	job->steps[0].ns = 1.15 * S_NS;
}

#define S .part = "shapes", .kind =
#define QUIET(text, function, name, ...)                                                                               \
	{                                                                                                              \
		S text, CASE_QUIET, {0}, function, VARIANT(struct healthy, .shape = &shape_##name, __VA_ARGS__)        \
	}
#define NOISES(name)                                                                                                   \
	QUIET(#name "-plain", healthy, name, .varies = 0),                                                             \
	    QUIET(#name "-heavy15", healthy, name, .noise = {.heavy = .15}),                                           \
	    QUIET(#name "-heavy35", healthy, name, .noise = {.heavy = .35}),                                           \
	    QUIET(#name "-pareto", healthy, name, .noise = {.pareto = 1.6}),                                           \
	    QUIET(#name "-wander", healthy, name, .noise = {.wander = .035, .wander_s = 4}),                           \
	    QUIET(#name "-wave", healthy, name, .noise = {.wave = .02, .wave_s = 30}),                                 \
	    QUIET(#name "-steps", healthy, name, .noise = {.steps = .045, .steps_s = 10}),                             \
	    QUIET(#name "-warm", healthy, name, .noise = {.warm = 1.7}),                                               \
	    QUIET(#name "-alternates", healthy, name, .noise = {.alternates = 1.25}),                                  \
	    QUIET(#name "-locality", healthy, name, .noise = {.locality = 1.045}),                                     \
	    QUIET(#name "-counters", healthy, name, .noise = {.counters = .05}),                                       \
	    QUIET(#name "-sockets", sockets, name, .varies = 0)
#define WATCHED(text, name, from, until)                                                                               \
	{                                                                                                              \
		S text, CASE_QUIET, {0}, watched, VARIANT(struct watched, &shape_##name, from, until)                  \
	}
#define WRITES(text, sigma)                                                                                            \
	{                                                                                                              \
		S text, CASE_QUIET, {60}, writes, VARIANT(double, sigma)                                               \
	}
static const struct accuracy_case cases[] = {
    NOISES(grid),
    NOISES(sweep),
    NOISES(farm),
    NOISES(stealing),
    NOISES(amr),
    NOISES(phases),
    NOISES(mpmd),
    NOISES(uncoupled),
    NOISES(gpu),
    NOISES(nested),
    QUIET("gpu-varying", healthy, gpu, .varies = .3),
    QUIET("amr-growth", growth, amr, .varies = 0),
    QUIET("grid-growth", growth, grid, .varies = 0),
    QUIET("grid-diagnostics", diagnostics, grid, .varies = 0),
    QUIET("amr-alltoall", healthy, amr, .noise = {.calls = .5}),
    QUIET("mpmd-alltoall", healthy, mpmd, .noise = {.calls = .5}),
    WRITES("writes-sigma.3", .3),
    WRITES("writes-sigma.6", .6),
    WRITES("writes-sigma1", 1),
    WATCHED("grid-unwatched", grid, 1, 1),
    WATCHED("farm-left-quiet", farm, 0, 35),
    WATCHED("uncoupled-late-quiet", uncoupled, 20, 0),
    WATCHED("amr-late-quiet", amr, 20, 0),
    {S "uncoupled-1-quiet", CASE_QUIET, {0}, many, VARIANT(struct many, &shape_uncoupled, 1, 1)},
    {S "grid-2-quiet", CASE_QUIET, {0}, many, VARIANT(struct many, &shape_grid, 2, 2)},
    {S "grid-4096-quiet", CASE_QUIET | CASE_LARGE, {0}, many, VARIANT(struct many, &shape_grid, 4096, 256)},
    {S "hpl-good-1", CASE_QUIET | CASE_LARGE, .study = shrinking, .variant = VARIANT(double, .01)},
    {S "hpl-good-6", CASE_QUIET | CASE_LARGE, .study = shrinking, .variant = VARIANT(double, .06)},
};

const struct case_table shape_quiet_cases = {cases, sizeof(cases) / sizeof(*cases)};
