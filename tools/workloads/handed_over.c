// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two ranks whose requests are completed by another thread than the one that posted them, after rounds
 * in which one thread did both: each completion is of two requests of 1,000 bytes.
 *
 *   handed_over [--seconds S] [--log DIR] [--rounds N]     S: sleep before the first call; N: rounds of each kind
 */
#include <mpi.h>
#include <pthread.h>

#include "common.h"

#define BYTES 500

static char in[2][BYTES], out[2][BYTES];
static MPI_Request requests[4];
static pthread_barrier_t posted, completed;
static int rounds = 20;

static void post(int peer)
{
	for (int i = 0; i < 2; i++) {
		MPI_Irecv(in[i], BYTES, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[2 * i]);
		MPI_Isend(out[i], BYTES, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
	}
}

static void *complete(void *unused)
{
	(void)unused;
	for (int round = 0; round < rounds; round++) {
		pthread_barrier_wait(&posted);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* site 2 */
		pthread_barrier_wait(&completed);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *log = ".";
	double seconds = 0;
	pthread_t helper;
	int rank, given;
	char path[512];
	FILE *file;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = number(argv[i], argv[i + 1], 0, 3600);
		else if (!strcmp(argv[i], "--log"))
			log = argv[i + 1];
		else if (!strcmp(argv[i], "--rounds"))
			rounds = (int)number(argv[i], argv[i + 1], 1, 1e6);
	}
	MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given);
	if (given < MPI_THREAD_MULTIPLE) {
		fputs("this MPI library allows one thread only\n", stderr);
		return 1;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	snprintf(path, sizeof(path), "%s/truth.%d", log, rank);
	file = fopen(path, "w");
	if (!file)
		return 1;
	fprintf(file, "# rank %d pid %d\n", rank, (int)getpid());
	fclose(file);
	pthread_barrier_init(&posted, NULL, 2);
	pthread_barrier_init(&completed, NULL, 2);
	wait_for_observer(seconds);

	MPI_Barrier(MPI_COMM_WORLD);
	for (int round = 0; round < rounds; round++) {
		post(1 - rank);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);	   /* site 1 */
		MPI_Waitall(2, requests + 2, MPI_STATUSES_IGNORE); /* site 3 */
	}
	pthread_create(&helper, NULL, complete, NULL);
	for (int round = 0; round < rounds; round++) {
		post(1 - rank);
		pthread_barrier_wait(&posted);
		pthread_barrier_wait(&completed);
		MPI_Waitall(2, requests + 2, MPI_STATUSES_IGNORE); /* site 4 */
	}
	pthread_join(helper, NULL);
	MPI_Finalize();
	return 0;
}
