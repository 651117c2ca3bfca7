// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One call-site reached by two paths, another by one: with context-aware states the first site makes two
 * states, else one.
 *
 *   paths [--seconds S] [--log DIR] [--rounds N]     S: sleep before the first call
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

static double value[2];

__attribute__((noipa)) static void reduce(void)
{
	MPI_Allreduce(MPI_IN_PLACE, value, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* site 1 */
	value[0] *= 0.5;
}

__attribute__((noipa)) static void from_here(void)
{
	reduce();
	value[1] += 1;
}

__attribute__((noipa)) static void from_there(void)
{
	reduce();
	value[1] -= 1;
}

__attribute__((noipa)) static void alone(void)
{
	MPI_Barrier(MPI_COMM_WORLD); /* site 2 */
	value[1] *= 0.5;
}

int main(int argc, char **argv)
{
	int rank, rounds = 50;
	const char *log = NULL;
	double seconds = 0;
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
	snprintf(path, sizeof(path), "%s/truth.%d", log ? log : ".", rank);
	file = fopen(path, "w");
	if (!file)
		return 1;
	fprintf(file, "# rank %d pid %d\n", rank, (int)getpid());
	fclose(file);
	wait_for_observer(seconds);
	for (int round = 0; round < rounds; round++) {
		if (round % 2)
			from_here();
		from_there();
		alone();
	}
	nanosleep(&(struct timespec){2, 0}, NULL);
	MPI_Finalize(); /* site 3 */
	return 0;
}
