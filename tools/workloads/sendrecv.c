// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * About 10,000 MPI calls a second and rank, all of which can wait: MPI_Sendrecv after each 90 us of work, and nothing
 * else. Received data is compared with expected data.
 *
 *   mpirun -n 2 sendrecv [options of loop.h]
 */
#include "loop_mpi.h"

enum { SEG_WORK = 1, WORK_US = 90 };

int main(int argc, char **argv)
{
	uint64_t round, wrong = 0, value = 777, out[3], in[3];
	struct loop loop;
	struct ring ring;

	MPI_Init(&argc, &argv);
	ring = loop__start(&loop, "sendrecv", argc, argv, 11000);
	truth__name(&loop.log, SEG_WORK, "work between two Sendrecv");
	loop__first(&loop);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	for (round = 0;; round++) {
		value = loop__compute(&loop, value, WORK_US);
		out[0] = ring__last(&ring, &loop, round);
		out[1] = value;
		out[2] = (uint64_t)loop.rank;
		truth__enter(&loop.log, SEG_WORK);
		MPI_Sendrecv(out, 3, MPI_UINT64_T, ring.right, 1, in, 3, MPI_UINT64_T, ring.left, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		truth__leave(&loop.log);
		ring__hear(&ring, in[0]);
		/* all ranks compute the same values */
		wrong += in[1] != value || in[2] != (uint64_t)ring.left;
		if (ring.last && round + 1 >= ring.last)
			break;
	}
	wrong += value != lcg_after(777, (round + 1) * WORK_US * LCG_STEPS_PER_US);
	return loop__finish(&loop, round + 1, wrong);
}
