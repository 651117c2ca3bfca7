// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that is linked to one MPI library and loads another one, as a plug-in or a library that forwards does: the
 * other's names are its own (RTLD_LOCAL), and nothing but its version is asked of it. Then MPI_Barrier every 10 ms.
 *
 *   two_mpi --library FILE --seconds 4
 *
 * Prints {"ready":true,"pid":P} once both are loaded, and {"calls":N} at its end.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <mpi.h>
#include <time.h>

#include "common.h"

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"library", required_argument, NULL, 'l'}, {"seconds", required_argument, NULL, 's'}, {NULL, 0, NULL, 0}};
	const struct timespec pause = {.tv_nsec = 10000000};
	int (*version)(int *, int *), option, major, minor;
	double seconds = 4;
	void *library = NULL;
	int count = 0;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'l')
			library = dlopen(optarg, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
		else if (option == 's')
			seconds = number("--seconds", optarg, 0, 1e6);
		else
			return 2;
	}
	if (!library) {
		fprintf(stderr, "two_mpi: %s\n", dlerror());
		return 1;
	}
	*(void **)&version = dlsym(library, "MPI_Get_version");
	if (!version || version(&major, &minor))
		return 1;
	MPI_Init(&argc, &argv);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	wait_for_observer(2);
	for (; count < (int)(seconds * 100); count++) {
		MPI_Barrier(MPI_COMM_WORLD);
		nanosleep(&pause, NULL);
	}
	MPI_Finalize();
	printf("{\"calls\":%d}\n", count);
	return 0;
}
