// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random pairs of normal deviates by Marsaglia's polar method, as in NPB's EP: a loop that goes on until
 * a number of pairs is accepted, in batches of several sizes, and their statistics summed over the ranks.
 * The number of draws differs from batch to batch by fractions of a percent, which is no intended work:
 * the true work of a computation (path.h) is the number of accepted pairs.
 *
 *   mpirun -n 2 ep --rounds 12 --log DIR
 */
#include <math.h>

#include "path.h"

enum { ACCEPTED };

static const int batches[] = {20000, 26000, 34000, 44000};

#define BATCHES (int)(sizeof(batches) / sizeof(batches[0]))
#define RINGS 10

static double uniform(uint64_t *state)
{
	*state = lcg(*state, 1);
	return (double)(*state >> 11) * 0x1p-52 - 1;
}

static void batch(int wanted, uint64_t *state, double *rings)
{
	for (int accepted = 0; accepted < wanted;) {
		double x = uniform(state), y = uniform(state), t = x * x + y * y, factor;
		int ring;

		if (t > 1 || t == 0)
			continue;
		factor = sqrt(-2 * log(t) / t);
		ring = (int)fmax(fabs(x * factor), fabs(y * factor));
		rings[ring < RINGS ? ring : RINGS - 1]++;
		accepted++;
	}
}

int main(int argc, char **argv)
{
	double rings[RINGS] = {0}, all[RINGS] = {0};
	struct path path;
	const char *directory;
	int rounds = 12;
	uint64_t state;

	MPI_Init(&argc, &argv);
	path__options(argc, argv, &rounds, &directory);
	path__open(&path, directory);
	state = 271828183 + 314159265 * (uint64_t)path.rank;
	path__call(&path);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < BATCHES; i++) {
			batch(batches[i], &state, rings);
			path__ran(&path, ACCEPTED, (size_t)batches[i]);
			path__call(&path);
			MPI_Allreduce(rings, all, RINGS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		}
	path__call(&path);
	MPI_Finalize();
	printf("{\"result\":%.0f}\n", all[0]);
	return path__close(&path);
}
