// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * OpenMP with hot small regions: in each round a hundred regions of some 12 us, of two kinds, then one of 2 ms. A team
 * of two enters some 60,000 regions a second. With --late-share thread 1 is late.
 *
 *   omp_small [options of loop.h]        prints {"ready":true,"pid":P,"tids":[..]} first
 *
 * The first thread writes the truth log: from before the first region to the end of the last region of a kind.
 */
#include <omp.h>
#include <sys/syscall.h>

#include "loop.h"

enum { THREADS_MAX = 64, SMALL = 50, SEG_SMALL = 1, SEG_LARGE, SMALL_US = 12, LARGE_US = 2000 };

static struct loop loop;
static uint64_t part[THREADS_MAX][8]; /* one cache line each */

static uint64_t work(int thread, uint64_t x, double us)
{
	/* the signal makes one thread late */
	return thread == 1 ? loop__compute(&loop, x, us) : lcg(x, (uint64_t)(us * (double)LCG_STEPS_PER_US));
}

__attribute__((noinline)) static void add_up(uint64_t seed)
{
#pragma omp parallel
	part[omp_get_thread_num()][0] += work(omp_get_thread_num(), seed, SMALL_US);
}

__attribute__((noinline)) static void mix(uint64_t seed)
{
#pragma omp parallel
	part[omp_get_thread_num()][0] ^= work(omp_get_thread_num(), seed + 1, SMALL_US);
}

__attribute__((noinline)) static void solve(uint64_t seed)
{
#pragma omp parallel
	part[omp_get_thread_num()][0] += work(omp_get_thread_num(), seed + 2, LARGE_US);
}

static uint64_t one_round(int threads)
{
	uint64_t sum = 0;

	memset(part, 0, sizeof(part));
	truth__leave(&loop.log);
	for (uint64_t i = 0; i < SMALL; i++) {
		add_up(i);
		mix(i);
	}
	truth__enter(&loop.log, SEG_SMALL);
	truth__leave(&loop.log);
	solve(7);
	truth__enter(&loop.log, SEG_LARGE);
	for (int i = 0; i < threads; i++)
		sum += part[i][0];
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t round, wrong = 0, expected;
	int threads = omp_get_max_threads();
	pid_t tids[THREADS_MAX];

	if (threads > THREADS_MAX)
		omp_set_num_threads(threads = THREADS_MAX);
	loop__options(&loop, "omp_small", argc, argv);
	loop.bind = false; /* OMP_PROC_BIND pins the threads */
	loop__open(&loop, 800);
	truth__name(&loop.log, SEG_SMALL, "small regions");
	truth__name(&loop.log, SEG_LARGE, "large region");
#pragma omp parallel
	tids[omp_get_thread_num()] = (pid_t)syscall(SYS_gettid);
	printf("{\"ready\":true,\"pid\":%d,\"tids\":[", (int)getpid());
	for (int i = 0; i < threads; i++)
		printf("%s%d", i ? "," : "", (int)tids[i]);
	printf("]}\n");
	fflush(stdout);
#pragma omp parallel
	loop__first(&loop);
	loop__begin(&loop);
	expected = one_round(threads);
	for (round = 1; !loop__over(&loop, round); round++)
		wrong += one_round(threads) != expected;
	return loop__end(&loop, round, wrong, loop__spent_s(&loop));
}
