// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Conjugate gradients as in NPB's CG: several sparse matrices of different sizes and shapes, one after
 * the other, their rows in blocks over the ranks, so that the same three places in the program have many
 * workloads. Logs the true work of each computation (path.h).
 *
 *   mpirun -n 2 cg --rounds 10 --log DIR
 */
#include <math.h>

#include "path.h"

#define ITERATIONS 8
#define MOST 20736 /* unknowns */
#define ROW_MOST 32

enum { SETUP, ROWS, ELEMENTS, VECTOR };

/* A row block of a sparse matrix, compressed by rows. */
struct matrix {
	int n, first, rows;
	int *begin, *column;
	double *value;
};

enum shape { GRID, BAND, RANDOM, WEDGE };

static const struct {
	enum shape shape;
	int n, degree;
} shapes[] = {
    {GRID, 96 * 96, 4},	  {BAND, 2800, 16},
    {RANDOM, 4000, 24},	  {WEDGE, 3200, 24}, /* the lower rows are fuller: ranks have different work */
    {GRID, 144 * 144, 4},
};

#define SYSTEMS (int)(sizeof(shapes) / sizeof(shapes[0]))

/* Fills columns of a row beside the diagonal; returns how many. */
static int columns_of(enum shape shape, int n, int degree, int row, int *columns)
{
	int side = (int)sqrt(n), count = 0;

	switch (shape) {
	case GRID:
		if (row % side)
			columns[count++] = row - 1;
		if (row % side < side - 1)
			columns[count++] = row + 1;
		if (row >= side)
			columns[count++] = row - side;
		if (row < n - side)
			columns[count++] = row + side;
		break;
	case BAND: /* a ring: all rows alike */
		for (int i = 1; i <= degree / 2; i++) {
			columns[count++] = (row + i * i) % n;
			columns[count++] = (row + n - i * i) % n;
		}
		break;
	case RANDOM: /* a fixed number per row, anywhere */
		for (int i = 0; i < degree; i++)
			columns[count++] = (int)(lcg((uint64_t)row * 31 + (uint64_t)i, 2) >> 33) % n;
		break;
	case WEDGE:
		for (int i = 1; i <= (row < n / 2 ? degree / 3 : degree); i++)
			columns[count++] = (row + i) % n;
		break;
	}
	return count;
}

static void build(struct matrix *matrix, int system, int rank, int ranks)
{
	int n = shapes[system].n, columns[ROW_MOST], elements = 0;

	matrix->n = n;
	matrix->rows = n / ranks;
	matrix->first = matrix->rows * rank;
	matrix->begin = touched(sizeof(int) * ((size_t)matrix->rows + 1));
	matrix->column = touched(sizeof(int) * (size_t)matrix->rows * ROW_MOST);
	matrix->value = touched(sizeof(double) * (size_t)matrix->rows * ROW_MOST);
	for (int row = 0; row < matrix->rows; row++) {
		int count = columns_of(shapes[system].shape, n, shapes[system].degree, matrix->first + row, columns);

		matrix->begin[row] = elements;
		matrix->column[elements] = matrix->first + row;
		matrix->value[elements++] = 2 + count;
		for (int i = 0; i < count; i++) {
			matrix->column[elements] = columns[i];
			matrix->value[elements++] = -1;
		}
	}
	matrix->begin[matrix->rows] = elements;
}

static double *direction, *residual, *solution, *product, *whole;
static struct path path;

/* Solves once, in three computations: the product and its norm, the updates and their norm, the new direction. */
static double solve(const struct matrix *matrix)
{
	double rho = 0, sum, all, alpha, beta;

	for (int i = 0; i < matrix->rows; i++) {
		solution[i] = 0;
		residual[i] = direction[i] = 1 + (matrix->first + i) % 7;
		rho += residual[i] * residual[i];
	}
	path__ran(&path, SETUP, (size_t)matrix->rows);
	path__call(&path);
	MPI_Allreduce(MPI_IN_PLACE, &rho, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int iteration = 0; iteration < ITERATIONS; iteration++) {
		path__call(&path);
		MPI_Allgather(direction, matrix->rows, MPI_DOUBLE, whole, matrix->rows, MPI_DOUBLE, MPI_COMM_WORLD);
		sum = 0;
		for (int row = 0; row < matrix->rows; row++) {
			double value = 0;

			for (int i = matrix->begin[row]; i < matrix->begin[row + 1]; i++)
				value += matrix->value[i] * whole[matrix->column[i]];
			product[row] = value;
			sum += value * direction[row];
			path__ran(&path, ELEMENTS, (size_t)(matrix->begin[row + 1] - matrix->begin[row]));
		}
		path__ran(&path, ROWS, (size_t)matrix->rows);
		path__call(&path);
		MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		alpha = rho / all;
		sum = 0;
		for (int i = 0; i < matrix->rows; i++) {
			solution[i] += alpha * direction[i];
			residual[i] -= alpha * product[i];
			sum += residual[i] * residual[i];
		}
		path__ran(&path, VECTOR, (size_t)matrix->rows);
		path__call(&path);
		MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		beta = all / rho;
		rho = all;
		for (int i = 0; i < matrix->rows; i++)
			direction[i] = residual[i] + beta * direction[i];
		path__ran(&path, VECTOR, (size_t)matrix->rows);
	}
	return rho;
}

int main(int argc, char **argv)
{
	struct matrix matrix[SYSTEMS];
	const char *directory;
	int rounds = 10, rank, ranks;
	double rest = 0;

	MPI_Init(&argc, &argv);
	path__options(argc, argv, &rounds, &directory);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < SYSTEMS; i++)
		build(&matrix[i], i, rank, ranks);
	direction = touched(sizeof(double) * MOST);
	residual = touched(sizeof(double) * MOST);
	solution = touched(sizeof(double) * MOST);
	product = touched(sizeof(double) * MOST);
	whole = touched(sizeof(double) * MOST);
	path__open(&path, directory);
	path__call(&path);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < SYSTEMS; i++)
			rest += solve(&matrix[i]);
	path__call(&path);
	MPI_Finalize();
	printf("{\"result\":%g}\n", rest);
	return path__close(&path);
}
