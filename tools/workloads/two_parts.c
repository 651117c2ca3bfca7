// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rounds of one computation in two functions, steady() for 3 ms and then growing() for 1 ms, and a reduction. Of a rank
 * that is late (--late-share, loop.h) growing() takes longer, and nothing else.
 *
 *   mpirun -n 2 two_parts --seconds 20 --log DIR --late-share 6
 */
#include "loop_mpi.h"

enum { COMPUTED = 1, STEADY_US = 3000, GROWING_US = 1000 };

__attribute__((noinline)) static uint64_t steady(uint64_t x)
{
	return lcg(x, STEADY_US * LCG_STEPS_PER_US);
}

__attribute__((noinline)) static uint64_t growing(const struct loop *loop, uint64_t x)
{
	return loop__compute(loop, x, GROWING_US);
}

int main(int argc, char **argv)
{
	struct loop loop;
	uint64_t x = 1, rounds = 0, wrong, over = 0;

	MPI_Init(&argc, &argv);
	loop__start(&loop, "two_parts", argc, argv, 1e6 / (STEADY_US + GROWING_US));
	truth__name(&loop.log, COMPUTED, "steady and growing");
	wait_for_observer(0);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	while (!over) {
		uint64_t mine;

		x = growing(&loop, steady(x));
		truth__enter(&loop.log, COMPUTED);
		mine = loop.rank == 0 && loop__over(&loop, ++rounds);
		MPI_Allreduce(&mine, &over, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
		truth__leave(&loop.log);
	}
	MPI_Bcast(&rounds, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	wrong = x != lcg_after(1, rounds * (STEADY_US + GROWING_US) * LCG_STEPS_PER_US);
	return loop__finish(&loop, rounds, wrong);
}
