// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that calls MPI through two own layers, as is common: phases of different work call exchange() and
 * total(), which call comm_exchange() and comm_reduce(), and only these call MPI. By the call-sites in the inner layer
 * all phases look alike. Build with -O2 and without frame pointers.
 *
 *   mpirun -n 2 wrapped_twice [options of loop.h]
 */
#include "loop_mpi.h"

#define LAYER __attribute__((noinline, noipa)) static

enum { FIELD = 128, SEG_ASSEMBLE = 1, SEG_SWEEP, SEG_CORRECT, SEG_NORM, SEG_DECIDE };

static struct loop loop;
static struct ring ring;

LAYER int comm_exchange(const double *out, double *in, int count)
{
	int received;
	MPI_Status status;

	MPI_Sendrecv(out, count, MPI_DOUBLE, ring.right, 5, in, count, MPI_DOUBLE, ring.left, 5, MPI_COMM_WORLD,
		     &status);
	truth__leave(&loop.log);
	MPI_Get_count(&status, MPI_DOUBLE, &received);
	return received;
}

LAYER double comm_reduce(double value)
{
	double all = 0;

	MPI_Allreduce(&value, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	truth__leave(&loop.log);
	return all;
}

/* Sends a field to the right; returns whether the data from the left is correct. */
LAYER bool exchange(uint64_t round, int phase)
{
	double out[FIELD], in[FIELD] = {0};
	bool good;

	for (int i = 0; i < FIELD; i++)
		out[i] = (double)(round % 1000) + phase * 0.25 + i + loop.rank * 5000;
	good = comm_exchange(out, in, FIELD) == FIELD;
	for (int i = 0; i < FIELD; i++)
		good = good && in[i] == out[i] + (ring.left - loop.rank) * 5000;
	return good;
}

LAYER double total(double value)
{
	double sum = comm_reduce(value);

	return sum / loop.size;
}

static uint64_t value = 99;

static void work(double us, uint32_t segment)
{
	value = loop__compute(&loop, value, us);
	truth__enter(&loop.log, segment);
}

LAYER bool assemble(uint64_t round)
{
	work(3600, SEG_ASSEMBLE);
	return exchange(round, 1);
}

LAYER bool sweep(uint64_t round)
{
	work(900, SEG_SWEEP);
	return exchange(round, 2);
}

LAYER bool correct(uint64_t round)
{
	work(1700, SEG_CORRECT);
	return exchange(round, 3);
}

LAYER bool norm(void)
{
	work(500, SEG_NORM);
	return total((double)(value & 0xffff)) == (double)(value & 0xffff);
}

int main(int argc, char **argv)
{
	uint64_t round, wrong = 0;
	bool over;

	MPI_Init(&argc, &argv);
	ring = loop__start(&loop, "wrapped_twice", argc, argv, 2000);
	truth__name(&loop.log, SEG_ASSEMBLE, "assemble");
	truth__name(&loop.log, SEG_SWEEP, "sweep");
	truth__name(&loop.log, SEG_CORRECT, "correct");
	truth__name(&loop.log, SEG_NORM, "norm");
	truth__name(&loop.log, SEG_DECIDE, "decide");
	loop__first(&loop);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	for (round = 0, over = false; !over; round++) {
		wrong += !assemble(round);
		for (int i = 0; i < 3; i++)
			wrong += !sweep(round);
		wrong += !correct(round);
		wrong += !norm();
		work(50, SEG_DECIDE);
		over = total(loop.rank == 0 && loop__over(&loop, round + 1)) > 0;
	}
	return loop__finish(&loop, round, wrong);
}
