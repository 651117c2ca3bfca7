/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs whose work comes in phases, changes its size, comes rarely, or runs on a device. */
#include "shape.h"

#define MS 1e6

/* ---- Set-up with unequal work and other code, a solver, a checkpoint each 20 s, the output at the end. */
enum {
	PHASE_READ,
	PHASE_SETUP,
	PHASE_SHARE,
	PHASE_SOLVE,
	PHASE_HALO,
	PHASE_APPLY,
	PHASE_SUM,
	PHASE_PACK,
	PHASE_WRITE,
	PHASE_AFTER,
	PHASE_DONE,
	PHASE_OUTPUT
};
#define SETUP_PARTS 24
#define CHECKPOINT_S 20
#define OUTPUT_S 4

static void prepare_phases(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	job->seconds = 75;
	SHAPE_STEPS(
	    job,
	    {
		[PHASE_READ] = {.kind = STEP_WRITE, .ns = 60 * MS, .bytes = 4 << 20, .function = "read"},
		[PHASE_SETUP] = {.kind = STEP_COMPUTE,
				 .ns = 200 * MS,
				 .memory = .4,
				 .after = PHASE_READ + 1,
				 .before = PHASE_SHARE + 1},
		[PHASE_SHARE] = {.kind = STEP_COLLECTIVE, .ns = 2 * MS, .bytes = 1 << 20, .function = "MPI_Allgatherv"},
		[PHASE_SOLVE] = {.kind = STEP_COMPUTE,
				 .ns = 40 * MS,
				 .memory = .2,
				 .after = PHASE_SUM + 1,
				 .before = PHASE_HALO + 1},
		[PHASE_HALO] = {.kind = STEP_EXCHANGE, .ns = .3 * MS, .bytes = 32768, .function = "MPI_Waitall"},
		[PHASE_APPLY] = {.kind = STEP_COMPUTE,
				 .ns = 26 * MS,
				 .memory = .6,
				 .after = PHASE_HALO + 1,
				 .before = PHASE_SUM + 1},
		[PHASE_SUM] = {.kind = STEP_COLLECTIVE, .ns = .1 * MS, .bytes = 8, .function = "MPI_Allreduce"},
		[PHASE_PACK] = {.kind = STEP_COMPUTE,
				.ns = 4 * MS,
				.memory = .7,
				.after = PHASE_SUM + 1,
				.before = PHASE_WRITE + 1},
		[PHASE_WRITE] =
		    {.kind = STEP_WRITE, .ns = 1200 * MS, .bytes = 256 << 20, .function = "write", .scatter = .08},
		[PHASE_AFTER] =
		    {.kind = STEP_COMPUTE, .ns = 1 * MS, .after = PHASE_WRITE + 1, .before = PHASE_DONE + 1},
		[PHASE_DONE] = {.kind = STEP_COLLECTIVE, .ns = .1 * MS, .bytes = 8, .function = "MPI_Barrier"},
		[PHASE_OUTPUT] =
		    {.kind = STEP_WRITE, .ns = 300 * MS, .bytes = 32 << 20, .function = "pwrite", .scatter = .08},
	    });
	shape__scale(job, draw__between(draw, 0.6, 1.3));
}

/* Writes of all ranks, from shape__compute before to a barrier behind them. */
static void checkpoint(struct sim *sim, int write)
{
	for (int rank = 0; rank < sim->job->ranks; rank++) {
		shape__compute(sim, rank, PHASE_PACK, 0);
		shape__write(sim, rank, write, 0);
		shape__compute(sim, rank, PHASE_AFTER, 0);
	}
	shape__together(sim, PHASE_DONE, shape__world(sim), 0);
}

static void set_up(struct sim *sim)
{
	const struct job *job = sim->job;

	for (int part = 0; part < SETUP_PARTS && shape__goes_on(sim); part++) {
		for (int rank = 0; rank < job->ranks; rank++) {
			shape__write(sim, rank, PHASE_READ, 0);
			shape__compute(sim, rank, PHASE_SETUP,
				       job->steps[PHASE_SETUP].ns *
					   shape__drawn(sim, .25, (uint64_t)rank, (uint64_t)part));
		}
		shape__together(sim, PHASE_SHARE, shape__world(sim), 0);
	}
}

static void run_phases(struct sim *sim)
{
	double due = 2 * CHECKPOINT_S * S_NS, output = (sim->job->seconds - OUTPUT_S) * S_NS;

	set_up(sim);
	while (shape__goes_on(sim)) {
		double t = sim->ranks[0].t;

		for (int rank = 0; rank < sim->job->ranks; rank++)
			shape__compute(sim, rank, PHASE_SOLVE, 0);
		shape__halo(sim, PHASE_HALO);
		for (int rank = 0; rank < sim->job->ranks; rank++)
			shape__compute(sim, rank, PHASE_APPLY, 0);
		shape__together(sim, PHASE_SUM, shape__world(sim), 0);
		if (t >= output)
			checkpoint(sim, PHASE_OUTPUT);
		else if (t >= due)
			checkpoint(sim, PHASE_WRITE);
		due += t >= due ? CHECKPOINT_S * S_NS : 0;
	}
}

const struct shape shape_phases = {"phases", prepare_phases, run_phases};

/* ---- Ranks give work to a device and sleep until it has finished, then reduce a gradient. */
enum { GPU_HOST, GPU_POST, GPU_KERNEL, GPU_WAIT };

static void prepare_gpu(struct job *job, struct draw *draw)
{
	shape__usual(job, draw);
	SHAPE_STEPS(
	    job,
	    {
		[GPU_HOST] =
		    {.kind = STEP_COMPUTE, .ns = 6 * MS, .memory = .2, .after = GPU_WAIT + 1, .before = GPU_POST + 1},
		[GPU_POST] = {.kind = STEP_EXCHANGE, .ns = .02 * MS, .bytes = 1 << 20, .function = "MPI_Iallreduce"},
		[GPU_KERNEL] = {.kind = STEP_COMPUTE,
				.ns = 30 * MS,
				.memory = .1,
				.asleep = .94,
				.after = GPU_POST + 1,
				.before = GPU_WAIT + 1},
		[GPU_WAIT] = {.kind = STEP_COLLECTIVE, .ns = .2 * MS, .bytes = 1 << 20, .function = "MPI_Wait"},
	    });
	shape__scale(job, draw__between(draw, 0.7, 1.5));
}

static void run_gpu(struct sim *sim)
{
	const struct job *job = sim->job;

	for (int step = 0; shape__goes_on(sim); step++) {
		double length = job->steps[GPU_KERNEL].ns * shape__drawn(sim, job->varies, (uint64_t)step, 3);

		for (int rank = 0; rank < job->ranks; rank++) {
			shape__compute(sim, rank, GPU_HOST, 0);
			shape__post(sim, rank, GPU_POST, 0);
			shape__compute(sim, rank, GPU_KERNEL, length);
		}
		shape__together(sim, GPU_WAIT, shape__world(sim), 0);
	}
}

const struct shape shape_gpu = {"gpu", prepare_gpu, run_gpu};

/* ---- NPB EP, and programs with long iterations: all work in a few pieces, a sum after each. */
enum { PIECES_WORK, PIECES_SUM, PIECES_START, PIECES_FIRST };

static void prepare_pieces(struct job *job, struct draw *draw)
{
	(void)draw;
	SHAPE_STEPS(
	    job,
	    {
		[PIECES_WORK] =
		    {.kind = STEP_COMPUTE, .ns = 1, .memory = .2, .after = PIECES_SUM + 1, .before = PIECES_SUM + 1},
		[PIECES_SUM] = {.kind = STEP_COLLECTIVE, .ns = 1 * MS, .bytes = 80, .function = "MPI_Allreduce"},
		[PIECES_START] = {.kind = STEP_COLLECTIVE, .ns = 1 * MS, .bytes = 8, .function = "MPI_Bcast"},
		[PIECES_FIRST] =
		    {.kind = STEP_COMPUTE, .ns = 1, .memory = .2, .after = PIECES_START + 1, .before = PIECES_SUM + 1},
	    });
}

static void end_all(struct sim *sim)
{
	for (int rank = 0; rank < sim->job->ranks; rank++)
		shape__leave(sim, rank);
}

static void run_pieces(struct sim *sim)
{
	const struct job *job = sim->job;

	shape__together(sim, PIECES_START, shape__world(sim), 0);
	for (int piece = 0; shape__goes_on(sim) && (!job->iterations || piece < job->iterations); piece++) {
		for (int rank = 0; rank < job->ranks; rank++)
			shape__compute(sim, rank, piece ? PIECES_WORK : PIECES_FIRST, job->steps[PIECES_WORK].ns);
		shape__together(sim, PIECES_SUM, shape__world(sim), 0);
	}
	end_all(sim);
}

const struct shape shape_pieces = {"pieces", prepare_pieces, run_pieces};

/* ---- HPL: the matrix shrinks, so that no size of work comes twice. */
enum { HPL_UPDATE, HPL_BROADCAST, HPL_FACTOR, HPL_SWAP, HPL_BACK, HPL_GATHER };

static void prepare_shrinking(struct job *job, struct draw *draw)
{
	(void)draw;
	SHAPE_STEPS(
	    job,
	    {
		[HPL_UPDATE] = {.kind = STEP_COMPUTE,
				.ns = 1,
				.memory = .25,
				.after = HPL_GATHER + 1,
				.before = HPL_BROADCAST + 1},
		[HPL_BROADCAST] = {.kind = STEP_COLLECTIVE, .ns = 1.5 * MS, .bytes = 1e6, .function = "MPI_Bcast"},
		[HPL_FACTOR] =
		    {.kind = STEP_COMPUTE, .ns = 1, .memory = .25, .after = HPL_BROADCAST + 1, .before = HPL_SWAP + 1},
		[HPL_SWAP] = {.kind = STEP_EXCHANGE, .ns = 1.5 * MS, .bytes = 1e6, .function = "MPI_Sendrecv"},
		[HPL_BACK] =
		    {.kind = STEP_COMPUTE, .ns = 1, .memory = .25, .after = HPL_SWAP + 1, .before = HPL_GATHER + 1},
		[HPL_GATHER] = {.kind = STEP_COLLECTIVE, .ns = 1.5 * MS, .bytes = 1e6, .function = "MPI_Allgatherv"},
	    });
}

/* job->steps[HPL_UPDATE].ns is the first iteration's whole work. */
static void run_shrinking(struct sim *sim)
{
	static const double shares[] = {.86, .10, .04};
	const struct job *job = sim->job;

	for (int step = 0; shape__goes_on(sim) && step < job->iterations; step++) {
		double left = 1 - (double)step / job->iterations, work = job->steps[HPL_UPDATE].ns * left * left;

		sim->size = left;
		for (int part = 0; part < 3; part++) {
			for (int rank = 0; rank < job->ranks; rank++)
				shape__compute(sim, rank, 2 * part, work * shares[part]);
			shape__together(sim, 2 * part + 1, shape__world(sim), 0);
		}
	}
	end_all(sim);
}

const struct shape shape_shrinking = {"shrinking", prepare_shrinking, run_shrinking};
