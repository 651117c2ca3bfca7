// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A CPU hog: pins itself to one CPU and spins, so that another task there gets half of it. Logs
 * its own start and end (eventlog.h): the truth of the demo.
 *
 *   hog --cpu N --seconds T [--start-after T] [--share S] [--log FILE]
 *
 * With a share it uses that much of the CPU only, whatever else runs there: in bursts, ten a second.
 * SIGINT and SIGTERM end it early, with a log of what it did.
 */
#include <getopt.h>

#include "../workloads/common.h"
#include "eventlog.h"
#include "stop.h"

#define PERIOD_NS 100000000ULL

static int usage(FILE *out)
{
	fprintf(out, "usage: hog --cpu N --seconds T [--start-after T] [--share S] [--log FILE]\n");
	return out == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"cpu", required_argument, NULL, 'c'},
	    {"seconds", required_argument, NULL, 's'},
	    {"start-after", required_argument, NULL, 'a'},
	    {"share", required_argument, NULL, 'S'},
	    {"log", required_argument, NULL, 'l'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	double seconds = -1, start_after = 0, share = 0;
	volatile uint64_t sink = 1;
	const char *log = NULL;
	struct moment start;
	uint64_t end_ns;
	int opt, cpu = -1;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			cpu = (int)number("--cpu", optarg, 0, 1e5);
			break;
		case 's':
			seconds = number("--seconds", optarg, 0.001, 1e6);
			break;
		case 'a':
			start_after = number("--start-after", optarg, 0, 1e6);
			break;
		case 'S':
			share = number("--share", optarg, 0.001, 0.95);
			break;
		case 'l':
			log = optarg;
			break;
		default:
			return usage(opt == 'h' ? stdout : stderr);
		}
	}
	if (cpu < 0 || seconds < 0)
		return usage(stderr);
	start_later(start_after);
	pin(cpu);
	start = moment_now();
	end_ns = start.monotonic_ns + (uint64_t)(seconds * 1e9);
	for (uint64_t period = start.monotonic_ns; !stop && clock_ns(CLOCK_MONOTONIC) < end_ns; period += PERIOD_NS) {
		uint64_t own_end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(share * PERIOD_NS);

		while (!stop && clock_ns(CLOCK_MONOTONIC) < end_ns &&
		       (share <= 0 || clock_ns(CLOCK_THREAD_CPUTIME_ID) < own_end))
			sink = lcg(sink, 2000);
		if (share > 0 && !stop)
			sleep_until(period + PERIOD_NS < end_ns ? period + PERIOD_NS : end_ns);
	}
	eventlog__write(log, "hog", cpu, start, moment_now());
	return 0;
}
