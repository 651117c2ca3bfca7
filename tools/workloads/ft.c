// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A three-dimensional Fourier transform as in NPB's FT: grids of different line lengths, one after
 * the other, in slabs over the ranks; transforms along two directions, a transposition, and along the
 * third. Logs the true work of each computation (path.h).
 *
 *   mpirun -n 2 ft --rounds 5 --log DIR
 */
#include <complex.h>
#include <math.h>

#include "path.h"

#define ITERATIONS 4
#define LINE 256 /* longest line */
#define POINTS 65536

enum { POINT, SWAP, BUTTERFLY, STAGE, MOVE, SUMMED };

static const struct {
	int x, y, z;
} grids[] = {{64, 32, 16}, {32, 32, 64}, {256, 16, 8}, {16, 16, 32}};

#define GRIDS (int)(sizeof(grids) / sizeof(grids[0]))

static double complex *field, *packed, *received, line[LINE], root[LINE / 2];
static struct path path;

/* Transforms a copied line in place, radix 2. */
static void transform(int n)
{
	for (int i = 1, j = 0; i < n; i++) {
		int bit = n >> 1;

		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			double complex swap = line[i];

			line[i] = line[j];
			line[j] = swap;
			path__ran(&path, SWAP, 1);
		}
	}
	for (int half = 1; half < n; half *= 2) {
		int step = LINE / 2 / half;

		for (int at = 0; at < n; at += 2 * half)
			for (int i = 0; i < half; i++) {
				double complex other = line[at + half + i] * root[i * step];

				line[at + half + i] = line[at + i] - other;
				line[at + i] += other;
			}
		path__ran(&path, BUTTERFLY, (size_t)n / 2);
		path__ran(&path, STAGE, 1);
	}
}

/* Transforms all lines that begin at i * apart; their points lie stride apart. */
static void transform_lines(double complex *points, int lines, int apart, int n, int stride)
{
	for (int i = 0; i < lines; i++) {
		double complex *from = points + i * apart;

		for (int k = 0; k < n; k++)
			line[k] = from[k * stride];
		transform(n);
		for (int k = 0; k < n; k++)
			from[k * stride] = line[k];
		path__ran(&path, MOVE, (size_t)n);
	}
}

/* Does one step on slabs of z: field[z][y][x] becomes received[x][y][z] on slabs of x. */
static double step(int grid, int ranks)
{
	int x = grids[grid].x, y = grids[grid].y, z = grids[grid].z, slab = z / ranks, part = x / ranks;
	size_t points = (size_t)slab * (size_t)(x * y);
	double sum = 0, all;

	for (size_t i = 0; i < points; i++)
		field[i] *= root[i % (LINE / 2)];
	path__ran(&path, POINT, points);
	for (int plane = 0; plane < slab; plane++) {
		transform_lines(field + plane * x * y, y, x, x, 1);
		transform_lines(field + plane * x * y, x, 1, y, x);
	}
	for (int to = 0, at = 0; to < ranks; to++)
		for (int plane = 0; plane < slab; plane++)
			for (int row = 0; row < y; row++, at += part)
				memcpy(packed + at, field + (plane * y + row) * x + to * part,
				       sizeof(*packed) * (size_t)part);
	path__ran(&path, MOVE, points);
	path__call(&path);
	MPI_Alltoall(packed, (int)points / ranks, MPI_C_DOUBLE_COMPLEX, received, (int)points / ranks,
		     MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
	/* received[z][y][part of x]: lines along z lie a plane apart */
	transform_lines(received, part * y, 1, z, part * y);
	for (size_t i = 0; i < points; i += 3)
		sum += creal(received[i]) / z;
	path__ran(&path, SUMMED, points / 3);
	path__call(&path);
	MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

static void fill(void)
{
	uint64_t random = 314159265;

	for (int i = 0; i < POINTS; i++) {
		double real = (double)((random = lcg(random, 1)) >> 40) * 1e-7;

		field[i] = real + I * (double)((random = lcg(random, 1)) >> 40) * 1e-7;
	}
	path__ran(&path, POINT, POINTS);
}

int main(int argc, char **argv)
{
	const char *directory;
	int rounds = 5, ranks;
	double sum = 0;

	MPI_Init(&argc, &argv);
	path__options(argc, argv, &rounds, &directory);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	field = touched(sizeof(*field) * POINTS);
	packed = touched(sizeof(*packed) * POINTS);
	received = touched(sizeof(*received) * POINTS);
	for (int i = 0; i < LINE / 2; i++)
		root[i] = cexp(-2 * M_PI * I * i / LINE);
	path__open(&path, directory);
	path__call(&path);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int round = 0; round < rounds; round++) {
		fill();
		for (int i = 0; i < GRIDS * ITERATIONS; i++)
			sum += step(i / ITERATIONS, ranks);
	}
	path__call(&path);
	MPI_Finalize();
	printf("{\"result\":%g}\n", sum);
	return path__close(&path);
}
