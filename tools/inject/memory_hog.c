// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A memory hog: pins itself to one CPU and writes the cache lines of a file that another program uses
 * (lines.h), one after the other, so that its core has to fetch them again each time. It takes no CPU
 * time from tasks on other CPUs. Logs its own start and end (eventlog.h).
 *
 *   memory_hog --cpu N --lines FILE --seconds T [--log FILE]
 */
#include <getopt.h>

#include "../workloads/common.h"
#include "../workloads/lines.h"
#include "eventlog.h"

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"cpu", required_argument, NULL, 'c'},
	    {"seconds", required_argument, NULL, 's'},
	    {"lines", required_argument, NULL, 'n'},
	    {"log", required_argument, NULL, 'l'},
	    {NULL, 0, NULL, 0},
	};
	const char *log = NULL, *path = NULL;
	struct moment start;
	struct line *lines;
	double seconds = -1;
	uint64_t end_ns;
	int opt, cpu = -1;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'c')
			cpu = (int)number("--cpu", optarg, 0, 1e5);
		else if (opt == 's')
			seconds = number("--seconds", optarg, 0.001, 1e6);
		else if (opt == 'n')
			path = optarg;
		else if (opt == 'l')
			log = optarg;
		else
			return 2;
	}
	if (cpu < 0 || seconds < 0 || !path) {
		fprintf(stderr, "usage: memory_hog --cpu N --lines FILE --seconds T [--log FILE]\n");
		return 2;
	}
	pin(cpu);
	lines = map_lines(path, 0);
	start = moment_now();
	end_ns = start.monotonic_ns + (uint64_t)(seconds * 1e9);
	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		for (int i = 0; i < LINES; i++)
			lines[i].written++;
	}
	eventlog__write(log, "memory_hog", cpu, start, moment_now());
	return 0;
}
