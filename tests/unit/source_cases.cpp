// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls in templates, methods, lambdas, inlined and internal functions, for test_source.c. */
#include <cstdio>
#include <vector>

extern "C" __attribute__((noinline)) int mark(int n)
{
	asm volatile("" ::: "memory");
	return n + 1;
}

namespace solver
{

struct Grid {
	std::vector<double> cells;
	explicit Grid(int n) : cells(static_cast<size_t>(mark(n)))
	{
	}
	__attribute__((noinline)) void exchange(int side)
	{
		mark(side);
		mark(side + 1);
	}
	double operator[](int at) const
	{
		return cells[static_cast<size_t>(mark(at) % 2)];
	}
};

inline void halo(Grid &grid)
{
	grid.exchange(1);
	mark(2);
}

template <typename Real, int Order> __attribute__((noinline)) Real relax(Grid &grid, Real by)
{
	halo(grid);
	mark(Order);
	halo(grid);
	return by * static_cast<Real>(grid[3]);
}

inline __attribute__((always_inline)) double outer(Grid &grid)
{
	return relax<double, 2>(grid, 0.5) + grid[1];
}

} // namespace solver

namespace
{

__attribute__((noinline)) int hidden(int n)
{
	return mark(mark(n) + 1);
}

} // namespace

int main(int argc, char **)
{
	solver::Grid grid(argc + 3);
	auto twice = [&](int n) { return mark(n) + mark(n + 1); };

	return solver::outer(grid) + twice(argc) + hidden(argc) < 0;
}
