// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An OpenMP program: --threads, --regions, --delay seconds after the first region, which starts the
 * team. In each region every thread computes, meets the others at a barrier, and computes again.
 * Prints how often a region's function ran in all threads together, and that number for the second half.
 */
#include <getopt.h>
#include <omp.h>

#include "common.h"

static uint64_t result;
static unsigned long long ran;

static void region(int threads)
{
#pragma omp parallel num_threads(threads) reduction(+ : result)
	{
		uint64_t x = lcg((uint64_t)omp_get_thread_num(), LCG_STEPS_PER_US * 100);

#pragma omp atomic
		ran++;
#pragma omp barrier
		result += lcg(x, LCG_STEPS_PER_US * 100);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"threads", required_argument, NULL, 't'},
						{"regions", required_argument, NULL, 'r'},
						{"delay", required_argument, NULL, 'd'},
						{NULL, 0, NULL, 0}};
	int threads = 4, regions = 100, opt;
	double delay_s = 0;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 't')
			threads = (int)number("--threads", optarg, 1, 64);
		else if (opt == 'r')
			regions = (int)number("--regions", optarg, 1, 1e9);
		else if (opt == 'd')
			delay_s = number("--delay", optarg, 0, 100);
		else
			return 2;
	}
	region(threads);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	wait_for_observer(delay_s);
	for (int i = 0; i < regions; i++) {
		region(threads);
		if (!i)
			usleep(500000); /* time to learn the function's address */
	}
	printf("{\"program\":\"team\",\"threads\":%d,\"regions\":%d,\"ran\":%llu,\"result\":%llu}\n", threads, regions,
	       ran, (unsigned long long)result);
	return 0;
}
