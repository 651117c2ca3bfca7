// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program without fixed workload: in each iteration each rank computes three segments of random
 * length (uniform, 1 to 12 ms, different per rank and iteration). No two segments can be compared, so
 * vaprod must claim next to no coverage and raise no alarm.
 *
 *   mpirun -n 2 random_work --seconds 30 --log DIR --bind
 */
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>

#include "common.h"
#include "truth.h"

#define UNIT_US 10.0

enum { SEG_ONE = 1, SEG_TWO, SEG_THREE };

static uint64_t seed;

/* Does work of a uniformly random length; returns its result. */
static __attribute__((noinline)) uint64_t work(double min_ms, double max_ms)
{
	double share, units;

	seed = lcg(seed, 1);
	share = (double)(seed >> 11) / 9007199254740992.0;
	units = (min_ms + share * (max_ms - min_ms)) * 1000.0 / UNIT_US;
	return lcg(seed, (uint64_t)(units * UNIT_US * (double)LCG_STEPS_PER_US));
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"seconds", required_argument, NULL, 's'},
	    {"log", required_argument, NULL, 'l'},
	    {"min-ms", required_argument, NULL, 'm'},
	    {"max-ms", required_argument, NULL, 'M'},
	    {"bind", no_argument, NULL, 'b'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	double seconds = 30, min_ms = 1, max_ms = 12;
	uint64_t begin_ns, iteration, sum = 0, other, mine[2], all[2];
	const char *log_dir = NULL;
	bool bind = false;
	struct truth log;
	int rank, size, opt, failed;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			seconds = number("--seconds", optarg, 0.1, 1e6);
			break;
		case 'l':
			log_dir = optarg;
			break;
		case 'm':
			min_ms = number("--min-ms", optarg, 0.01, 1e4);
			break;
		case 'M':
			max_ms = number("--max-ms", optarg, 0.01, 1e4);
			break;
		case 'b':
			bind = true;
			break;
		default:
			if (rank == 0)
				fprintf(opt == 'h' ? stdout : stderr,
					"usage: mpirun -n N random_work [--seconds T] [--log DIR] [--min-ms M] "
					"[--max-ms M] [--bind]\n");
			MPI_Finalize();
			return opt == 'h' ? 0 : 2;
		}
	}
	if (bind)
		pin_rank(rank);
	seed = lcg(977 + (uint64_t)rank * 1000003, 10);
	truth__open(&log, log_dir, "truth", rank, (size_t)(seconds * 3000 / min_ms) + 10000);
	truth__name(&log, SEG_ONE, "random before Sendrecv");
	truth__name(&log, SEG_TWO, "random before Allreduce");
	truth__name(&log, SEG_THREE, "random before Barrier");
	MPI_Barrier(MPI_COMM_WORLD);
	begin_ns = now_ns();
	truth__leave(&log);
	for (iteration = 0;; iteration++) {
		sum += work(min_ms, max_ms);
		truth__enter(&log, SEG_ONE);
		MPI_Sendrecv(&sum, 1, MPI_UINT64_T, (rank + 1) % size, 1, &other, 1, MPI_UINT64_T,
			     (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		truth__leave(&log);
		sum ^= other;
		mine[0] = sum += work(min_ms, max_ms);
		mine[1] = rank == 0 && (double)(now_ns() - begin_ns) > seconds * 1e9;
		truth__enter(&log, SEG_TWO);
		MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		truth__leave(&log);
		if (all[1])
			break;
		sum += work(min_ms, max_ms);
		truth__enter(&log, SEG_THREE);
		MPI_Barrier(MPI_COMM_WORLD);
		truth__leave(&log);
	}
	failed = truth__close(&log);
	if (rank == 0)
		printf("{\"program\":\"random_work\",\"ranks\":%d,\"iterations\":%llu,\"sum\":\"%016llx\"}\n", size,
		       (unsigned long long)iteration + 1, (unsigned long long)all[0]);
	MPI_Finalize();
	return failed != 0;
}
