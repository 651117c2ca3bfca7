// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A team of 8 threads that share two CPUs without disturbing each other: the last thread, the victim,
 * computes alone on CPU 0, the others a little each, one after the other, on CPU 1, and all of them
 * meet. Then the team rests. The same source for pthreads and, compiled for it, OpenMP: there each
 * round is a parallel region, at whose end the threads meet.
 *
 *   crew [--threads N] [--seconds T] [--delay T] [--log DIR] [--vary F]
 *
 * --vary F makes each piece of work longer, at random, by up to F times its least duration.
 * Each thread logs its own work (truth.h, DIR/truth.THREAD). Prints pid and, in order, tids.
 */
#include <getopt.h>
#ifdef _OPENMP
#include <omp.h>
#else
#include <pthread.h>
#endif
#include <stdbool.h>
#include <sys/syscall.h>

#include "common.h"
#include "truth.h"

#define THREADS_MAX 64
#define VICTIM_US 24000
#define OTHER_US 1500
#define STAGGER_US 3000
#define REST_US 30000

static struct truth logs[THREADS_MAX];
static pid_t tids[THREADS_MAX];
static uint64_t results[THREADS_MAX];
static const char *directory;
static double seconds = 10, vary;
static int count = 8, rounds, done;
static uint64_t end_ns;

static void settle(int me)
{
	pin(me == count - 1 ? 0 : 1);
	tids[me] = (pid_t)syscall(SYS_gettid);
	truth__open(&logs[me], directory, "truth", me, (size_t)rounds);
}

/* Does the same work with any compiler: none may compute several steps at once. */
static uint64_t steps(uint64_t x, uint64_t n)
{
	while (n--) {
		x = lcg(x, 1);
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* Does a thread's work: the threads other than the victim run one by one, in the same order in each round. */
static void work(int me)
{
	bool victim = me == count - 1;
	double us = victim ? VICTIM_US : OTHER_US;

	truth__leave(&logs[me]);
	if (!victim)
		usleep((useconds_t)(me * STAGGER_US + 100));
	/* the high bits of a result are as good as random */
	us *= 1 + vary * (double)(results[me] >> 11) / 9007199254740992.0;
	results[me] = steps(results[me], (uint64_t)(LCG_STEPS_PER_US * us));
	truth__enter(&logs[me], 1);
}

static void start(void)
{
	end_ns = now_ns() + (uint64_t)(seconds * 1e9);
}

static bool is_over(void)
{
	return done++ == rounds || now_ns() > end_ns;
}

static void ready(void)
{
	printf("{\"ready\":true,\"pid\":%d,\"tids\":[", (int)getpid());
	for (int i = 0; i < count; i++)
		printf("%s%d", i ? "," : "", (int)tids[i]);
	printf("]}\n");
	fflush(stdout);
}

#ifdef _OPENMP
static void team(double delay_s)
{
#pragma omp parallel num_threads(count)
	settle(omp_get_thread_num());
	ready();
	wait_for_observer(delay_s);
	start();
	while (!is_over()) {
#pragma omp parallel num_threads(count)
		work(omp_get_thread_num());
		usleep(REST_US);
	}
}
#else
static pthread_barrier_t barrier;
static bool over;
static double observer_s;

static void *member(void *argument)
{
	int me = (int)(intptr_t)argument;

	settle(me);
	pthread_barrier_wait(&barrier);
	if (!me) {
		ready();
		wait_for_observer(observer_s);
		start();
	}
	while (pthread_barrier_wait(&barrier), !over) {
		work(me);
		pthread_barrier_wait(&barrier);
		if (!me) {
			usleep(REST_US);
			over = is_over();
		}
	}
	return NULL;
}

static void team(double delay_s)
{
	pthread_t threads[THREADS_MAX];

	observer_s = delay_s;
	pthread_barrier_init(&barrier, NULL, (unsigned int)count);
	for (int i = 1; i < count; i++)
		if (pthread_create(&threads[i], NULL, member, (void *)(intptr_t)i))
			exit(1);
	member(NULL);
	for (int i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
}
#endif

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"threads", required_argument, NULL, 't'}, {"seconds", required_argument, NULL, 's'},
	    {"delay", required_argument, NULL, 'd'},   {"log", required_argument, NULL, 'l'},
	    {"vary", required_argument, NULL, 'v'},    {NULL, 0, NULL, 0}};
	double delay_s = 0;
	uint64_t sum = 0;
	int opt, failed = 0;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 't')
			count = (int)number("--threads", optarg, 2, THREADS_MAX);
		else if (opt == 's')
			seconds = number("--seconds", optarg, 0.1, 1e6);
		else if (opt == 'd')
			delay_s = number("--delay", optarg, 0, 100);
		else if (opt == 'l')
			directory = optarg;
		else if (opt == 'v')
			vary = number("--vary", optarg, 0, 10);
		else
			return 2;
	}
	rounds = (int)(seconds * 1e6 / REST_US) + 1;
	team(delay_s);
	for (int i = 0; i < count; i++) {
		failed |= truth__close(&logs[i]);
		sum += results[i];
	}
	printf("{\"program\":\"crew\",\"threads\":%d,\"rounds\":%d,\"result\":%llu}\n", count, done - 1,
	       (unsigned long long)sum);
	return failed ? 1 : 0;
}
