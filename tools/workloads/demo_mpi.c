// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The demo's MPI program: a loop of about 20 ms with four kernels of fixed work (relaxation sweeps, dot
 * products, tridiagonal solves, a walk through a random table), exchange between neighbours (Sendrecv;
 * Irecv, Isend, Waitall), collectives (Allreduce, now and then Bcast) and file IO (pwrite and fsync).
 * Each rank logs the time of each segment between two calls (truth.h): the truth for a comparison with
 * vaprod's findings.
 *
 * Each kernel waits for its own last result, from data that a core's first cache holds: a neighbour on the
 * same core of a virtual machine's host, or in its caches, slows it little. Only the subject of the demo
 * slows it: another process that takes the CPU.
 *
 *   mpirun -n 2 demo_mpi --seconds 30 --log DIR --scratch DIR --bind
 *
 * Every iteration computes the same numbers; a result that differs from the first iteration's is
 * counted, and the program then exits with 1.
 */
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>

#include "common.h"
#include "truth.h"

enum {
	GRID = 50, /* 20 KiB */
	SWEEPS = 540,
	VECTOR = 1024, /* 2 x 8 KiB */
	DOTS = 4000,
	SYSTEM = 1024, /* 2 x 8 KiB */
	SOLVES = 370,
	TABLE = 1024, /* 4 KiB, one cycle through all entries */
	STEPS = 2200000,
	BCAST_EVERY = 8,
	HALO = GRID,
	BLOCK = 16 * 1024, /* bytes of one write */
	BLOCKS = 64,	   /* blocks of the file, written cyclically */
};

/* Segments by their place in the program. */
enum {
	SEG_RELAX = 1,	 /* Waitall -> Sendrecv */
	SEG_DOT,	 /* Sendrecv -> Allreduce */
	SEG_SOLVE,	 /* Allreduce -> Irecv */
	SEG_POST,	 /* Irecv -> Isend */
	SEG_WALK,	 /* Isend -> Waitall */
	SEG_BCAST,	 /* Waitall -> Bcast */
	SEG_PACK,	 /* Waitall or Bcast -> pwrite */
	SEG_SYNC,	 /* pwrite -> fsync */
	SEG_RELAX_BCAST, /* Bcast -> Sendrecv: the same work as SEG_RELAX */
	SEG_RELAX_IO,	 /* fsync -> Sendrecv: the same work as SEG_RELAX */
};

static double grid[GRID][GRID], grid_start[GRID][GRID];
static double vector_x[VECTOR], vector_y[VECTOR];
static double pivot[SYSTEM], unknown[SYSTEM];
static uint32_t table[TABLE];
static char block[BLOCK];

/* Prevents the compiler from merging repeated computations. */
#define repeat_honestly() __asm__ volatile("" ::: "memory")

static void prepare(void)
{
	uint64_t x = 20171;
	uint32_t i, j, swap;

	for (i = 0; i < GRID; i++)
		for (j = 0; j < GRID; j++)
			grid_start[i][j] = 1.0 + (double)((i * 7 + j * 3) % 11) / 11.0;
	for (i = 0; i < VECTOR; i++) {
		vector_x[i] = 1.0 + i % 17 * 0.25;
		vector_y[i] = 2.0 - i % 13 * 0.125;
	}
	/* Sattolo's shuffle: a permutation that is one cycle */
	for (i = 0; i < TABLE; i++)
		table[i] = i;
	for (i = TABLE - 1; i > 0; i--) {
		x = lcg(x, 1);
		j = (uint32_t)((x >> 33) % i);
		swap = table[i];
		table[i] = table[j];
		table[j] = swap;
	}
}

/* Gauss-Seidel: each point waits for the previous point. */
static __attribute__((noinline)) double relax(void)
{
	int sweep, i, j;

	memcpy(grid, grid_start, sizeof(grid));
	for (sweep = 0; sweep < SWEEPS; sweep++)
		for (i = 1; i < GRID - 1; i++)
			for (j = 1; j < GRID - 1; j++)
				grid[i][j] = 0.25 * (grid[i][j - 1] + grid[i - 1][j] + grid[i + 1][j] + grid[i][j + 1]);
	return grid[GRID / 2][GRID / 2];
}

static __attribute__((noinline)) double dots(void)
{
	double sum = 0;
	int n, i;

	for (n = 0; n < DOTS; n++) {
		for (i = 0; i < VECTOR; i++)
			sum += vector_x[i] * vector_y[i];
		repeat_honestly();
	}
	return sum;
}

/* Thomas' algorithm for -1, 3, -1: each pivot waits for the previous pivot, each unknown for the next unknown. */
static __attribute__((noinline)) double solve(void)
{
	int n, i;

	for (n = 0; n < SOLVES; n++) {
		pivot[0] = 3;
		unknown[0] = vector_x[0];
		for (i = 1; i < SYSTEM; i++) {
			double below = 1 / pivot[i - 1];

			pivot[i] = 3 - below;
			unknown[i] = vector_x[i] + below * unknown[i - 1];
		}
		unknown[SYSTEM - 1] /= pivot[SYSTEM - 1];
		for (i = SYSTEM - 2; i >= 0; i--)
			unknown[i] = (unknown[i] + unknown[i + 1]) / pivot[i];
		repeat_honestly();
	}
	return unknown[3] + unknown[SYSTEM - 1];
}

static __attribute__((noinline)) double walk(void)
{
	uint32_t at = 0, sum = 0;
	int i;

	for (i = 0; i < STEPS; i++) {
		at = table[at];
		sum += at;
	}
	return sum;
}

static void usage(FILE *out)
{
	fprintf(out, "usage: mpirun -n N demo_mpi [--seconds T] [--log DIR] [--scratch DIR] [--io-every N] [--bind]\n"
		     "  --seconds T    run for T seconds (30)\n"
		     "  --log DIR      each rank writes DIR/truth.RANK\n"
		     "  --scratch DIR  each rank writes DIR/demo.RANK and syncs it (no file IO without it)\n"
		     "  --io-every N   file IO in every Nth iteration (10)\n"
		     "  --bind         rank R runs on CPU R modulo the number of CPUs\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"seconds", required_argument, NULL, 's'},
	    {"log", required_argument, NULL, 'l'},
	    {"scratch", required_argument, NULL, 'd'},
	    {"io-every", required_argument, NULL, 'e'},
	    {"bind", no_argument, NULL, 'b'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	const char *log_dir = NULL, *scratch = NULL;
	double halo_out[HALO], halo_in[HALO], late_out[HALO], late_in[HALO];
	double results[4], first[4] = {0}, mine[2], all[2], setting = 1, seconds = 30;
	int rank, size, left, right, opt, file = -1;
	uint64_t begin_ns, iteration, wrong = 0;
	unsigned int io_every = 10, relax_id;
	MPI_Request requests[2];
	bool bind = false, failed = false;
	struct truth log;
	char path[4096];

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
		case 'd':
			scratch = optarg;
			break;
		case 'e':
			io_every = (unsigned int)number("--io-every", optarg, 1, 1e6);
			break;
		case 'b':
			bind = true;
			break;
		default:
			if (rank == 0)
				usage(opt == 'h' ? stdout : stderr);
			MPI_Finalize();
			return opt == 'h' ? 0 : 2;
		}
	}
	if (bind)
		pin_rank(rank);
	prepare();
	truth__open(&log, log_dir, "truth", rank, (size_t)(seconds * 1000) + 10000);
	truth__name(&log, SEG_RELAX, "relaxation");
	truth__name(&log, SEG_DOT, "dot products");
	truth__name(&log, SEG_SOLVE, "tridiagonal solves");
	truth__name(&log, SEG_POST, "between Irecv and Isend");
	truth__name(&log, SEG_WALK, "table walk");
	truth__name(&log, SEG_BCAST, "before Bcast");
	truth__name(&log, SEG_PACK, "pack the block");
	truth__name(&log, SEG_SYNC, "between pwrite and fsync");
	truth__name(&log, SEG_RELAX_BCAST, "relaxation after Bcast");
	truth__name(&log, SEG_RELAX_IO, "relaxation after fsync");
	truth__io(&log, SEG_PACK);
	truth__io(&log, SEG_SYNC);
	if (scratch) {
		snprintf(path, sizeof(path), "%s/demo.%d", scratch, rank);
		file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
		if (file < 0 || posix_fallocate(file, 0, (off_t)BLOCK * BLOCKS)) {
			fprintf(stderr, "%s: %s\n", path, strerror(errno));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	memset(halo_in, 0, sizeof(halo_in));
	memset(late_in, 0, sizeof(late_in));
	relax(), dots(), solve(), walk(); /* touch everything */

	MPI_Barrier(MPI_COMM_WORLD);
	begin_ns = now_ns();
	relax_id = SEG_RELAX;
	truth__leave(&log);
	for (iteration = 0;; iteration++) {
		results[0] = relax();
		memcpy(halo_out, grid[1], sizeof(halo_out));
		truth__enter(&log, relax_id);
		MPI_Sendrecv(halo_out, HALO, MPI_DOUBLE, right, 1, halo_in, HALO, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		truth__leave(&log);

		results[1] = dots();
		mine[0] = results[1];
		mine[1] = rank == 0 && (double)(now_ns() - begin_ns) > seconds * 1e9;
		truth__enter(&log, SEG_DOT);
		MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		truth__leave(&log);

		results[2] = solve();
		memcpy(late_out, unknown, sizeof(late_out));
		truth__enter(&log, SEG_SOLVE);
		MPI_Irecv(late_in, HALO, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[0]);
		truth__leave(&log);
		truth__enter(&log, SEG_POST);
		MPI_Isend(late_out, HALO, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[1]);
		truth__leave(&log);

		results[3] = walk();
		truth__enter(&log, SEG_WALK);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		truth__leave(&log);

		/* every rank has the same data, so a rank receives a copy of what it sent */
		if (iteration == 0)
			memcpy(first, results, sizeof(first));
		if (memcmp(first, results, sizeof(first)) || memcmp(halo_in, halo_out, sizeof(halo_in)) ||
		    memcmp(late_in, late_out, sizeof(late_in)) || fabs(all[0] - size * first[1]) > 1e-9 * all[0] ||
		    setting != 1)
			wrong++;
		relax_id = SEG_RELAX;
		if (all[1] > 0)
			break;
		if (iteration % BCAST_EVERY == BCAST_EVERY - 1) {
			setting = rank == 0 ? 1 : 0;
			truth__enter(&log, SEG_BCAST);
			MPI_Bcast(&setting, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
			truth__leave(&log);
			relax_id = SEG_RELAX_BCAST;
		}
		if (file >= 0 && iteration % io_every == io_every - 1) {
			off_t at = (off_t)(iteration / io_every % BLOCKS) * BLOCK;

			memset(block, (int)('a' + iteration % 26), sizeof(block));
			truth__enter(&log, SEG_PACK);
			if (pwrite(file, block, sizeof(block), at) != (ssize_t)sizeof(block))
				failed = true;
			truth__leave(&log);
			truth__enter(&log, SEG_SYNC);
			if (fsync(file))
				failed = true;
			truth__leave(&log);
			relax_id = SEG_RELAX_IO;
		}
	}
	if (truth__close(&log))
		failed = true;
	if (file >= 0 && close(file))
		failed = true;
	if (failed)
		fprintf(stderr, "rank %d: file IO failed\n", rank);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("{\"program\":\"demo_mpi\",\"ranks\":%d,\"iterations\":%llu,\"ms_per_iteration\":%.3f,"
		       "\"checksum\":%.17g,\"wrong\":%llu}\n",
		       size, (unsigned long long)iteration + 1,
		       (double)(now_ns() - begin_ns) / 1e6 / (double)(iteration + 1),
		       first[0] + first[1] + first[2] + first[3], (unsigned long long)wrong);
	MPI_Finalize();
	return wrong || failed;
}
