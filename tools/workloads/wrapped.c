// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls MPI through a wrapper that it loads after --seconds, from two places; one call every 20 ms.
 *
 *   wrapped [--seconds S] [--log DIR] [--rounds N]     S: sleep before the library is loaded
 */
/* The marks must stay on their lines. */
/* clang-format off */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

int main(int argc, char **argv)
{
	int rank, rounds = 40;
	const char *log = ".";
	double seconds = 0, sum = 0;
	double (*wrapped_sum)(double value);
	char path[512];
	void *library;
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
	snprintf(path, sizeof(path), "%s/truth.%d", log, rank);
	file = fopen(path, "w");
	if (!file)
		return 1;
	fprintf(file, "# rank %d pid %d\n", rank, (int)getpid());
	fclose(file);
	wait_for_observer(seconds);
	snprintf(path, sizeof(path), "%.*s/libwrapper.so", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	library = dlopen(path, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&wrapped_sum = dlsym(library, "wrapped_sum");
	for (int round = 0; round < rounds; round++) {
		sum += wrapped_sum(1); /* site 1 */
		nanosleep(&(struct timespec){0, 20000000}, NULL);
		sum -= wrapped_sum(2); /* site 2 */
	}
	MPI_Finalize();
	return sum > 0;
}
