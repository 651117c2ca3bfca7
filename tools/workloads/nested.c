// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * MPI behind two wrappers, as in libraries of solvers: every phase of a step computes for a time of its
 * own and then calls exchange(), which calls send_receive(), which calls MPI_Sendrecv, or total(), which calls
 * all_reduce(), which calls MPI_Allreduce. By call-site all computations are the same two states; by the
 * caller of the outer wrapper each phase is one. Every so many steps a phase is left by longjmp.
 *
 *   nested [--seconds S] [--log DIR] [--rounds N] [--scale F] [--notes FILE]
 *
 * S: sleep before the first call; F: factor of computation; FILE gets a line each step, through the C library's
 * buffer. Prints a sum that depends on all exchanged data.
 */
/* The marks must stay on their lines. */
/* clang-format off */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

#define WORDS 64
#define LEAVE_EACH 64 /* steps between two longjmps */

static uint64_t out[WORDS], in[WORDS], state = 1, calls;
static int rank, size, leaves;
static double scale = 1;
static jmp_buf place;

static void compute(int units)
{
	state = lcg(state, (uint64_t)(scale * units * 20) * LCG_STEPS_PER_US);
}

__attribute__((noipa)) static void send_receive(int to, int from)
{
	MPI_Sendrecv(out, WORDS, MPI_UINT64_T, to, 1, in, WORDS, MPI_UINT64_T, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* site 1 */
	calls++;
}

__attribute__((noipa)) static void exchange(void)
{
	out[state % WORDS] += state;
	send_receive((rank + 1) % size, (rank + size - 1) % size); /* site 2 */
	state ^= in[0];
	if (leaves)
		longjmp(place, 1);
}

__attribute__((noipa)) static uint64_t all_reduce(uint64_t value)
{
	uint64_t sum;

	MPI_Allreduce(&value, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD); /* site 3 */
	calls++;
	return sum;
}

__attribute__((noipa)) static uint64_t total(uint64_t value)
{
	value = all_reduce(value + in[1]); /* site 4 */
	return value ^ calls;
}

__attribute__((noipa)) static void assemble(void)
{
	compute(10);
	exchange(); /* site 11 */
	compute(14);
	exchange(); /* site 12 */
	calls++;
}

__attribute__((noipa)) static void smooth(void)
{
	compute(19);
	exchange(); /* site 13 */
	compute(27);
	exchange(); /* site 14 */
	calls++;
}

__attribute__((noipa)) static void restrict_grid(void)
{
	compute(37);
	exchange(); /* site 15 */
	compute(50);
	exchange(); /* site 16 */
	calls++;
}

__attribute__((noipa)) static void correct(int step)
{
	compute(68);
	exchange(); /* site 17 */
	compute(90);
	leaves = step % LEAVE_EACH == 0;
	if (!setjmp(place))
		exchange(); /* site 18 */
	leaves = 0;
	state += total(state); /* site 19 */
}

__attribute__((noipa)) static void note(FILE *notes, int step)
{
	fprintf(notes, "step %d: %llu calls\n", step, (unsigned long long)calls);
	fflush(notes); /* site 21 */
	calls++;
}

int main(int argc, char **argv)
{
	FILE *notes = NULL;
	int rounds = 1000;
	const char *log = NULL;
	double seconds = 0;
	char path[512];
	uint64_t sum;
	FILE *file;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = number(argv[i], argv[i + 1], 0, 3600);
		else if (!strcmp(argv[i], "--log"))
			log = argv[i + 1];
		else if (!strcmp(argv[i], "--rounds"))
			rounds = (int)number(argv[i], argv[i + 1], 1, 1e9);
		else if (!strcmp(argv[i], "--scale"))
			scale = number(argv[i], argv[i + 1], 0, 1e6);
		else if (!strcmp(argv[i], "--notes"))
			notes = fopen(argv[i + 1], "w");
	}
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	snprintf(path, sizeof(path), "%s/truth.%d", log ? log : ".", rank);
	file = log ? fopen(path, "w") : NULL;
	if (file) {
		fprintf(file, "# rank %d pid %d\n", rank, (int)getpid());
		fclose(file);
	}
	wait_for_observer(seconds);
	state += (uint64_t)rank;
	for (int step = 1; step <= rounds; step++) {
		assemble();
		smooth();
		restrict_grid();
		correct(step);
		if (notes)
			note(notes, step);
	}
	if (notes)
		fclose(notes);
	MPI_Reduce(&state, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("{\"done\":true,\"rounds\":%d,\"sum\":%llu}\n", rounds, (unsigned long long)sum);
	MPI_Finalize();
	return 0;
}
