// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stencil in C++ whose MPI calls lie in templates, methods, lambdas and inlined functions, for tests of names.
 *
 *   mpirun -n 2 stencil --seconds 3 --log DIR [--rounds N] [--slow N]
 *
 * Waits for an observer, then runs N rounds of some 2 ms (600). Rank 1 works six times as much for --slow rounds in
 * the middle (0).
 */
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <getopt.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "common.h"

namespace stencil
{

struct Grid {
	std::vector<double> cells;
	int rank, size;
	Grid(size_t count, int rank, int size) : cells(count, 1.0), rank(rank), size(size)
	{
	}
	int right() const
	{
		return (rank + 1) % size;
	}
	int left() const
	{
		return (rank + size - 1) % size;
	}
	__attribute__((noinline)) void barrier()
	{
		MPI_Barrier(MPI_COMM_WORLD);
	}
};

/* Inlined at two places of one function. */
inline __attribute__((always_inline)) void exchange(Grid &grid, int tag)
{
	MPI_Request requests[2];

	MPI_Irecv(&grid.cells[0], 1, MPI_DOUBLE, grid.left(), tag, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(&grid.cells[1], 1, MPI_DOUBLE, grid.right(), tag, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

template <typename Real, int Order> __attribute__((noinline)) Real relax(Grid &grid, uint64_t steps)
{
	exchange(grid, 1);
	grid.cells[2] = static_cast<Real>(lcg(static_cast<uint64_t>(Order), steps) & 7);
	exchange(grid, 2);
	return static_cast<Real>(grid.cells[2]);
}

template <typename Real> __attribute__((noinline)) Real norm(Real own)
{
	Real all = 0;

	MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

} // namespace stencil

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"seconds", required_argument, nullptr, 's'},
	    {"log", required_argument, nullptr, 'l'},
	    {"rounds", required_argument, nullptr, 'r'},
	    {"slow", required_argument, nullptr, 'w'},
	    {nullptr, 0, nullptr, 0},
	};
	int rank, size, opt, rounds = 600, slow = 0;
	double seconds = 0, sum = 0;
	std::string log;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	while ((opt = getopt_long(argc, argv, "", options, nullptr)) != -1) {
		if (opt == 's')
			seconds = number("--seconds", optarg, 0, 600);
		else if (opt == 'l')
			log = optarg;
		else if (opt == 'r')
			rounds = static_cast<int>(number("--rounds", optarg, 1, 1e6));
		else if (opt == 'w')
			slow = static_cast<int>(number("--slow", optarg, 0, 1e6));
		else
			return 2;
	}
	if (!log.empty()) {
		FILE *file = fopen((log + "/truth." + std::to_string(rank)).c_str(), "w");

		if (!file)
			return 1;
		fprintf(file, "# rank %d pid %d\n", rank, static_cast<int>(getpid()));
		fclose(file);
	}
	wait_for_observer(seconds);

	stencil::Grid grid(16, rank, size);
	auto reduce = [&](double value) {
		double result = 0;

		MPI_Reduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
		return result;
	};

	for (int round = 0; round < rounds; round++) {
		bool more = rank == 1 && round >= rounds / 2 && round < rounds / 2 + slow;

		sum += stencil::relax<double, 4>(grid, LCG_STEPS_PER_US * (more ? 12000 : 2000));
		sum += stencil::norm(sum);
		if (round % 16 == 0)
			grid.barrier();
		if (round % 32 == 0)
			sum += reduce(sum);
	}
	MPI_Finalize();
	return sum < 0;
}
