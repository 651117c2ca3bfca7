// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ranks that are nearly always asleep and meet in a barrier now and then: many of them fit on few CPUs,
 * so the time that an observer needs to attach to all ranks, and to detach, is that of its own work.
 *
 *   mpirun --oversubscribe -n 64 sleepers --seconds 30 [--period 2]
 *
 * Rank 0 prints {"ready":true,"pid":P} once all have met for the first time.
 */
#include <getopt.h>
#include <mpi.h>
#include <time.h>

#include "common.h"
#include "truth.h"

static void sleep_until(uint64_t ns)
{
	struct timespec at = {.tv_sec = (time_t)(ns / 1000000000ULL), .tv_nsec = (long)(ns % 1000000000ULL)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"seconds", required_argument, NULL, 's'}, {"period", required_argument, NULL, 'p'}, {NULL, 0, NULL, 0}};
	double seconds = 30, period = 2;
	int option, rank;
	uint64_t begin;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			seconds = number("--seconds", optarg, 0.1, 1e6);
		else if (option == 'p')
			period = number("--period", optarg, 0.001, 1e6);
		else
			return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = now_ns();
	MPI_Bcast(&begin, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD); /* the same times for all: no rank waits for long */
	if (!rank) {
		printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
		fflush(stdout);
	}
	for (int i = 1; i * period <= seconds; i++) {
		sleep_until(begin + (uint64_t)(i * period * 1e9));
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
