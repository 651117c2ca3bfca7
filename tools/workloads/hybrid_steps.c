// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * MPI and OpenMP in one program, the same work in each round: a region of 3 ms, an exchange with the neighbours, a
 * region of 1.5 ms with a barrier in its middle, a reduction over all ranks; MPI is called between regions only. With
 * --late-share the last thread of a rank is late.
 *
 *   mpirun -n 2 hybrid_steps [options of loop.h]
 */
#include <omp.h>

#include "loop_mpi.h"

enum { THREADS_MAX = 64, SEG_FIRST = 1, SEG_SECOND, FIRST_US = 3000, HALF_US = 750 };

static struct loop loop;
static uint64_t part[THREADS_MAX][8];

static uint64_t work(uint64_t x, double us)
{
	bool late = omp_get_thread_num() == omp_get_num_threads() - 1;

	return late ? loop__compute(&loop, x, us) : lcg(x, (uint64_t)(us * (double)LCG_STEPS_PER_US));
}

__attribute__((noinline)) static void first_step(uint64_t seed)
{
#pragma omp parallel
	part[omp_get_thread_num()][0] = work(seed + (uint64_t)omp_get_thread_num(), FIRST_US);
}

__attribute__((noinline)) static void second_step(uint64_t seed)
{
#pragma omp parallel
	{
		part[omp_get_thread_num()][1] = work(seed, HALF_US);
#pragma omp barrier
		part[omp_get_thread_num()][2] = work(part[0][1], HALF_US);
	}
}

int main(int argc, char **argv)
{
	uint64_t round, wrong = 0, out[2], in[2], mine[2], all[2];
	int threads = omp_get_max_threads(), given;
	struct ring ring;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
	if (threads > THREADS_MAX)
		omp_set_num_threads(threads = THREADS_MAX);
	ring = loop__start(&loop, "hybrid_steps", argc, argv, 600);
	truth__name(&loop.log, SEG_FIRST, "first step");
	truth__name(&loop.log, SEG_SECOND, "second step");
#pragma omp parallel
	loop__first(&loop);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	for (round = 0;; round++) {
		first_step(round);
		out[0] = part[threads - 1][0];
		out[1] = round;
		truth__enter(&loop.log, SEG_FIRST);
		MPI_Sendrecv(out, 2, MPI_UINT64_T, ring.right, 1, in, 2, MPI_UINT64_T, ring.left, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		truth__leave(&loop.log);
		wrong += in[0] != out[0] || in[1] != round; /* all ranks compute the same */
		second_step(round);
		mine[0] = part[threads - 1][2] >> 8;
		mine[1] = loop.rank == 0 && loop__over(&loop, round + 1);
		truth__enter(&loop.log, SEG_SECOND);
		MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		truth__leave(&loop.log);
		wrong += all[0] != (uint64_t)loop.size * mine[0];
		if (all[1])
			break;
	}
	return loop__finish(&loop, round + 1, wrong);
}
