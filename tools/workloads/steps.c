// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The same fixed sequence of MPI calls as steps.F90, call for call: the observed graphs of both, under any
 * MPI library, kernel and CPU, must be the same (tests/stg_compare.py). Each call stands on one
 * source line that carries its number as a comment. No call depends on a clock or on chance.
 *
 *   steps [--seconds S] [--log DIR] [--rounds N]     S: sleep before the first call
 */
/* The marks must stay on their lines. */
/* clang-format off */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define LARGE 16384
#define INNER 3

static double a[LARGE], b[LARGE], c[LARGE];
static volatile double sink;

static void compute(int units)
{
	double x = 1.0;

	for (int i = 0; i < units * 20000; i++)
		x = x * 1.0000001 + 1e-9;
	sink = x;
}

static void say_ready(const char *log, int rank)
{
	char path[512];
	FILE *file;

	if (!log)
		return;
	snprintf(path, sizeof(path), "%s/truth.%d", log, rank);
	file = fopen(path, "w");
	if (!file)
		exit(1);
	fprintf(file, "# rank %d pid %d\n", rank, (int)getpid());
	fclose(file);
}

int main(int argc, char **argv)
{
	int rank, size, right, left, rounds = 40;
	const char *log = NULL;
	double seconds = 0;
	MPI_Request request[4], persistent[2];

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--log"))
			log = argv[i + 1];
		else if (!strcmp(argv[i], "--rounds"))
			rounds = atoi(argv[i + 1]);
	}
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	say_ready(log, rank);
	wait_for_observer(seconds);

	MPI_Barrier(MPI_COMM_WORLD); /* site 1 */
	MPI_Send_init(a, 512, MPI_DOUBLE, right, 5, MPI_COMM_WORLD, &persistent[0]); /* site 2 */
	MPI_Recv_init(b, 512, MPI_DOUBLE, left, 5, MPI_COMM_WORLD, &persistent[1]); /* site 3 */
	for (int round = 0; round < rounds; round++) {
		compute(1);
		if (rank % 2 == 0) {
			MPI_Send(a, 128, MPI_DOUBLE, right, 1, MPI_COMM_WORLD); /* site 4 */
			MPI_Recv(b, 128, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* site 5 */
		} else {
			MPI_Recv(b, 128, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* site 6 */
			MPI_Send(a, 128, MPI_DOUBLE, right, 1, MPI_COMM_WORLD); /* site 7 */
		}
		compute(2);
		MPI_Allreduce(a, c, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* site 8 */
		for (int inner = 0; inner < INNER; inner++) {
			compute(1);
			MPI_Bcast(c, 64, MPI_INT, 0, MPI_COMM_WORLD); /* site 9 */
		}
		compute(1);
		MPI_Irecv(b, 1024, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &request[0]); /* site 10 */
		MPI_Irecv(b + 4096, 32, MPI_DOUBLE, left, 3, MPI_COMM_WORLD, &request[1]); /* site 11 */
		MPI_Isend(a, 1024, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &request[2]); /* site 12 */
		MPI_Isend(a + 4096, 32, MPI_DOUBLE, right, 3, MPI_COMM_WORLD, &request[3]); /* site 13 */
		compute(2);
		MPI_Waitall(4, request, MPI_STATUSES_IGNORE); /* site 14 */
		MPI_Irecv(b, LARGE, MPI_DOUBLE, left, 4, MPI_COMM_WORLD, &request[0]); /* site 15 */
		MPI_Isend(a, LARGE, MPI_DOUBLE, right, 4, MPI_COMM_WORLD, &request[1]); /* site 16 */
		MPI_Wait(&request[0], MPI_STATUS_IGNORE); /* site 17 */
		MPI_Wait(&request[1], MPI_STATUS_IGNORE); /* site 18 */
		compute(1);
		MPI_Startall(2, persistent); /* site 19 */
		MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE); /* site 20 */
		compute(1);
		MPI_Reduce(a, c, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD); /* site 21 */
		MPI_Allgather(a, 4, MPI_DOUBLE, c, 4, MPI_DOUBLE, MPI_COMM_WORLD); /* site 22 */
		if (round % 4 == 0)
			MPI_Barrier(MPI_COMM_WORLD); /* site 23 */
	}
	MPI_Request_free(&persistent[0]);
	MPI_Request_free(&persistent[1]);
	MPI_Finalize(); /* site 24 */
	if (rank == 0)
		printf("{\"done\":true,\"rounds\":%d}\n", rounds);
	return 0;
}
