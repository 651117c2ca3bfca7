// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pipelined sweeps, whose calls are all in wrappers, as in transport codes: in each direction a rank receives the
 * border of a chunk from upstream, sweeps the chunk and sends its own border downstream. Between two calls of the same
 * wrappers lie microseconds in one phase and milliseconds in another. Without frame pointers.
 *
 *   mpirun -n 2 sweeps [options of loop.h]
 */
#include "loop_mpi.h"

#define WRAPPER __attribute__((noinline, noipa)) static

enum { CHUNKS = 4, BORDER = 256, SEG_SOURCE = 1, SEG_SWEEP, SEG_MOMENTS, SEG_NORM, SEG_GROUP };
enum { SOURCE_US = 6000, SWEEP_US = 1500, MOMENTS_US = 2500, NORM_US = 400 };

static struct loop loop;
static uint64_t value = 77, wrong;

/* The wrappers do some bookkeeping of their own, so that none is a tail call. */
static uint64_t messages;

WRAPPER void plib_irecv(double *border, int from, int tag, MPI_Request *request)
{
	MPI_Irecv(border, BORDER, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, request);
	messages++;
}

WRAPPER void plib_isend(const double *border, int to, int tag, MPI_Request *request)
{
	MPI_Isend(border, BORDER, MPI_DOUBLE, to, tag, MPI_COMM_WORLD, request);
	messages++;
}

WRAPPER void plib_wait(MPI_Request *request)
{
	MPI_Wait(request, MPI_STATUS_IGNORE);
	truth__leave(&loop.log);
	messages++;
}

WRAPPER double plib_glmax(double mine)
{
	double greatest = 0;

	MPI_Allreduce(&mine, &greatest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	truth__leave(&loop.log);
	messages++;
	return greatest;
}

static void work(double us, uint32_t segment)
{
	value = loop__compute(&loop, value, us);
	truth__enter(&loop.log, segment);
}

static double border_of(int rank, uint64_t round, int chunk, int i)
{
	return (double)(round % 4096) + chunk * 0.125 + rank * 8192 + i;
}

/* Sweeps all chunks from one end of the ranks to the other. */
WRAPPER void sweep(uint64_t round, int step)
{
	static double in[BORDER], out[2][BORDER];
	MPI_Request receive, sent[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	int up = loop.rank - step, down = loop.rank + step;

	up = up < 0 || up >= loop.size ? MPI_PROC_NULL : up;
	down = down < 0 || down >= loop.size ? MPI_PROC_NULL : down;
	for (int chunk = 0; chunk < CHUNKS; chunk++) {
		double *mine = out[chunk % 2];

		plib_irecv(in, up, chunk, &receive);
		plib_wait(&receive);
		for (int i = 0; up != MPI_PROC_NULL && i < BORDER; i++)
			wrong += in[i] != border_of(up, round, chunk, i);
		work(SWEEP_US, SEG_SWEEP);
		plib_wait(&sent[chunk % 2]);
		for (int i = 0; i < BORDER; i++)
			mine[i] = border_of(loop.rank, round, chunk, i);
		plib_isend(mine, down, chunk, &sent[chunk % 2]);
	}
	plib_wait(&sent[0]);
	plib_wait(&sent[1]);
}

/* Groups of energy, each of its own size in a function of its own: only the callers of the wrapper distinguish them. */
#define GROUPS(GROUP)                                                                                                  \
	GROUP(0, 300)                                                                                                  \
	GROUP(1, 410) GROUP(2, 540) GROUP(3, 730) GROUP(4, 980) GROUP(5, 1310) GROUP(6, 1740) GROUP(7, 2330)
#define DEFINE(number, us)                                                                                             \
	WRAPPER void group_##number(void)                                                                              \
	{                                                                                                              \
		work(us, SEG_GROUP + (number));                                                                        \
		wrong += plib_glmax(loop.rank + (number)) != loop.size - 1 + (number);                                 \
	}
#define CALL(number, us) group_##number();
#define ADD(number, us) +(us)
#define COUNT(number, us) +1
GROUPS(DEFINE)

int main(int argc, char **argv)
{
	uint64_t round;
	bool over;

	MPI_Init(&argc, &argv);
	loop__start(&loop, "sweeps", argc, argv, 2000);
	truth__name(&loop.log, SEG_SOURCE, "source");
	truth__name(&loop.log, SEG_SWEEP, "sweep");
	truth__name(&loop.log, SEG_MOMENTS, "moments");
	truth__name(&loop.log, SEG_NORM, "norm");
	for (uint32_t group = 0; group < 0 GROUPS(COUNT); group++)
		truth__name(&loop.log, SEG_GROUP + group, "group");
	loop__first(&loop);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	for (round = 0, over = false; !over; round++) {
		work(SOURCE_US, SEG_SOURCE);
		wrong += plib_glmax(loop.rank) != loop.size - 1;
		sweep(round, 1);
		GROUPS(CALL)
		work(MOMENTS_US, SEG_MOMENTS);
		wrong += plib_glmax(-loop.rank) != 0;
		sweep(round, -1);
		work(NORM_US, SEG_NORM);
		over = plib_glmax(loop.rank == 0 && loop__over(&loop, round + 1)) > 0;
	}
	wrong += value != lcg_after(77, round * LCG_STEPS_PER_US *
					    (SOURCE_US + 2 * CHUNKS * SWEEP_US + MOMENTS_US + NORM_US GROUPS(ADD)));
	wrong += messages != round * (3 GROUPS(COUNT) + 2 * (4 * CHUNKS + 2));
	return loop__finish(&loop, round, wrong);
}
