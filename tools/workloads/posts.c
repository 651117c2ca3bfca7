// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * About 10,000 MPI calls a second and rank, of which eight of nine only post: in each round four Irecv, four Isend and
 * the Waitall of all, then 0.85 ms of work. Received data is compared with expected data.
 *
 *   mpirun -n 2 posts [options of loop.h]
 */
#include "loop_mpi.h"

enum { MESSAGES = 4, WORDS = 64, SEG_WORK = 1, WORK_US = 850 };

static uint64_t word(int rank, uint64_t round, int message, int i)
{
	return round * 1000003 + (uint64_t)(rank * 4099 + message * 257 + i);
}

int main(int argc, char **argv)
{
	static uint64_t out[MESSAGES][WORDS], in[MESSAGES][WORDS];
	MPI_Request requests[2 * MESSAGES];
	uint64_t round, wrong = 0, value;
	struct loop loop;
	struct ring ring;

	MPI_Init(&argc, &argv);
	ring = loop__start(&loop, "posts", argc, argv, 1200);
	truth__name(&loop.log, SEG_WORK, "work between Waitall and the posts");
	value = 12345 + (uint64_t)loop.rank;
	loop__first(&loop);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	for (round = 0;; round++) {
		value = loop__compute(&loop, value, WORK_US);
		for (int message = 0; message < MESSAGES; message++)
			for (int i = 0; i < WORDS; i++)
				out[message][i] = word(loop.rank, round, message, i);
		out[0][0] = ring__last(&ring, &loop, round);
		truth__enter(&loop.log, SEG_WORK);
		for (int message = 0; message < MESSAGES; message++)
			MPI_Irecv(in[message], WORDS, MPI_UINT64_T, ring.left, message, MPI_COMM_WORLD,
				  &requests[message]);
		for (int message = 0; message < MESSAGES; message++)
			MPI_Isend(out[message], WORDS, MPI_UINT64_T, ring.right, message, MPI_COMM_WORLD,
				  &requests[MESSAGES + message]);
		MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
		truth__leave(&loop.log);
		ring__hear(&ring, in[0][0]);
		for (int message = 0; message < MESSAGES; message++)
			for (int i = message == 0; i < WORDS; i++)
				wrong += in[message][i] != word(ring.left, round, message, i);
		if (ring.last && round + 1 >= ring.last)
			break;
	}
	wrong += value != lcg_after(12345 + (uint64_t)loop.rank, (round + 1) * WORK_US * LCG_STEPS_PER_US);
	return loop__finish(&loop, round + 1, wrong);
}
