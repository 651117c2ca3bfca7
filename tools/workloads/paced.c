// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes calls of a known result at a given rate and sleeps between them, so that many of these processes fit on few
 * CPUs: the targets, and with --spin the strangers, of tests of who is reached by probes. No rank waits for another.
 *
 *   mpirun -n 17 paced --rate 500 --seconds 20 [--spin]
 *
 * Each rank prints {"ready":true,"pid":P} after MPI_Init and {"program":"paced",...} at its end; exit code 1 where a
 * result was wrong. With --idle SECONDS it sleeps before MPI_Init, and again before MPI_Finalize.
 */
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <time.h>

#include "common.h"
#include "truth.h"

static void sleep_until(uint64_t ns)
{
	struct timespec at = {.tv_sec = (time_t)(ns / 1000000000ULL), .tv_nsec = (long)(ns % 1000000000ULL)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static double cpu_s(void)
{
	struct timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* Returns how many results were wrong. */
static uint64_t call(double seconds, double rate, bool spin, uint64_t *calls)
{
	uint64_t begin = now_ns(), end = begin + (uint64_t)(seconds * 1e9), due = begin, wrong = 0;

	for (*calls = 0; due < end; ++*calls) {
		double sum = -1, part = (double)*calls;

		MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
		wrong += sum != part;
		due = begin + (uint64_t)((double)(*calls + 1) * 1e9 / rate);
		if (spin)
			while (now_ns() < due)
				;
		else
			sleep_until(due);
	}
	return wrong;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"seconds", required_argument, NULL, 's'},
	    {"rate", required_argument, NULL, 'r'},
	    {"idle", required_argument, NULL, 'i'},
	    {"spin", no_argument, NULL, 'p'},
	    {NULL, 0, NULL, 0},
	};
	double seconds = 20, rate = 500, idle = 0, cpu;
	uint64_t calls, wrong;
	bool spin = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			seconds = number("--seconds", optarg, 0.1, 1e6);
		else if (option == 'r')
			rate = number("--rate", optarg, 0.1, 1e6);
		else if (option == 'i')
			idle = number("--idle", optarg, 0, 1e4);
		else if (option == 'p')
			spin = true;
		else
			return 2;
	}
	sleep_until(now_ns() + (uint64_t)(idle * 1e9));
	MPI_Init(&argc, &argv);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	cpu = cpu_s();
	wrong = call(seconds, rate, spin, &calls);
	cpu = cpu_s() - cpu;
	sleep_until(now_ns() + (uint64_t)(idle * 1e9));
	MPI_Finalize();
	printf("{\"program\":\"paced\",\"pid\":%d,\"calls\":%llu,\"wrong\":%llu,\"cpu_s\":%.6f}\n", (int)getpid(),
	       (unsigned long long)calls, (unsigned long long)wrong, cpu);
	return wrong != 0;
}
