// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One-sided communication: each rank puts its border into a window of its right neighbour between two fences, adds to a
 * sum of rank 0 under a lock, and takes numbers of a common counter.
 *
 *   mpirun -n 2 one_sided [options of loop.h]
 */
#include "loop_mpi.h"

enum { BORDER = 512, NUMBERS = 4, SEG_WORK = 1, SEG_CHECK, WORK_US = 3200, CHECK_US = 900 };

/* The window of a rank; total, next and stop are used of rank 0 only. */
struct shared {
	uint64_t border[BORDER];
	uint64_t total, next, stop;
};

static struct loop loop;
static struct shared *shared;
static MPI_Win window;

static uint64_t word(int rank, uint64_t round, int i)
{
	return round * 1000003 + (uint64_t)(rank * 4099 + i);
}

static void put_border(const struct ring *ring, uint64_t round)
{
	static uint64_t out[BORDER];

	for (int i = 0; i < BORDER; i++)
		out[i] = word(loop.rank, round, i);
	MPI_Put(out, BORDER, MPI_UINT64_T, ring->right, 0, BORDER, MPI_UINT64_T, window);
}

static void add_to(int rank, size_t at, uint64_t number)
{
	MPI_Accumulate(&number, 1, MPI_UINT64_T, rank, (MPI_Aint)(at / sizeof(uint64_t)), 1, MPI_UINT64_T, MPI_SUM,
		       window);
}

/* Takes numbers of the counter of rank 0; no two calls of any rank have the same one. Returns their sum. */
static uint64_t take_numbers(void)
{
	uint64_t one = 1, number, sum = 0;

	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	for (int i = 0; i < NUMBERS; i++) {
		MPI_Fetch_and_op(&one, &number, MPI_UINT64_T, 0, offsetof(struct shared, next) / sizeof(uint64_t),
				 MPI_SUM, window);
		MPI_Win_flush(0, window);
		sum += number;
	}
	MPI_Win_unlock(0, window);
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t round, wrong = 0, value = 31, numbers = 0, all;
	struct ring ring;
	bool over;

	MPI_Init(&argc, &argv);
	ring = loop__start(&loop, "one_sided", argc, argv, 800);
	MPI_Win_allocate(sizeof(*shared), sizeof(uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
	memset(shared, 0, sizeof(*shared));
	truth__name(&loop.log, SEG_WORK, "work before the fence");
	truth__name(&loop.log, SEG_CHECK, "check of the border");
	loop__first(&loop);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	for (round = 0, over = false; !over; round++) {
		value = loop__compute(&loop, value, WORK_US);
		truth__enter(&loop.log, SEG_WORK);
		MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
		put_border(&ring, round);
		add_to(0, offsetof(struct shared, total), 1);
		if (!loop.rank && loop__over(&loop, round + 1))
			for (int rank = 0; rank < loop.size; rank++)
				add_to(rank, offsetof(struct shared, stop), 1);
		MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
		truth__leave(&loop.log);
		over = shared->stop;
		for (int i = 0; i < BORDER; i++)
			wrong += shared->border[i] != word(ring.left, round, i);
		value = loop__compute(&loop, value, CHECK_US);
		truth__enter(&loop.log, SEG_CHECK);
		numbers += take_numbers();
		MPI_Barrier(MPI_COMM_WORLD);
		truth__leave(&loop.log);
	}
	wrong += !loop.rank && shared->total != round * (uint64_t)loop.size;
	MPI_Allreduce(&numbers, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	numbers = round * NUMBERS * (uint64_t)loop.size;
	wrong += all != numbers * (numbers - 1) / 2;
	wrong += value != lcg_after(31, round * LCG_STEPS_PER_US * (WORK_US + CHECK_US));
	MPI_Win_free(&window);
	return loop__finish(&loop, round, wrong);
}
