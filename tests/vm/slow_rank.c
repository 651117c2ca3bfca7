// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ranks that execute the same instructions, one of them as if its CPU were slower from start to end: it reads
 * a register that the kernel has to emulate, where the others read one that exists. Its computations take
 * longer on the CPU by time that no factor reports. The ranks compute one after the
 * other, so that one CPU is enough for all.
 *
 *   mpirun -n 2 slow_rank --steps 60 --slow 1
 */
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>

#include "common.h"

#define LOOPS 400
#define STEPS_BETWEEN 5000

/* Returns a value of either register, so that the read is not optimised away. */
static uint64_t probe(bool slow)
{
	uint64_t value = 0;

#if defined(__aarch64__)
	if (slow)
		__asm__ volatile("mrs %0, midr_el1" : "=r"(value));
	else
		__asm__ volatile("mrs %0, tpidr_el0" : "=r"(value));
#else
	(void)slow;
	fprintf(stderr, "slow_rank: for arm64 only\n");
	exit(2);
#endif
	return value & 1;
}

static uint64_t work(uint64_t x, bool slow, int probes)
{
	for (int i = 0; i < LOOPS; i++) {
		x = lcg(x, STEPS_BETWEEN);
		for (int k = 0; k < probes; k++)
			x += probe(slow);
	}
	return x;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"steps", required_argument, NULL, 's'},
						{"slow", required_argument, NULL, 'r'},
						{"probes", required_argument, NULL, 'p'},
						{NULL, 0, NULL, 0}};
	int opt, steps = 60, slow = -1, rank, ranks, probes = 30, token = 0;
	uint64_t x = 1;

	MPI_Init(&argc, &argv);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 's')
			steps = (int)number("--steps", optarg, 1, 1e6);
		else if (opt == 'r')
			slow = (int)number("--slow", optarg, 0, 1e6);
		else if (opt == 'p')
			probes = (int)number("--probes", optarg, 0, 1e6);
		else
			return 2;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	wait_for_observer(1);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < steps; i++) {
		if (rank || i)
			MPI_Recv(&token, 1, MPI_INT, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		x = work(x, rank == slow, probes);
		MPI_Send(&token, 1, MPI_INT, (rank + 1) % ranks, 1, MPI_COMM_WORLD);
	}
	if (!rank)
		MPI_Recv(&token, 1, MPI_INT, ranks - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	printf("{\"result\":%llu}\n", (unsigned long long)x);
	MPI_Finalize();
	return 0;
}
