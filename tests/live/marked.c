// SPDX-License-Identifier: GPL-2.0-or-later
/* A small MPI program whose calls of interest are marked: tests/live/confine.t compares lines. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef BUILD
#define BUILD 1
#endif

static __attribute__((noinline)) double reduce(double value)
{
	double sum;

	MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* here: MPI_Allreduce */
	return sum;
}

int main(int argc, char **argv)
{
	int rank, rounds = argc > 1 ? atoi(argv[1]) : 100;
	double value = BUILD;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < rounds; i++) {
		value = reduce(value) / 2;
		usleep(10000);
		MPI_Barrier(MPI_COMM_WORLD);			     /* here: MPI_Barrier */
		MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* here: MPI_Bcast */
	}
	MPI_Finalize();
	return value < 0;
}
