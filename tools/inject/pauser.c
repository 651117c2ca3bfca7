// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a process late: stops it for a part of each period (SIGSTOP, SIGCONT), so that it takes no CPU and the
 * others of its job wait for it. Logs its own start and end (eventlog.h).
 *
 *   pauser --pid P --seconds T [--start-after T] --pause-ms N --period-ms N [--log FILE]
 *
 * SIGINT and SIGTERM end it early, with a log of what it did. The process runs on in any case.
 */
#include <getopt.h>
#include <signal.h>

#include "../workloads/common.h"
#include "eventlog.h"
#include "stop.h"

static int usage(FILE *out)
{
	fprintf(out, "usage: pauser --pid P --seconds T [--start-after T] --pause-ms N --period-ms N [--log FILE]\n");
	return out == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"pid", required_argument, NULL, 'p'},
	    {"seconds", required_argument, NULL, 's'},
	    {"start-after", required_argument, NULL, 'a'},
	    {"pause-ms", required_argument, NULL, 'm'},
	    {"period-ms", required_argument, NULL, 'P'},
	    {"log", required_argument, NULL, 'l'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	double seconds = -1, start_after = 0, pause_ms = -1, period_ms = -1;
	const char *log = NULL;
	struct moment start;
	uint64_t end_ns;
	pid_t pid = -1;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'p':
			pid = (pid_t)number("--pid", optarg, 2, 1e9);
			break;
		case 's':
			seconds = number("--seconds", optarg, 0.001, 1e6);
			break;
		case 'a':
			start_after = number("--start-after", optarg, 0, 1e6);
			break;
		case 'm':
			pause_ms = number("--pause-ms", optarg, 0.1, 1e6);
			break;
		case 'P':
			period_ms = number("--period-ms", optarg, 0.1, 1e6);
			break;
		case 'l':
			log = optarg;
			break;
		default:
			return usage(opt == 'h' ? stdout : stderr);
		}
	}
	if (pid < 0 || seconds < 0 || pause_ms < 0 || period_ms <= pause_ms)
		return usage(stderr);
	start_later(start_after);
	start = moment_now();
	end_ns = start.monotonic_ns + (uint64_t)(seconds * 1e9);
	for (uint64_t at = start.monotonic_ns; !stop && at < end_ns; at += (uint64_t)(period_ms * 1e6)) {
		uint64_t until = at + (uint64_t)(pause_ms * 1e6);

		sleep_until(at);
		if (stop || kill(pid, SIGSTOP))
			break;
		sleep_until(until < end_ns ? until : end_ns);
		kill(pid, SIGCONT);
	}
	if (!stop)
		sleep_until(end_ns);
	eventlog__write(log, "pauser", -1, start, moment_now());
	return 0;
}
