// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every way to complete non-blocking and persistent operations, between two ranks. The program counts
 * the requests of each completion and prints them at its end, per rank and marked source line:
 *   {"site":1,"requests":4,"calls":20,"min_bytes":216,"max_bytes":216}
 *
 *   requests [--seconds S] [--log DIR] [--rounds N]     S: sleep before the first call
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

#define SITES 20
#define MANY 70 /* requests of one call: more than vaprod follows */
#define FOLLOWED 64
#define LARGE 200000

static struct {
	long calls, least, most;
} book[SITES][FOLLOWED + 1];
static int peer;
static char in[MANY][256], out[MANY][256], large_in[LARGE], large_out[LARGE];

static void note(int site, int requests, long bytes)
{
	if (!book[site][requests].calls++ || bytes < book[site][requests].least)
		book[site][requests].least = bytes;
	if (bytes > book[site][requests].most)
		book[site][requests].most = bytes;
}

static void post(int i, int bytes, MPI_Request *receive, MPI_Request *send)
{
	MPI_Irecv(in[i], bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, receive); /* site 16 */
	MPI_Isend(out[i], bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, send); /* site 17 */
}

/* Posts requests through one variable and waits through another. */
static void moved(void)
{
	MPI_Request one, other, all[4];

	for (int i = 0; i < 2; i++) {
		post(i, i ? 100 : 8, &one, &other);
		all[2 * i] = one;
		all[2 * i + 1] = other;
	}
	note(2, 4, 216);
	MPI_Waitall(4, all, MPI_STATUSES_IGNORE); /* site 2 */
}

static void by_any(void)
{
	MPI_Request receive[3], send[3];
	int which;

	for (int i = 0; i < 3; i++)
		post(i, 64, &receive[i], &send[i]);
	for (int left = 3; left; left--) {
		note(5, left, 64 * left);
		MPI_Waitany(3, receive, &which, MPI_STATUS_IGNORE); /* site 5 */
	}
	note(6, 3, 192);
	MPI_Waitall(3, send, MPI_STATUSES_IGNORE); /* site 6 */
}

static void by_some(void)
{
	MPI_Request receive[3], send[3];
	int done, which[3];

	for (int i = 0; i < 3; i++)
		post(i, 64, &receive[i], &send[i]);
	for (int left = 3; left; left -= done) {
		note(7, left, 64 * left);
		MPI_Waitsome(3, receive, &done, which, MPI_STATUSES_IGNORE); /* site 7 */
	}
	note(18, 3, 192);
	MPI_Waitall(3, send, MPI_STATUSES_IGNORE); /* site 18 */
}

static void many(void)
{
	MPI_Request receive[MANY], send[MANY];

	for (int i = 0; i < MANY; i++)
		post(i, 4, &receive[i], &send[i]);
	note(12, FOLLOWED, 4 * FOLLOWED);
	MPI_Waitall(MANY, receive, MPI_STATUSES_IGNORE); /* site 12 */
	for (int i = 0; i < MANY; i++) {
		note(19, 1, 4);
		MPI_Wait(&send[i], MPI_STATUS_IGNORE); /* site 19 */
	}
}

static void one_round(MPI_Request *persistent, MPI_Datatype derived)
{
	MPI_Request request[4];
	int flag;

	post(0, 8, &request[0], &request[1]);
	post(1, 100, &request[2], &request[3]);
	note(1, 4, 216);
	MPI_Waitall(4, request, MPI_STATUSES_IGNORE); /* site 1 */
	moved();

	/* one after the other, the last first */
	post(0, 8, &request[0], &request[1]);
	post(1, 100, &request[2], &request[3]);
	note(3, 1, 100);
	MPI_Wait(&request[3], MPI_STATUS_IGNORE); /* site 3 */
	note(4, 1, 8);
	MPI_Wait(&request[1], MPI_STATUS_IGNORE); /* site 4 */
	note(15, 2, 108); /* two of the four are null by now */
	MPI_Waitall(4, request, MPI_STATUSES_IGNORE); /* site 15 */
	by_any();
	by_some();

	for (int i = 0; i < 2; i++) {
		note(8, 1, 256);
		MPI_Start(&persistent[i]); /* site 8 */
	}
	for (int i = 0; i < 2; i++) {
		note(9, 1, 256);
		MPI_Wait(&persistent[i], MPI_STATUS_IGNORE); /* site 9 */
	}
	note(10, 0, 0);
	MPI_Wait(&persistent[0], MPI_STATUS_IGNORE); /* site 10 */
	many();

	/* completed by calls that are not observed; the same variables are used again */
	MPI_Irecv(large_in, LARGE, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &request[0]); /* site 16 */
	MPI_Isend(large_out, LARGE, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &request[1]); /* site 17 */
	for (flag = 0; !flag;)
		MPI_Test(&request[0], &flag, MPI_STATUS_IGNORE);
	for (flag = 0; !flag;)
		MPI_Test(&request[1], &flag, MPI_STATUS_IGNORE);
	post(0, 8, &request[0], &request[1]);
	note(13, 2, 16);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE); /* site 13 */

	MPI_Sendrecv(out[0], 3, derived, peer, 9, in[0], 3, derived, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* site 14 */
}

int main(int argc, char **argv)
{
	int rank, rounds = 20;
	const char *log = NULL;
	double seconds = 0;
	MPI_Request persistent[2];
	MPI_Datatype derived;
	char path[512];
	FILE *file;

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
	peer = 1 - rank;
	MPI_Type_contiguous(32, MPI_BYTE, &derived);
	MPI_Type_commit(&derived);
	snprintf(path, sizeof(path), "%s/truth.%d", log ? log : ".", rank);
	file = fopen(path, "w");
	if (!file)
		return 1;
	fprintf(file, "# rank %d pid %d\n", rank, (int)getpid());
	fflush(file);
	wait_for_observer(seconds);

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Recv_init(in[0], 256, MPI_BYTE, peer, 11, MPI_COMM_WORLD, &persistent[0]);
	MPI_Send_init(out[0], 256, MPI_BYTE, peer, 11, MPI_COMM_WORLD, &persistent[1]);
	for (int round = 0; round < rounds; round++)
		one_round(persistent, derived);
	for (int site = 0; site < SITES; site++)
		for (int n = 0; n <= FOLLOWED; n++)
			if (book[site][n].calls)
				fprintf(file,
					"{\"site\":%d,\"requests\":%d,\"calls\":%ld,\"min_bytes\":%ld,"
					"\"max_bytes\":%ld}\n",
					site, n, book[site][n].calls, book[site][n].least, book[site][n].most);
	fclose(file);
	MPI_Request_free(&persistent[0]);
	MPI_Request_free(&persistent[1]);
	MPI_Type_free(&derived);
	MPI_Finalize();
	return 0;
}
