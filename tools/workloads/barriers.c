// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads that compute and meet at a pthread barrier: --threads, --rounds, --delay seconds before the
 * first round. Prints how often a thread entered the barrier.
 */
#include <getopt.h>
#include <pthread.h>

#include "common.h"

static pthread_barrier_t barrier;
static int rounds = 100;
static double delay_s;

static void *work(void *argument)
{
	uint64_t x = (uint64_t)(uintptr_t)argument;

	wait_for_observer(delay_s);
	for (int i = 0; i < rounds; i++) {
		x = lcg(x, LCG_STEPS_PER_US * 100);
		pthread_barrier_wait(&barrier);
	}
	return (void *)(uintptr_t)x;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"threads", required_argument, NULL, 't'},
						{"rounds", required_argument, NULL, 'r'},
						{"delay", required_argument, NULL, 'd'},
						{NULL, 0, NULL, 0}};
	int count = 8, opt;
	pthread_t threads[64];

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 't')
			count = (int)number("--threads", optarg, 1, 64);
		else if (opt == 'r')
			rounds = (int)number("--rounds", optarg, 1, 1e9);
		else if (opt == 'd')
			delay_s = number("--delay", optarg, 0, 100);
		else
			return 2;
	}
	pthread_barrier_init(&barrier, NULL, (unsigned int)count);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)))
			return 1;
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("{\"program\":\"barriers\",\"threads\":%d,\"rounds\":%d}\n", count, rounds);
	return 0;
}
