// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A task farm: rank 0 hands out tasks and adds up the results, the others compute whatever task they get, of four
 * sizes that follow each other at random. Rank 0 waits for any of them, and each of them for its next task.
 *
 *   mpirun -n 2 farm [options of loop.h]     a round is a task
 */
#include "loop_mpi.h"

enum { SIZES = 4, TAG_TASK = 1, TAG_RESULT, SEG_BOOK = SIZES + 1, BOOK_US = 150 };

static const double task_us[SIZES] = {1200, 2300, 3600, 5500};

struct task {
	uint64_t number, size; /* size SIZES: there are no more */
};

static struct loop loop;

static uint64_t size_of(uint64_t number)
{
	return lcg(number * 2654435761U + 7, 5) >> 61 & (SIZES - 1);
}

/* The result of a task: the same on each rank. */
static uint64_t result_of(uint64_t number)
{
	return lcg_after(number, (uint64_t)(task_us[size_of(number)] * (double)LCG_STEPS_PER_US));
}

static void hand_out(uint64_t number, int worker, bool over)
{
	struct task task = {number, over ? SIZES : size_of(number)};

	MPI_Send(&task, sizeof(task), MPI_BYTE, worker, TAG_TASK, MPI_COMM_WORLD);
}

/* Rank 0: returns the number of tasks that were done. */
static uint64_t serve(uint64_t *wrong)
{
	uint64_t handed = 0, done = 0, sum = 1, result[2];
	int working = loop.size - 1;
	MPI_Status status;

	for (int worker = 1; worker < loop.size; worker++)
		hand_out(handed++, worker, false);
	while (working) {
		MPI_Recv(result, 2, MPI_UINT64_T, MPI_ANY_SOURCE, TAG_RESULT, MPI_COMM_WORLD, &status);
		truth__leave(&loop.log);
		*wrong += result[1] != result_of(result[0]);
		done++;
		sum = loop__compute(&loop, sum, BOOK_US);
		truth__enter(&loop.log, SEG_BOOK);
		if (loop__over(&loop, handed)) {
			hand_out(0, status.MPI_SOURCE, true);
			working--;
		} else {
			hand_out(handed++, status.MPI_SOURCE, false);
		}
	}
	*wrong += sum != lcg_after(1, done * BOOK_US * LCG_STEPS_PER_US) || done != handed;
	return done;
}

static void work(void)
{
	uint64_t result[2];
	struct task task;

	for (;;) {
		MPI_Recv(&task, sizeof(task), MPI_BYTE, 0, TAG_TASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (task.size >= SIZES)
			return;
		truth__leave(&loop.log);
		result[0] = task.number;
		result[1] = loop__compute(&loop, task.number, task_us[task.size]);
		truth__enter(&loop.log, (uint32_t)task.size + 1);
		MPI_Send(result, 2, MPI_UINT64_T, 0, TAG_RESULT, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	uint64_t done = 0, wrong = 0;

	MPI_Init(&argc, &argv);
	loop__start(&loop, "farm", argc, argv, 1000);
	if (loop.size < 2) {
		fprintf(stderr, "farm: needs two ranks at least\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	truth__name(&loop.log, SEG_BOOK, "results added up");
	for (uint32_t size = 0; size < SIZES; size++)
		truth__name(&loop.log, size + 1, "task");
	loop__first(&loop);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	if (loop.rank)
		work();
	else
		done = serve(&wrong);
	MPI_Bcast(&done, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	return loop__finish(&loop, done, wrong);
}
