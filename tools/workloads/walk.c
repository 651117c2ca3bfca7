// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One rank that can be slowed without losing its CPU: between two calls it follows a chain through cache
 * lines that memory_hog may write (lines.h), and computes. The work is always the same, in two kernels.
 *
 *   mpirun -n 1 walk --lines FILE [--seconds T] [--log DIR]
 *
 * Makes FILE; pins itself to CPU 0. Logs its segments (truth.h). Exits with 1 where the chain was wrong.
 */
#include <getopt.h>
#include <mpi.h>

#include "common.h"
#include "lines.h"
#include "truth.h"

enum { SEG_SHORT = 1, SEG_LONG, SHORT_US = 1000, LONG_US = 2500, CIRCLES = 2 };

static struct line *lines;

/* Makes a circle through all lines, in an order that no prefetcher foresees: the stride is prime to their number. */
static void lay_chain(void)
{
	for (uint32_t i = 0, at = 0; i < LINES; i++, at = lines[at].next)
		lines[at].next = (at + 1597) % LINES;
}

static uint32_t follow(uint32_t at)
{
	for (int i = 0; i < LINES; i++)
		at = lines[at].next;
	return at; /* start of the circle */
}

/* Works in parts, so that an injector has time to write all lines between two circles. */
static uint64_t work(uint64_t x, uint64_t us, int circles, int *wrong)
{
	for (int i = 0; i < circles; i++) {
		*wrong |= follow(0) != 0;
		x = lcg(x, LCG_STEPS_PER_US * us / (uint64_t)circles);
	}
	return x;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"seconds", required_argument, NULL, 's'},
	    {"lines", required_argument, NULL, 'n'},
	    {"log", required_argument, NULL, 'l'},
	    {NULL, 0, NULL, 0},
	};
	const char *log_dir = NULL, *path = NULL;
	uint64_t begin_ns, rounds = 0, x = 1, sum;
	int rank, opt, over = 0, wrong = 0;
	double seconds = 10;
	struct truth log;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 's')
			seconds = number("--seconds", optarg, 0.1, 1e6);
		else if (opt == 'n')
			path = optarg;
		else if (opt == 'l')
			log_dir = optarg;
		else
			return 2;
	}
	if (!path) {
		fprintf(stderr, "usage: mpirun -n 1 walk --lines FILE [--seconds T] [--log DIR]\n");
		MPI_Finalize();
		return 2;
	}
	pin_rank(rank);
	lines = map_lines(path, 1);
	lay_chain();
	truth__open(&log, log_dir, "truth", rank, (size_t)(seconds * 2000) + 10000);
	truth__name(&log, SEG_SHORT, "short");
	truth__name(&log, SEG_LONG, "long");
	begin_ns = now_ns();
	truth__leave(&log);
	for (; !over; rounds++) {
		x = work(x, SHORT_US, CIRCLES, &wrong);
		truth__enter(&log, SEG_SHORT);
		MPI_Allreduce(&x, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		truth__leave(&log);
		x = work(x, LONG_US, 2 * CIRCLES, &wrong);
		over = (double)(now_ns() - begin_ns) > seconds * 1e9;
		truth__enter(&log, SEG_LONG);
		MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
		truth__leave(&log);
	}
	if (truth__close(&log))
		wrong = 1;
	if (rank == 0)
		printf("{\"program\":\"walk\",\"rounds\":%llu,\"ms_per_round\":%.3f,\"wrong\":%d,\"result\":%llu}\n",
		       (unsigned long long)rounds, (double)(now_ns() - begin_ns) / 1e6 / (double)rounds, wrong,
		       (unsigned long long)x);
	MPI_Finalize();
	return wrong;
}
