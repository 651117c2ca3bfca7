// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of MPI 4 whose counts are MPI_Count, and the same with counts that are int. All of them are local: one process,
 * in a communicator of its own.
 *
 *   mpirun -n 1 mpich_large_counts --seconds 3
 *
 * Prints {"ready":true,"pid":P}, and at its end {"calls":N}, which is how often it called each of MPI_Allreduce_c (800
 * bytes), MPI_Bcast_c (3000), MPI_Alltoallv_c (5000) and MPI_Allreduce (80).
 */
#include <getopt.h>
#include <mpi.h>
#include <time.h>

#include "common.h"

#define DOUBLES 100
#define BYTES 3000
#define EACH 5000
#define FEW 10

int main(int argc, char **argv)
{
	static const struct option options[] = {{"seconds", required_argument, NULL, 's'}, {NULL, 0, NULL, 0}};
	const struct timespec pause = {.tv_nsec = 10000000};
	static double from[DOUBLES], to[DOUBLES];
	static char bytes[EACH], others[EACH];
	const MPI_Count counts[] = {EACH};
	const MPI_Aint begins[] = {0};
	double seconds = 3;
	int option, count = 0;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option != 's')
			return 2;
		seconds = number("--seconds", optarg, 0, 1e6);
	}
	MPI_Init(&argc, &argv);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	wait_for_observer(2);
	for (; count < (int)(seconds * 50); count++) {
		MPI_Allreduce_c(from, to, DOUBLES, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
		MPI_Bcast_c(bytes, BYTES, MPI_BYTE, 0, MPI_COMM_SELF);
		MPI_Alltoallv_c(bytes, counts, begins, MPI_BYTE, others, counts, begins, MPI_BYTE, MPI_COMM_SELF);
		MPI_Allreduce(from, to, FEW, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
		nanosleep(&pause, NULL);
	}
	MPI_Finalize();
	printf("{\"calls\":%d}\n", count);
	return 0;
}
