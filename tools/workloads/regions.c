// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An OpenMP program of many small parallel regions: 20 outlined functions, each called for some 20 us at a time,
 * so that two threads enter some 70,000 regions a second, and every hundredth round two large ones of about 1 ms.
 * --rounds of 18 small regions each, or --seconds; --elements of the small loops; --delay before the first round.
 * Prints the sum of all results, which depends on the options alone.
 */
#include <getopt.h>
#include <omp.h>

#include "common.h"
#include "truth.h"

#define ELEMENTS_MAX 65536
#define LARGE_EVERY 100
#define LARGE_PASSES 60

static double a[ELEMENTS_MAX], b[ELEMENTS_MAX], c[ELEMENTS_MAX];
static int elements = 2000;
static unsigned long long regions;

/* Each is a function of its own to the compiler, with arrays in another order and another constant. */
#define SMALL(number, to, one, other)                                                                                  \
	static void small_##number(void)                                                                               \
	{                                                                                                              \
		_Pragma("omp parallel for") for (int i = 0; i < elements; i++) to[i] =                                 \
		    0.5 * one[i] + 0.25 * other[i] + 0.0##number;                                                      \
	}

#define LARGE(number, to, from)                                                                                        \
	static void large_##number(void)                                                                               \
	{                                                                                                              \
		_Pragma("omp parallel") for (int pass = 0; pass < LARGE_PASSES; pass++)                                \
		{                                                                                                      \
			_Pragma("omp for nowait schedule(static)") for (int i = 0; i < elements; i++) to[i] =          \
			    0.75 * to[i] + 0.125 * from[i] + 0.0##number;                                              \
		}                                                                                                      \
	}

SMALL(1, a, b, c)
SMALL(2, b, a, c)
SMALL(3, c, a, b)
SMALL(4, a, c, b)
SMALL(5, b, c, a)
SMALL(6, c, b, a)
SMALL(7, a, b, b)
SMALL(8, b, c, c)
SMALL(9, c, a, a)
SMALL(10, a, a, c)
SMALL(11, b, b, a)
SMALL(12, c, c, b)
SMALL(13, a, c, c)
SMALL(14, b, a, a)
SMALL(15, c, b, b)
SMALL(16, a, a, b)
SMALL(17, b, b, c)
SMALL(18, c, c, a)
LARGE(1, a, b)
LARGE(2, b, c)

static void (*const smalls[])(void) = {small_1,	 small_2,  small_3,  small_4,  small_5,	 small_6,
				       small_7,	 small_8,  small_9,  small_10, small_11, small_12,
				       small_13, small_14, small_15, small_16, small_17, small_18};

static void run_round(long long number)
{
	for (size_t i = 0; i < sizeof(smalls) / sizeof(smalls[0]); i++)
		smalls[i]();
	regions += sizeof(smalls) / sizeof(smalls[0]);
	if (number % LARGE_EVERY)
		return;
	large_1();
	large_2();
	regions += 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"rounds", required_argument, NULL, 'r'},
						{"seconds", required_argument, NULL, 's'},
						{"elements", required_argument, NULL, 'e'},
						{"delay", required_argument, NULL, 'd'},
						{NULL, 0, NULL, 0}};
	double delay_s = 0, seconds = 0, sum = 0;
	long long rounds = 20000, done = 0;
	uint64_t begin, end;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r')
			rounds = (long long)number("--rounds", optarg, 1, 1e12);
		else if (opt == 's')
			seconds = number("--seconds", optarg, 0.1, 1e6);
		else if (opt == 'e')
			elements = (int)number("--elements", optarg, 2, ELEMENTS_MAX);
		else if (opt == 'd')
			delay_s = number("--delay", optarg, 0, 100);
		else
			return 2;
	}
	for (int i = 0; i < ELEMENTS_MAX; i++)
		a[i] = b[i] = c[i] = i % 7;
	run_round(1);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	wait_for_observer(delay_s);
	begin = now_ns();
	end = seconds > 0 ? begin + (uint64_t)(seconds * 1e9) : UINT64_MAX;
	for (; (seconds > 0 || done < rounds) && now_ns() < end; done++)
		run_round(done);
	for (int i = 0; i < elements; i++)
		sum += a[i] + b[i] + c[i];
	printf("{\"program\":\"regions\",\"threads\":%d,\"rounds\":%lld,\"regions_per_s\":%.0f,\"result\":%.17g}\n",
	       omp_get_max_threads(), done, (double)regions / ((double)(now_ns() - begin) * 1e-9), sum);
	return 0;
}
