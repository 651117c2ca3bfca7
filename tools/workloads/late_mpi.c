// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that runs for a while before it loads MPI, as an interpreter does until its script imports
 * MPI: it opens Open MPI's library after --delay seconds, calls MPI_Barrier every 10 ms for --seconds,
 * and can fork a child (--fork) that sleeps, or calls the inherited library (--fork-calls), which MPI
 * forbids.
 *
 *   late_mpi --delay 2 --seconds 3 [--library FILE] [--local]
 *
 * Prints {"ready":true,"pid":P} at its start, {"child":P} for a child, and {"calls":N} at its end.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

#include "common.h"

static void rest(double seconds)
{
	struct timespec time = {.tv_sec = (time_t)seconds,
				.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

	nanosleep(&time, NULL);
}

static void *symbol(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "late_mpi: %s\n", dlerror());
		exit(1);
	}
	return found;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"delay", required_argument, NULL, 'd'},
						{"seconds", required_argument, NULL, 's'},
						{"library", required_argument, NULL, 'l'},
						{"fork", no_argument, NULL, 'f'},
						{"fork-calls", no_argument, NULL, 'c'},
						{"local", no_argument, NULL, 'o'},
						{NULL, 0, NULL, 0}};
	double delay = 2, seconds = 3;
	bool forks = false, calls = false;
	const char *name = "libmpi.so.40";
	int (*init)(int *, char ***), (*barrier)(void *), (*finalize)(void);
	int (*send)(const void *, int, void *, int, int, void *);
	void *library, *world, *byte;
	int option, count = 0, scope = RTLD_GLOBAL;
	pid_t child = 0;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'd')
			delay = number("--delay", optarg, 0, 1e6);
		else if (option == 's')
			seconds = number("--seconds", optarg, 0, 1e6);
		else if (option == 'l')
			name = optarg;
		else if (option == 'f')
			forks = true;
		else if (option == 'c')
			forks = calls = true;
		else if (option == 'o')
			scope = RTLD_LOCAL;
		else
			return 2;
	}
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	wait_for_observer(delay);
	library = dlopen(name, RTLD_NOW | scope);
	if (!library) {
		fprintf(stderr, "late_mpi: %s\n", dlerror());
		return 1;
	}
	*(void **)&init = symbol(library, "MPI_Init");
	*(void **)&barrier = symbol(library, "MPI_Barrier");
	*(void **)&send = symbol(library, "MPI_Send");
	*(void **)&finalize = symbol(library, "MPI_Finalize");
	world = symbol(library, "ompi_mpi_comm_world");
	byte = symbol(library, "ompi_mpi_byte");
	if (init(&argc, &argv))
		return 1;
	if (forks) {
		fflush(stdout);
		child = fork();
		if (!child) {
			for (int i = 0; i < (int)(seconds * 50); i++) {
				if (calls)
					send(&count, 0, byte, -2, 1, world); /* MPI_PROC_NULL: no receiver */
				rest(0.01);
			}
			_exit(0);
		}
		printf("{\"child\":%d}\n", (int)child);
		fflush(stdout);
	}
	for (; count < (int)(seconds * 100); count++) {
		barrier(world);
		rest(0.01);
	}
	if (child)
		waitpid(child, NULL, 0);
	finalize();
	printf("{\"calls\":%d}\n", count);
	return 0;
}
