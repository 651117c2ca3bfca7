// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Three kernels of different work that alternate before one call-site: without counts of instructions a tool that
 * compares the durations of this state must find that there are three workloads.
 *
 *   mpirun -n 2 kernels3 [options of loop.h]
 */
#include "loop_mpi.h"

enum { KERNELS = 3 };

static const double work_us[KERNELS] = {1100, 2600, 5200};
static const char *const names[KERNELS] = {"first kernel", "second kernel", "third kernel"};

int main(int argc, char **argv)
{
	uint64_t round, wrong = 0, value = 4242, mine[2], all[2];
	struct loop loop;
	bool over;

	MPI_Init(&argc, &argv);
	loop__start(&loop, "kernels3", argc, argv, 500);
	for (uint32_t i = 0; i < KERNELS; i++)
		truth__name(&loop.log, i + 1, names[i]);
	loop__first(&loop);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	for (round = 0, over = false; !over; round++) {
#pragma GCC unroll 1
		for (uint32_t i = 0; i < KERNELS; i++) {
			value = loop__compute(&loop, value, work_us[i]);
			mine[0] = value >> 8;
			mine[1] = i == 0 && loop.rank == 0 && loop__over(&loop, round + 1);
			truth__enter(&loop.log, i + 1);
			MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
			truth__leave(&loop.log);
			wrong += all[0] != (uint64_t)loop.size * (value >> 8);
			over = over || all[1];
		}
	}
	return loop__finish(&loop, round, wrong);
}
