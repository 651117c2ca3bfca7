// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Several classes of work on one edge of the State Transition Graph: call-site and arguments are the
 * same, the number of instructions is not. Prints the CPU time of the work by the thread's own clock,
 * which counters summed over switches and migrations must agree with.
 *
 *   mpirun -n 1 classes --classes 7 --rounds 30 --us 5000 [--migrate] [--delay 3]
 *
 * Each round does every class once, class c taking 1 + c/2 times --us microseconds. --migrate: the
 * thread moves to another CPU several times within each piece of work. Prints {"ready":true,"pid":P}
 * before the first call (then waits --delay seconds), and the CPU time of each piece as JSON at the end.
 */
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <time.h>

#include "common.h"
#include "truth.h"

#define SLICES 4 /* slices of a piece of work; the thread may move between slices */

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static uint64_t piece(uint64_t x, uint64_t steps, bool migrate)
{
	static int cpu;

	for (int i = 0; i < SLICES; i++) {
		if (migrate)
			pin_rank(cpu++);
		x = lcg(x, steps / SLICES);
	}
	return x;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"classes", required_argument, NULL, 'c'}, {"rounds", required_argument, NULL, 'r'},
	    {"us", required_argument, NULL, 'u'},      {"delay", required_argument, NULL, 'd'},
	    {"migrate", no_argument, NULL, 'm'},       {NULL, 0, NULL, 0},
	};
	uint64_t begin_ns, *took_ns, x = 1;
	int opt, classes = 7, rounds = 30;
	double us = 5000, delay = 0;
	bool migrate = false;
	char byte = 0;

	MPI_Init(&argc, &argv);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			classes = (int)number("--classes", optarg, 1, 1000);
			break;
		case 'r':
			rounds = (int)number("--rounds", optarg, 1, 1e6);
			break;
		case 'u':
			us = number("--us", optarg, 1, 1e7);
			break;
		case 'd':
			delay = number("--delay", optarg, 0, 1e4);
			break;
		case 'm':
			migrate = true;
			break;
		default:
			fprintf(stderr, "usage: mpirun -n 1 classes [--classes N] [--rounds N] [--us T] [--migrate] "
					"[--delay T]\n");
			MPI_Finalize();
			return 2;
		}
	}
	took_ns = calloc((size_t)(rounds * classes) + 1, sizeof(*took_ns));
	if (!took_ns)
		return 1;
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	if (delay > 0)
		wait_for_observer(delay);
	for (int i = 0; i <= rounds * classes; i++) {
		MPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
		if (i == rounds * classes)
			break;
		begin_ns = cpu_ns();
		x = piece(x, (uint64_t)(us * (1 + (i % classes) / 2.0)) * LCG_STEPS_PER_US, migrate);
		took_ns[i] = cpu_ns() - begin_ns;
	}
	printf("{\"classes\":%d,\"result\":%llu,\"cpu_ns\":[", classes, (unsigned long long)x);
	for (int i = 0; i < rounds * classes; i++)
		printf("%s%llu", i ? "," : "", (unsigned long long)took_ns[i]);
	printf("]}\n");
	free(took_ns);
	MPI_Finalize();
	return 0;
}
