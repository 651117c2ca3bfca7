// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A fixed number of iterations with a known result, for tests that disturb or kill the observer:
 * results must be right and iterations as fast as before. Each iteration computes 3 ms,
 * exchanges with the neighbour, computes 2 ms and reduces.
 *
 *   mpirun -n 2 iterate --iterations 1000 --log DIR --bind
 *
 * Writes, every half second and at the end, DIR/truth.RANK (segments) and DIR/iterations.RANK (number,
 * start and duration of each iteration; both in the form of truth.h). The expected result is computed
 * by matrix powers, without iterating; the program exits with 1 where its result differs.
 *
 * With --late-share S a rank that gets SIGUSR1 computes S times as much on top, for the same result, until
 * SIGUSR2: a rank that is late because of its own work.
 */
#include <getopt.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>

#include "common.h"
#include "truth.h"

enum { SEG_FIRST = 1, SEG_SECOND, FIRST_US = 3000, SECOND_US = 2000 };

#define FIRST_STEPS (FIRST_US * LCG_STEPS_PER_US)
#define SECOND_STEPS (SECOND_US * LCG_STEPS_PER_US)
#define FLUSH_NS 500000000ULL

static volatile sig_atomic_t late;
static volatile uint64_t sink;

static void on_signal(int signal)
{
	late = signal == SIGUSR1;
}

static void listen_for_lateness(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
}

/* Computes the steps, and where this rank is late late_share times as many on top. */
static uint64_t compute(uint64_t x, uint64_t steps, double late_share)
{
	if (late)
		sink = lcg(sink, (uint64_t)(late_share * (double)steps));
	return lcg(x, steps);
}

/* Acts on the vector (x, sum, 1): x' = a x + c; the sum adds each iteration's last x. */
struct matrix {
	uint64_t m[3][3];
};

static struct matrix multiply(const struct matrix *a, const struct matrix *b)
{
	struct matrix out = {0};
	int i, j, k;

	for (i = 0; i < 3; i++)
		for (j = 0; j < 3; j++)
			for (k = 0; k < 3; k++)
				out.m[i][j] += a->m[i][k] * b->m[k][j];
	return out;
}

static struct matrix power(struct matrix base, uint64_t exponent)
{
	struct matrix out = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

	for (; exponent; exponent >>= 1) {
		if (exponent & 1)
			out = multiply(&out, &base);
		base = multiply(&base, &base);
	}
	return out;
}

static struct matrix steps_at_once(uint64_t steps)
{
	return power((struct matrix){{{LCG_A, 0, LCG_C}, {0, 1, 0}, {0, 0, 1}}}, steps);
}

static uint64_t first_value(int rank)
{
	return 12345 + (uint64_t)rank * 1000003;
}

/* Returns the sum of each iteration's last value over all ranks and iterations. */
static uint64_t expected_sum(int size, uint64_t iterations)
{
	struct matrix step = steps_at_once(FIRST_STEPS + SECOND_STEPS);
	struct matrix add = {{{1, 0, 0}, {1, 1, 0}, {0, 0, 1}}};
	struct matrix iteration, all;
	uint64_t sum = 0;
	int rank;

	iteration = multiply(&add, &step);
	all = power(iteration, iterations);
	for (rank = 0; rank < size; rank++)
		sum += all.m[1][0] * first_value(rank) + all.m[1][2];
	return sum;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"iterations", required_argument, NULL, 'n'},
	    {"log", required_argument, NULL, 'l'},
	    {"bind", no_argument, NULL, 'b'},
	    {"late-share", required_argument, NULL, 's'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	uint64_t iterations = 1000, i, x, other, theirs, all, sum = 0, wrong = 0, begin_ns, start_ns, end_ns, flush_ns;
	int rank, size, left, right, opt, failed;
	/* the neighbour's message, from its previous message */
	struct matrix neighbour = steps_at_once(FIRST_STEPS), whole = steps_at_once(FIRST_STEPS + SECOND_STEPS);
	const char *log_dir = NULL;
	struct truth log, times;
	double late_share = 0;
	bool bind = false;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'n':
			iterations = (uint64_t)number("--iterations", optarg, 1, 1e9);
			break;
		case 'l':
			log_dir = optarg;
			break;
		case 'b':
			bind = true;
			break;
		case 's':
			late_share = number("--late-share", optarg, 0, 100);
			listen_for_lateness();
			break;
		default:
			if (rank == 0)
				fprintf(opt == 'h' ? stdout : stderr, "usage: mpirun -n N iterate [--iterations N] "
								      "[--log DIR] [--bind] [--late-share S]\n");
			MPI_Finalize();
			return opt == 'h' ? 0 : 2;
		}
	}
	if (bind)
		pin_rank(rank);
	truth__open(&log, log_dir, "truth", rank, 20000);
	truth__open(&times, log_dir, "iterations", rank, 10000);
	truth__name(&log, SEG_FIRST, "before Sendrecv");
	truth__name(&log, SEG_SECOND, "before Allreduce");
	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	x = first_value(rank);
	theirs = first_value(left);
	MPI_Barrier(MPI_COMM_WORLD);
	begin_ns = flush_ns = start_ns = now_ns();
	truth__leave(&log);
	for (i = 0; i < iterations; i++) {
		x = compute(x, FIRST_STEPS, late_share);
		truth__enter(&log, SEG_FIRST);
		MPI_Sendrecv(&x, 1, MPI_UINT64_T, right, 1, &other, 1, MPI_UINT64_T, left, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		truth__leave(&log);
		x = compute(x, SECOND_STEPS, late_share);
		wrong += other != neighbour.m[0][0] * theirs + neighbour.m[0][2];
		theirs = whole.m[0][0] * theirs + whole.m[0][2];
		truth__enter(&log, SEG_SECOND);
		MPI_Allreduce(&x, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		truth__leave(&log);
		sum += all;
		end_ns = log.start_ns;
		truth__add(&times, (uint32_t)i, start_ns, end_ns);
		start_ns = end_ns;
		if (end_ns - flush_ns > FLUSH_NS) {
			truth__flush(&log);
			truth__flush(&times);
			flush_ns = start_ns = now_ns();
			truth__leave(&log);
		}
	}
	failed = truth__close(&log) | truth__close(&times);
	if (sum != expected_sum(size, iterations))
		wrong++;
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("{\"program\":\"iterate\",\"ranks\":%d,\"iterations\":%llu,\"ms_per_iteration\":%.4f,"
		       "\"checksum\":\"%016llx\",\"expected\":\"%016llx\",\"ok\":%s}\n",
		       size, (unsigned long long)iterations, (double)(now_ns() - begin_ns) / 1e6 / (double)iterations,
		       (unsigned long long)sum, (unsigned long long)expected_sum(size, iterations),
		       wrong ? "false" : "true");
	MPI_Finalize();
	return wrong || failed;
}
