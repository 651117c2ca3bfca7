// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many MPI calls a second on every rank, with fixed work between them: the governor must observe them more
 * coarsely before it stops. By default a step is four MPI_Irecv and four MPI_Isend to the neighbours, one
 * MPI_Waitall, and work; --start starts eight persistent requests instead; --sendrecv has one MPI_Sendrecv
 * per step, which can wait and therefore cannot be dropped; --flush has eight MPI_Win_flush_local_all of a window that
 * no other rank accesses, which can wait and never do, and one MPI_Barrier.
 *
 *   mpirun -n 2 busy_calls [--rate 10000] [--seconds 30] [--delay 3] [--start | --sendrecv | --flush] [--log DIR]
 *
 * The work of a step is the number of lcg() iterations that reaches the rate on quiet CPUs (each rank
 * measures the speed of its CPU; the fastest CPU sets the number for all), so a disturbed rank falls behind.
 * Every 256 steps rank 0 sends with an MPI_Bcast whether the time is over. Ranks pin themselves. Rank 0 prints
 * {"ready":true,"pid":P} before the first call, and at the end calls, steps, seconds and a checksum as JSON; the
 * checksum depends on the number of steps and ranks alone.
 */
#include <getopt.h>
#include <mpi.h>

#include "common.h"
#include "truth.h"

#define PAIRS 4
#define WORDS 16	    /* words per message */
#define CHECKED 256	    /* steps between two looks at the clock */
#define CALL_NS 700	    /* time of each call in a step; a guess, since it only sets the rate */
#define MEASURED 2000000ULL /* iterations that measure the speed of the CPU */

enum mode { POSTS, START, SENDRECV, FLUSH };

struct exchange {
	enum mode mode;
	int right, left;
	uint64_t out[PAIRS][WORDS], in[PAIRS][WORDS];
	MPI_Request requests[2 * PAIRS];
	MPI_Win window; /* FLUSH */
};

static void begin(struct exchange *exchange)
{
	void *memory;

	if (exchange->mode == FLUSH) {
		MPI_Win_allocate(sizeof(exchange->in), sizeof(uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
				 &exchange->window);
		MPI_Win_lock_all(0, exchange->window);
	}
	for (int i = 0; exchange->mode == START && i < PAIRS; i++) {
		MPI_Recv_init(exchange->in[i], WORDS, MPI_UINT64_T, exchange->left, i, MPI_COMM_WORLD,
			      &exchange->requests[i]);
		MPI_Send_init(exchange->out[i], WORDS, MPI_UINT64_T, exchange->right, i, MPI_COMM_WORLD,
			      &exchange->requests[PAIRS + i]);
	}
}

static void finish(struct exchange *exchange)
{
	for (int i = 0; exchange->mode == START && i < 2 * PAIRS; i++)
		MPI_Request_free(&exchange->requests[i]);
	if (exchange->mode == FLUSH) {
		MPI_Win_unlock_all(exchange->window);
		MPI_Win_free(&exchange->window);
	}
}

static void swap(struct exchange *exchange)
{
	if (exchange->mode == SENDRECV) {
		MPI_Sendrecv(exchange->out[0], WORDS, MPI_UINT64_T, exchange->right, 0, exchange->in[0], WORDS,
			     MPI_UINT64_T, exchange->left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	if (exchange->mode == FLUSH) {
		for (int i = 0; i < 2 * PAIRS; i++)
			MPI_Win_flush_local_all(exchange->window);
		MPI_Barrier(MPI_COMM_WORLD);
		return;
	}
	for (int i = 0; exchange->mode == START && i < 2 * PAIRS; i++)
		MPI_Start(&exchange->requests[i]);
	for (int i = 0; exchange->mode == POSTS && i < PAIRS; i++)
		MPI_Irecv(exchange->in[i], WORDS, MPI_UINT64_T, exchange->left, i, MPI_COMM_WORLD,
			  &exchange->requests[i]);
	for (int i = 0; exchange->mode == POSTS && i < PAIRS; i++)
		MPI_Isend(exchange->out[i], WORDS, MPI_UINT64_T, exchange->right, i, MPI_COMM_WORLD,
			  &exchange->requests[PAIRS + i]);
	MPI_Waitall(2 * PAIRS, exchange->requests, MPI_STATUSES_IGNORE);
}

static double ns_per_iteration(void)
{
	double least = 1e18, most;
	volatile uint64_t seed = 1; /* prevents computation at compile time */

	for (int i = 0; i < 5; i++) {
		uint64_t begin_ns = now_ns();
		double ns;

		seed = lcg(seed, MEASURED);
		ns = (double)(now_ns() - begin_ns) / MEASURED;
		least = ns < least ? ns : least;
	}
	MPI_Allreduce(&least, &most, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	return most;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"rate", required_argument, NULL, 'r'},
	    {"seconds", required_argument, NULL, 's'},
	    {"delay", required_argument, NULL, 'd'},
	    {"log", required_argument, NULL, 'l'},
	    {"start", no_argument, NULL, 'p'},
	    {"sendrecv", no_argument, NULL, 'w'},
	    {"flush", no_argument, NULL, 'f'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	static struct exchange exchange;
	double rate = 10000, seconds = 30, delay = 0, step_ns;
	uint64_t step = 0, iterations, begin_ns;
	volatile uint64_t sink = 1;
	int opt, rank, size, calls, going = 1;
	const char *directory = NULL;
	struct truth log;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r')
			rate = number("--rate", optarg, 10, 1e6);
		else if (opt == 's')
			seconds = number("--seconds", optarg, 0.1, 1e6);
		else if (opt == 'd')
			delay = number("--delay", optarg, 0, 1e4);
		else if (opt == 'l')
			directory = optarg;
		else if (opt == 'p' || opt == 'w')
			exchange.mode = opt == 'p' ? START : SENDRECV;
		else if (opt == 'f')
			exchange.mode = FLUSH;
		else {
			fprintf(opt == 'h' ? stdout : stderr,
				"usage: mpirun -n N busy_calls [--rate CALLS_PER_SECOND] [--seconds T] [--delay T] "
				"[--start | --sendrecv | --flush] [--log DIR]\n");
			MPI_Finalize();
			return opt == 'h' ? 0 : 2;
		}
	}
	pin_rank(rank);
	exchange.right = (rank + 1) % size;
	exchange.left = (rank + size - 1) % size;
	calls = exchange.mode == SENDRECV ? 1 : 2 * PAIRS + 1;
	step_ns = calls / rate * 1e9;
	truth__open(&log, directory, "truth", rank, (size_t)(1.5 * seconds * 1e9 / step_ns) + CHECKED);
	truth__name(&log, 1, "a step's work");
	iterations = (uint64_t)((step_ns > 2.0 * calls * CALL_NS ? step_ns - calls * CALL_NS : step_ns / 2) /
				ns_per_iteration());
	if (!rank) {
		printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
		fflush(stdout);
	}
	if (delay > 0)
		wait_for_observer(delay);
	MPI_Barrier(MPI_COMM_WORLD);
	begin(&exchange);
	begin_ns = now_ns();
	for (; going; step++) {
		truth__leave(&log);
		sink = lcg(sink, iterations);
		truth__enter(&log, 1);
		/* the data sent does not depend on the measured speed */
		exchange.out[step % PAIRS][0] = step + (uint64_t)rank;
		swap(&exchange);
		if (step % CHECKED == CHECKED - 1) {
			going = (double)(now_ns() - begin_ns) < seconds * 1e9;
			MPI_Bcast(&going, 1, MPI_INT, 0, MPI_COMM_WORLD);
		}
	}
	if (!rank) {
		uint64_t check = 0;

		for (int i = 0; i < PAIRS; i++)
			check = check * LCG_A + exchange.in[i][0];
		printf("{\"program\":\"busy_calls\",\"pid\":%d,\"calls\":%llu,\"steps\":%llu,\"seconds\":%.6f,\"rate\":"
		       "%.1f,"
		       "\"checksum\":%llu}\n",
		       (int)getpid(), (unsigned long long)(step * (uint64_t)calls), (unsigned long long)step,
		       (double)(now_ns() - begin_ns) * 1e-9,
		       (double)(step * (uint64_t)calls) / ((double)(now_ns() - begin_ns) * 1e-9),
		       (unsigned long long)check);
		fflush(stdout);
	}
	finish(&exchange);
	if (truth__close(&log))
		return 1;
	MPI_Finalize();
	return 0;
}
