/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame of loop.h for MPI programs: a ring of neighbours, and one decision of all ranks when to end. */
#ifndef VAPRO_WORKLOAD_LOOP_MPI_H
#define VAPRO_WORKLOAD_LOOP_MPI_H

#include <mpi.h>

#include "loop.h"

struct ring {
	int left, right;
	uint64_t last; /* round after which all ranks end; 0 = not decided */
};

/* Starts MPI and reads the options. */
static inline struct ring loop__start(struct loop *loop, const char *name, int argc, char **argv, double segments)
{
	struct ring ring = {0};
	int rank, size;

	loop__options(loop, name, argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	loop->rank = rank;
	loop->size = size;
	ring.left = (rank + size - 1) % size;
	ring.right = (rank + 1) % size;
	loop__open(loop, segments);
	return ring;
}

/*
 * Returns the last round, to be sent to the right: rank 0 chooses a round that all ranks learn before they reach
 * it, since each round passes the number from each rank to the next.
 */
static inline uint64_t ring__last(struct ring *ring, const struct loop *loop, uint64_t round)
{
	if (!ring->last && loop->rank == 0 && loop__over(loop, round + (uint64_t)loop->size))
		ring->last = round + (uint64_t)loop->size;
	return ring->last;
}

/* Receives the last round from the left neighbour. */
static inline void ring__hear(struct ring *ring, uint64_t last)
{
	if (last)
		ring->last = last;
}

/* Adds up errors and CPU time of all ranks, ends MPI, returns the program's exit code. */
static inline int loop__finish(struct loop *loop, uint64_t rounds, uint64_t wrong)
{
	double cpu_s = loop__spent_s(loop), all_s;
	int failed;

	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&cpu_s, &all_s, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	failed = loop__end(loop, rounds, wrong, all_s);
	MPI_Finalize();
	return failed;
}

#endif
