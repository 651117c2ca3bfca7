// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * MPI and threads in one program. Rounds of: every thread of an OpenMP team computes, then thread 0
 * reduces over the ranks (MPI_THREAD_FUNNELED); or, with --multiple, every thread exchanges with the same
 * thread of the neighbour (MPI_THREAD_MULTIPLE), thread T T + 1 times a round, threads with odd numbers
 * by MPI_Sendrecv_replace.
 *
 *   mpirun -n 2 hybrid [--multiple] [--threads N] [--rounds N] [--delay T] [--log DIR]
 *
 * Writes DIR/calls.RANK: "THREAD TID CALLS" for each thread that calls MPI in a round, and DIR/truth.RANK
 * without segments, for programs that need the pids.
 */
#include <getopt.h>
#include <mpi.h>
#include <omp.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "common.h"
#include "truth.h"

#define THREADS_MAX 16
#define WORK_US 300

static struct {
	pid_t tid;
	unsigned long calls;
} reported[THREADS_MAX];

static int threads = 2, rounds = 200, rank, ranks;

static void funneled(uint64_t *value)
{
	uint64_t sum = 0, all;

#pragma omp parallel num_threads(threads) reduction(+ : sum)
	sum += lcg(*value, LCG_STEPS_PER_US * WORK_US);
	MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	reported[0].calls++;
	*value = all;
}

static void multiple(uint64_t *value)
{
#pragma omp parallel num_threads(threads)
	{
		int me = omp_get_thread_num(), other = rank ^ 1;
		uint64_t mine = lcg(*value + (uint64_t)me, LCG_STEPS_PER_US * WORK_US), theirs = 0;

		for (int i = 0; i <= me && other < ranks; i++) {
			if (me % 2)
				MPI_Sendrecv_replace(&mine, 1, MPI_UINT64_T, other, me, other, me, MPI_COMM_WORLD,
						     MPI_STATUS_IGNORE);
			else
				MPI_Sendrecv(&mine, 1, MPI_UINT64_T, other, me, &theirs, 1, MPI_UINT64_T, other, me,
					     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			reported[me].calls++;
		}
#pragma omp critical
		*value ^= theirs ^ mine;
	}
}

static int write_calls(const char *directory, int callers)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/calls.%d", directory, rank);
	file = fopen(path, "w");
	if (!file)
		return 1;
	for (int i = 0; i < callers; i++)
		fprintf(file, "%d %d %lu\n", i, (int)reported[i].tid, reported[i].calls);
	return fclose(file) ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"multiple", no_argument, NULL, 'm'},     {"threads", required_argument, NULL, 't'},
	    {"rounds", required_argument, NULL, 'r'}, {"delay", required_argument, NULL, 'd'},
	    {"log", required_argument, NULL, 'l'},    {NULL, 0, NULL, 0}};
	bool all = false;
	const char *directory = NULL;
	double delay_s = 0;
	struct truth log;
	uint64_t value = 1;
	int opt, wanted, given, failed;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'm')
			all = true;
		else if (opt == 't')
			threads = (int)number("--threads", optarg, 1, THREADS_MAX);
		else if (opt == 'r')
			rounds = (int)number("--rounds", optarg, 1, 1e9);
		else if (opt == 'd')
			delay_s = number("--delay", optarg, 0, 100);
		else if (opt == 'l')
			directory = optarg;
		else
			return 2;
	}
	wanted = all ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
	MPI_Init_thread(&argc, &argv, wanted, &given);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (given < wanted) {
		fprintf(stderr, "this MPI has no such threads\n");
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
#pragma omp parallel num_threads(threads)
	reported[omp_get_thread_num()].tid = (pid_t)syscall(SYS_gettid);
	truth__open(&log, directory, "truth", rank, 1);
	wait_for_observer(delay_s);
	for (int i = 0; i < rounds; i++) {
		if (all)
			multiple(&value);
		else
			funneled(&value);
		if (!i)
			usleep(1500000); /* time to learn the team's function's address */
	}
	failed = directory && write_calls(directory, all ? threads : 1);
	failed |= truth__close(&log) != 0;
	MPI_Finalize();
	return failed;
}
