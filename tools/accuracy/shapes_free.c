/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs whose ranks take work as they are free, or do not wait for each other: farm, stealing, one-sided, sends. */
#include "shape.h"

#define MS 1e6

/* ---- Rank 0 hands out tasks, each of another size; a worker waits for the next one. */
enum { FARM_TASK, FARM_RESULT, FARM_REQUEST, FARM_NEXT, FARM_ANY, FARM_HANDLE, FARM_GIVE, FARM_LOOK };

static void prepare_farm(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	SHAPE_STEPS(
	    job,
	    {
		[FARM_TASK] = {.kind = STEP_COMPUTE,
			       .ns = 53 * MS,
			       .memory = .2,
			       .after = FARM_NEXT + 1,
			       .before = FARM_RESULT + 1},
		[FARM_RESULT] = {.kind = STEP_EXCHANGE, .ns = .02 * MS, .bytes = 4096, .function = "MPI_Send"},
		[FARM_REQUEST] =
		    {.kind = STEP_COMPUTE, .ns = .05 * MS, .after = FARM_RESULT + 1, .before = FARM_NEXT + 1},
		[FARM_NEXT] = {.kind = STEP_EXCHANGE, .ns = .02 * MS, .bytes = 512, .function = "MPI_Recv"},
		[FARM_ANY] = {.kind = STEP_EXCHANGE, .ns = .01 * MS, .bytes = 4096, .function = "MPI_Recv"},
		[FARM_HANDLE] = {.kind = STEP_COMPUTE, .ns = .1 * MS, .after = FARM_ANY + 1, .before = FARM_GIVE + 1},
		[FARM_GIVE] = {.kind = STEP_EXCHANGE, .ns = .01 * MS, .bytes = 512, .function = "MPI_Send"},
		[FARM_LOOK] = {.kind = STEP_COMPUTE, .ns = .02 * MS, .after = FARM_GIVE + 1, .before = FARM_ANY + 1},
	    });
	shape__scale(job, draw__between(draw, 0.6, 1.4));
	job->varies = 0.5;
}

/* A worker does a task and asks for another one. */
static void do_task(struct sim *sim, int worker, uint64_t task)
{
	const struct job *job = sim->job;
	double size = shape__drawn(sim, job->varies, task, 1);

	shape__compute(sim, worker, FARM_TASK, job->steps[FARM_TASK].ns * size);
	shape__post(sim, worker, FARM_RESULT, 0);
	shape__compute(sim, worker, FARM_REQUEST, 0);
}

/* Between two turns of this loop all workers have asked, each at its own time; the first one is served. */
static void run_farm(struct sim *sim)
{
	int last = sim->job->ranks - 1;
	uint64_t task = 0;

	for (int worker = 1; worker <= last; worker++)
		do_task(sim, worker, task++);
	while (shape__goes_on(sim)) {
		int worker = shape__first(sim, 1, last);
		struct moment given;

		shape__wait(sim, 0, FARM_ANY, shape__now(sim, worker), 0);
		shape__compute(sim, 0, FARM_HANDLE, 0);
		given = shape__post(sim, 0, FARM_GIVE, 0);
		shape__compute(sim, 0, FARM_LOOK, 0);
		shape__wait(sim, worker, FARM_NEXT, given, 0);
		do_task(sim, worker, task++);
	}
}

const struct shape shape_farm = {"farm", prepare_farm, run_farm};

/* ---- Ranks take tasks by fetch-and-add until a phase is done, and meet at its end. */
enum { STEAL_TASK, STEAL_FETCH, STEAL_LAST, STEAL_MEET, STEAL_FIRST };
#define TASKS_OF_RANK 30

static void prepare_stealing(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	SHAPE_STEPS(
	    job,
	    {
		[STEAL_TASK] = {.kind = STEP_COMPUTE,
				.ns = 21 * MS,
				.memory = .2,
				.after = STEAL_FETCH + 1,
				.before = STEAL_FETCH + 1},
		[STEAL_FETCH] = {.kind = STEP_EXCHANGE, .ns = .01 * MS, .bytes = 8, .function = "MPI_Fetch_and_op"},
		[STEAL_LAST] =
		    {.kind = STEP_COMPUTE, .ns = .2 * MS, .after = STEAL_FETCH + 1, .before = STEAL_MEET + 1},
		[STEAL_MEET] = {.kind = STEP_COLLECTIVE, .ns = .1 * MS, .bytes = 8, .function = "MPI_Barrier"},
		[STEAL_FIRST] = {.kind = STEP_COMPUTE,
				 .ns = 5 * MS,
				 .memory = .4,
				 .after = STEAL_MEET + 1,
				 .before = STEAL_FETCH + 1},
	    });
	shape__scale(job, draw__between(draw, 0.6, 1.6));
	job->varies = 0.6;
}

static void run_stealing(struct sim *sim)
{
	const struct job *job = sim->job;
	uint64_t task = 0;

	while (shape__goes_on(sim)) {
		int tasks = TASKS_OF_RANK * job->ranks;

		for (int rank = 0; rank < job->ranks; rank++) {
			shape__compute(sim, rank, STEAL_FIRST, 0);
			shape__post(sim, rank, STEAL_FETCH, 0);
		}
		while (tasks--) {
			int rank = shape__first(sim, 0, job->ranks - 1);

			shape__compute(sim, rank, STEAL_TASK,
				       job->steps[STEAL_TASK].ns * shape__drawn(sim, job->varies, task++, 2));
			shape__post(sim, rank, STEAL_FETCH, 0);
		}
		for (int rank = 0; rank < job->ranks; rank++)
			shape__compute(sim, rank, STEAL_LAST, 0);
		shape__together(sim, STEAL_MEET, shape__world(sim), 0);
	}
}

const struct shape shape_stealing = {"stealing", prepare_stealing, run_stealing};

/* ---- Ranks write into each other's windows and wait for no rank. */
enum { FREE_FIRST, FREE_PUT, FREE_SECOND, FREE_FLUSH };

static void prepare_uncoupled(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	SHAPE_STEPS(
	    job,
	    {
		[FREE_FIRST] = {.kind = STEP_COMPUTE,
				.ns = 26 * MS,
				.memory = .2,
				.after = FREE_FLUSH + 1,
				.before = FREE_PUT + 1},
		[FREE_PUT] = {.kind = STEP_EXCHANGE, .ns = .03 * MS, .bytes = 1 << 18, .function = "MPI_Put"},
		[FREE_SECOND] = {.kind = STEP_COMPUTE,
				 .ns = 15 * MS,
				 .memory = .6,
				 .after = FREE_PUT + 1,
				 .before = FREE_FLUSH + 1},
		[FREE_FLUSH] = {.kind = STEP_EXCHANGE, .ns = 1.2 * MS, .bytes = 1 << 18, .function = "MPI_Win_flush"},
	    });
	shape__scale(job, draw__between(draw, 0.5, 1.5));
}

static void run_uncoupled(struct sim *sim)
{
	while (shape__goes_on(sim)) {
		int rank = shape__first(sim, 0, sim->job->ranks - 1);

		shape__compute(sim, rank, FREE_FIRST, 0);
		shape__post(sim, rank, FREE_PUT, 0);
		shape__compute(sim, rank, FREE_SECOND, 0);
		shape__post(sim, rank, FREE_FLUSH, 0);
	}
}

const struct shape shape_uncoupled = {"uncoupled", prepare_uncoupled, run_uncoupled};

/* ---- NoiseMiner's NAMD: short computations, each followed by an eager send. */
enum { SENDS_FIRST, SENDS_ONE, SENDS_SECOND, SENDS_TWO };

static void prepare_sends(struct job *job, struct draw *draw)
{
	(void)draw;
	SHAPE_STEPS(job,
		    {
			[SENDS_FIRST] = {.kind = STEP_COMPUTE,
					 .ns = .8 * MS,
					 .memory = .2,
					 .after = SENDS_TWO + 1,
					 .before = SENDS_ONE + 1},
			[SENDS_ONE] = {.kind = STEP_EXCHANGE, .ns = .03 * MS, .bytes = 1024, .function = "MPI_Send"},
			[SENDS_SECOND] = {.kind = STEP_COMPUTE,
					  .ns = .5 * MS,
					  .memory = .2,
					  .after = SENDS_ONE + 1,
					  .before = SENDS_TWO + 1},
			[SENDS_TWO] = {.kind = STEP_EXCHANGE, .ns = .03 * MS, .bytes = 1024, .function = "MPI_Send"},
		    });
}

static void run_sends(struct sim *sim)
{
	while (shape__goes_on(sim)) {
		int rank = shape__first(sim, 0, sim->job->ranks - 1);

		for (int step = 0; step < sim->job->step_count; step += 2) {
			shape__compute(sim, rank, step, 0);
			shape__post(sim, rank, step + 1, 0);
		}
	}
}

const struct shape shape_sends = {"sends", prepare_sends, run_sends};
