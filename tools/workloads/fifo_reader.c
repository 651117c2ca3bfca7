// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A slow peer behind an IO call: every rank computes 5 ms of fixed work per iteration, and rank 1
 * reads 64 bytes from a FIFO that tools/inject/fifo_writer.c keeps full, until the writer stalls. The
 * truth: class io on rank 1, nothing of class computation.
 *
 *   mpirun -n 2 fifo_reader --fifo PATH --seconds 30 --log DIR --bind
 */
#include <fcntl.h>
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>

#include "common.h"
#include "truth.h"

enum { SEG_WORK = 1, SEG_AFTER_READ, WORK_US = 5000, RECORD = 64 };

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"seconds", required_argument, NULL, 's'}, {"log", required_argument, NULL, 'l'},
	    {"fifo", required_argument, NULL, 'f'},    {"bind", no_argument, NULL, 'b'},
	    {"help", no_argument, NULL, 'h'},	       {NULL, 0, NULL, 0},
	};
	uint64_t begin_ns, iteration, state = 1, bytes = 0, mine[2], all[2];
	const char *log_dir = NULL, *fifo = NULL;
	int rank, size, opt, file = -1, failed;
	double seconds = 30;
	bool bind = false;
	struct truth log;
	char record[RECORD];

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
		case 'f':
			fifo = optarg;
			break;
		case 'b':
			bind = true;
			break;
		default:
			if (rank == 0)
				fprintf(
				    opt == 'h' ? stdout : stderr,
				    "usage: mpirun -n 2 fifo_reader --fifo PATH [--seconds T] [--log DIR] [--bind]\n");
			MPI_Finalize();
			return opt == 'h' ? 0 : 2;
		}
	}
	if (!fifo) {
		if (rank == 0)
			fprintf(stderr, "fifo_reader: --fifo PATH is missing\n");
		MPI_Finalize();
		return 2;
	}
	if (bind)
		pin_rank(rank);
	truth__open(&log, log_dir, "truth", rank, (size_t)(seconds * 1000) + 10000);
	truth__name(&log, SEG_WORK, "fixed work");
	truth__name(&log, SEG_AFTER_READ, "after the read");
	if (rank == 1) {
		truth__io(&log, SEG_WORK);
		file = open(fifo, O_RDONLY);
		if (file < 0) {
			fprintf(stderr, "%s: %s\n", fifo, strerror(errno));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	begin_ns = now_ns();
	truth__leave(&log);
	for (iteration = 0;; iteration++) {
		state = lcg(state, WORK_US * LCG_STEPS_PER_US);
		truth__enter(&log, SEG_WORK);
		if (rank == 1) {
			ssize_t n = read(file, record, sizeof(record));

			truth__leave(&log);
			if (n != RECORD) {
				fprintf(stderr, "%s: %s\n", fifo, n < 0 ? strerror(errno) : "the writer has gone");
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
			bytes += (uint64_t)n;
			mine[0] = bytes;
			mine[1] = 0;
			truth__enter(&log, SEG_AFTER_READ);
		} else {
			mine[0] = 0;
			mine[1] = rank == 0 && (double)(now_ns() - begin_ns) > seconds * 1e9;
		}
		MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		truth__leave(&log);
		if (all[1])
			break;
	}
	failed = truth__close(&log);
	if (rank == 0)
		printf("{\"program\":\"fifo_reader\",\"ranks\":%d,\"iterations\":%llu,\"bytes\":%llu,\"state\":\"%"
		       "016llx\"}\n",
		       size, (unsigned long long)iteration + 1, (unsigned long long)all[0], (unsigned long long)state);
	MPI_Finalize();
	return failed != 0;
}
