/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs whose ranks wait for each other in each step: a process grid, a sweep, AMR, two programs, nested loops. */
#include "shape.h"

#define MS 1e6

/* ---- A process grid: sums of rows and columns, a norm of all in each tenth step. */
enum { GRID_LOCAL, GRID_ROW, GRID_MEMORY, GRID_COLUMN, GRID_CHECK, GRID_NORM };

static void prepare_grid(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	SHAPE_STEPS(
	    job,
	    {
		[GRID_LOCAL] = {.kind = STEP_COMPUTE,
				.ns = 48 * MS,
				.memory = .1,
				.after = GRID_COLUMN + 1,
				.before = GRID_ROW + 1},
		[GRID_ROW] =
		    {.kind = STEP_COLLECTIVE, .ns = .3 * MS, .bytes = 65536, .function = "MPI_Allreduce", .comm = "1"},
		[GRID_MEMORY] = {.kind = STEP_COMPUTE,
				 .ns = 30 * MS,
				 .memory = .6,
				 .after = GRID_ROW + 1,
				 .before = GRID_COLUMN + 1},
		[GRID_COLUMN] =
		    {.kind = STEP_COLLECTIVE, .ns = .3 * MS, .bytes = 65536, .function = "MPI_Allreduce", .comm = "2"},
		[GRID_CHECK] = {.kind = STEP_COMPUTE, .ns = 1 * MS, .after = GRID_COLUMN + 1, .before = GRID_NORM + 1},
		[GRID_NORM] = {.kind = STEP_COLLECTIVE, .ns = .1 * MS, .bytes = 8, .function = "MPI_Allreduce"},
	    });
	shape__scale(job, draw__between(draw, 0.5, 1.3));
}

static void run_grid(struct sim *sim)
{
	int ranks = sim->job->ranks, columns = sim->job->columns;

	for (int step = 0; shape__goes_on(sim); step++) {
		for (int rank = 0; rank < ranks; rank++)
			shape__compute(sim, rank, GRID_LOCAL, 0);
		for (int row = 0; row < ranks / columns; row++)
			shape__together(sim, GRID_ROW, (struct members){row * columns, 1, columns}, 0);
		for (int rank = 0; rank < ranks; rank++)
			shape__compute(sim, rank, GRID_MEMORY, 0);
		for (int column = 0; column < columns; column++)
			shape__together(sim, GRID_COLUMN, (struct members){column, columns, ranks / columns}, 0);
		if (step % 10 != 9)
			continue;
		for (int rank = 0; rank < ranks; rank++)
			shape__compute(sim, rank, GRID_CHECK, 0);
		shape__together(sim, GRID_NORM, shape__world(sim), 0);
	}
}

const struct shape shape_grid = {"grid", prepare_grid, run_grid};

/* ---- A sweep: a rank needs the blocks of the ranks above and left of it; from each corner in turn. */
enum { SWEEP_RECEIVE, SWEEP_CELLS, SWEEP_SEND, SWEEP_NEXT, SWEEP_SOURCE, SWEEP_SUM };
#define SWEEP_BLOCKS 6

static void prepare_sweep(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	SHAPE_STEPS(
	    job,
	    {
		[SWEEP_RECEIVE] = {.kind = STEP_EXCHANGE, .ns = .04 * MS, .bytes = 16384, .function = "MPI_Waitall"},
		[SWEEP_CELLS] = {.kind = STEP_COMPUTE,
				 .ns = 9 * MS,
				 .memory = .3,
				 .after = SWEEP_RECEIVE + 1,
				 .before = SWEEP_SEND + 1},
		[SWEEP_SEND] = {.kind = STEP_EXCHANGE, .ns = .02 * MS, .bytes = 16384, .function = "MPI_Send"},
		[SWEEP_NEXT] =
		    {.kind = STEP_COMPUTE, .ns = .1 * MS, .after = SWEEP_SEND + 1, .before = SWEEP_RECEIVE + 1},
		[SWEEP_SOURCE] = {.kind = STEP_COMPUTE,
				  .ns = 20 * MS,
				  .memory = .5,
				  .after = SWEEP_SEND + 1,
				  .before = SWEEP_SUM + 1},
		[SWEEP_SUM] = {.kind = STEP_COLLECTIVE, .ns = .1 * MS, .bytes = 8, .function = "MPI_Allreduce"},
	    });
	shape__scale(job, draw__between(draw, 0.7, 2));
}

/* One block of all ranks; backwards from the last rank to the first. */
static void sweep(struct sim *sim, struct moment *sent, bool backwards)
{
	int ranks = sim->job->ranks, columns = sim->job->columns;

	for (int i = 0; i < ranks; i++) {
		int rank = backwards ? ranks - 1 - i : i;
		struct moment last = {0, 0};

		if (i % columns)
			last = shape__later(last, sent[i - 1]);
		if (i >= columns)
			last = shape__later(last, sent[i - columns]);
		shape__wait(sim, rank, SWEEP_RECEIVE, last, 0);
		shape__compute(sim, rank, SWEEP_CELLS, 0);
		sent[i] = shape__post(sim, rank, SWEEP_SEND, 0);
		shape__compute(sim, rank, SWEEP_NEXT, 0);
	}
}

static void run_sweep(struct sim *sim)
{
	struct moment sent[64];

	while (shape__goes_on(sim)) {
		for (int way = 0; way < 2; way++) {
			for (int block = 0; block < SWEEP_BLOCKS; block++)
				sweep(sim, sent, way);
		}
		for (int rank = 0; rank < sim->job->ranks; rank++)
			shape__compute(sim, rank, SWEEP_SOURCE, 0);
		shape__together(sim, SWEEP_SUM, shape__world(sim), 0);
	}
}

const struct shape shape_sweep = {"sweep", prepare_sweep, run_sweep};

/* ---- AMR: each rank has its own work, drawn again every 60 steps; a step that regrids takes 20 times as long. */
enum { AMR_FLUX, AMR_HALO, AMR_UPDATE, AMR_SUM, AMR_REGRID, AMR_MOVE };
#define AMR_STEPS 60

static void prepare_amr(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	SHAPE_STEPS(
	    job,
	    {
		[AMR_FLUX] =
		    {.kind = STEP_COMPUTE, .ns = 50 * MS, .memory = .3, .after = AMR_SUM + 1, .before = AMR_HALO + 1},
		[AMR_HALO] = {.kind = STEP_EXCHANGE, .ns = .3 * MS, .bytes = 32768, .function = "MPI_Waitall"},
		[AMR_UPDATE] =
		    {.kind = STEP_COMPUTE, .ns = 30 * MS, .memory = .6, .after = AMR_HALO + 1, .before = AMR_SUM + 1},
		[AMR_SUM] = {.kind = STEP_COLLECTIVE, .ns = .1 * MS, .bytes = 8, .function = "MPI_Allreduce"},
		[AMR_REGRID] =
		    {.kind = STEP_COMPUTE, .ns = 800 * MS, .memory = .4, .after = AMR_SUM + 1, .before = AMR_MOVE + 1},
		[AMR_MOVE] = {.kind = STEP_COLLECTIVE, .ns = 10 * MS, .bytes = 4 << 20, .function = "MPI_Alltoallv"},
	    });
	shape__scale(job, draw__between(draw, 0.5, 1.2));
	job->varies = 0.12;
}

static void run_amr(struct sim *sim)
{
	const struct job *job = sim->job;

	for (int step = 0; shape__goes_on(sim); step++) {
		uint64_t grid = (uint64_t)(step / AMR_STEPS);

		for (int rank = 0; rank < job->ranks; rank++)
			shape__compute(sim, rank, AMR_FLUX,
				       job->steps[AMR_FLUX].ns * shape__drawn(sim, job->varies, (uint64_t)rank, grid));
		shape__halo(sim, AMR_HALO);
		for (int rank = 0; rank < job->ranks; rank++)
			shape__compute(sim, rank, AMR_UPDATE,
				       job->steps[AMR_UPDATE].ns *
					   shape__drawn(sim, job->varies, (uint64_t)rank, grid));
		shape__together(sim, AMR_SUM, shape__world(sim), 0);
		if (step % AMR_STEPS != AMR_STEPS - 1)
			continue;
		for (int rank = 0; rank < job->ranks; rank++)
			shape__compute(sim, rank, AMR_REGRID, 0);
		shape__together(sim, AMR_MOVE, shape__world(sim), 0);
	}
}

const struct shape shape_amr = {"amr", prepare_amr, run_amr};

/* ---- Two programs, each with sums of its own, that exchange once a step: three quarters of the ranks and the rest. */
enum { MPMD_FLUID, MPMD_FLUID_SUM, MPMD_SOLID, MPMD_SOLID_SUM, MPMD_PACK, MPMD_UNPACK, MPMD_COUPLE };
#define FLUID_STEPS 6
#define SOLID_STEPS 2

static void prepare_mpmd(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	SHAPE_STEPS(
	    job,
	    {
		[MPMD_FLUID] = {.kind = STEP_COMPUTE,
				.ns = 20 * MS,
				.memory = .2,
				.after = MPMD_FLUID_SUM + 1,
				.before = MPMD_FLUID_SUM + 1},
		[MPMD_FLUID_SUM] =
		    {.kind = STEP_COLLECTIVE, .ns = .1 * MS, .bytes = 64, .function = "MPI_Allreduce", .comm = "1"},
		[MPMD_SOLID] = {.kind = STEP_COMPUTE,
				.ns = 58 * MS,
				.memory = .5,
				.after = MPMD_SOLID_SUM + 1,
				.before = MPMD_SOLID_SUM + 1},
		[MPMD_SOLID_SUM] =
		    {.kind = STEP_COLLECTIVE, .ns = .1 * MS, .bytes = 128, .function = "MPI_Allreduce", .comm = "1"},
		[MPMD_PACK] = {.kind = STEP_COMPUTE,
			       .ns = 2 * MS,
			       .memory = .6,
			       .after = MPMD_FLUID_SUM + 1,
			       .before = MPMD_COUPLE + 1},
		[MPMD_UNPACK] = {.kind = STEP_COMPUTE,
				 .ns = 3 * MS,
				 .memory = .6,
				 .after = MPMD_SOLID_SUM + 1,
				 .before = MPMD_COUPLE + 1},
		[MPMD_COUPLE] = {.kind = STEP_COLLECTIVE, .ns = 1 * MS, .bytes = 1 << 20, .function = "MPI_Alltoallv"},
	    });
	shape__scale(job, draw__between(draw, 0.6, 1.6));
}

static void inner(struct sim *sim, int compute, int sum, struct members members, int steps)
{
	for (int step = 0; step < steps; step++) {
		for (int i = 0; i < members.count; i++)
			shape__compute(sim, members.first + i, compute, 0);
		shape__together(sim, sum, members, 0);
	}
}

static void run_mpmd(struct sim *sim)
{
	int ranks = sim->job->ranks, border = ranks * 3 / 4;

	while (shape__goes_on(sim)) {
		inner(sim, MPMD_FLUID, MPMD_FLUID_SUM, (struct members){0, 1, border}, FLUID_STEPS);
		inner(sim, MPMD_SOLID, MPMD_SOLID_SUM, (struct members){border, 1, ranks - border}, SOLID_STEPS);
		for (int rank = 0; rank < ranks; rank++)
			shape__compute(sim, rank, rank < border ? MPMD_PACK : MPMD_UNPACK, 0);
		shape__together(sim, MPMD_COUPLE, shape__world(sim), 0);
	}
}

const struct shape shape_mpmd = {"mpmd", prepare_mpmd, run_mpmd};

/* ---- An outer step with 8 to 40 inner ones of 1 to 2 ms, whose number changes from step to step. */
enum { NESTED_INNER, NESTED_HALO, NESTED_OUTER, NESTED_SUM };

static void prepare_nested(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	SHAPE_STEPS(
	    job, {
		     [NESTED_INNER] = {.kind = STEP_COMPUTE,
				       .ns = 1.5 * MS,
				       .memory = .4,
				       .after = NESTED_HALO + 1,
				       .before = NESTED_HALO + 1},
		     [NESTED_HALO] = {.kind = STEP_EXCHANGE, .ns = .05 * MS, .bytes = 8192, .function = "MPI_Sendrecv"},
		     [NESTED_OUTER] = {.kind = STEP_COMPUTE,
				       .ns = 12 * MS,
				       .memory = .2,
				       .after = NESTED_HALO + 1,
				       .before = NESTED_SUM + 1},
		     [NESTED_SUM] = {.kind = STEP_COLLECTIVE, .ns = .1 * MS, .bytes = 8, .function = "MPI_Allreduce"},
		 });
	shape__scale(job, draw__between(draw, 0.7, 1.4));
}

static void run_nested(struct sim *sim)
{
	for (int step = 0; shape__goes_on(sim); step++) {
		int inner = 8 + (int)(32 * draw__hash(sim->job->seed, (uint64_t)step, 1));

		for (int i = 0; i < inner; i++) {
			for (int rank = 0; rank < sim->job->ranks; rank++)
				shape__compute(sim, rank, NESTED_INNER, 0);
			shape__halo(sim, NESTED_HALO);
		}
		for (int rank = 0; rank < sim->job->ranks; rank++)
			shape__compute(sim, rank, NESTED_OUTER, 0);
		shape__together(sim, NESTED_SUM, shape__world(sim), 0);
	}
}

const struct shape shape_nested = {"nested", prepare_nested, run_nested};
