// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The slow peer behind a FIFO (the stand-in for a file server that hangs): keeps the FIFO full, so that
 * readers never wait; after some seconds it takes back what is in the FIFO and writes nothing for the
 * length of the stall, then goes on. Logs start and end of the stall (eventlog.h).
 *
 *   fifo_writer --fifo PATH --seconds T --stall-after T --stall S [--log FILE]
 *
 * Creates the FIFO where it is missing. --stall-after counts from the first reader on. Records are 64
 * bytes; only whole ones are ever in the FIFO.
 */
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "../workloads/common.h"
#include "eventlog.h"
#include "stop.h"

enum { CHUNK = 4096 };

static void fail(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(1);
}

/* Keeps the FIFO full until a time or a signal; pages become free only every 64 records. */
static void feed(const char *path, int file, uint64_t until_ns)
{
	char chunk[CHUNK];
	uint64_t now;

	memset(chunk, 'v', sizeof(chunk));
	while (!stop && (now = clock_ns(CLOCK_MONOTONIC)) < until_ns) {
		struct pollfd poller = {file, POLLOUT, 0};
		uint64_t left_ms = (until_ns - now) / 1000000 + 1;

		if (poll(&poller, 1, left_ms > 100 ? 100 : (int)left_ms) <= 0)
			continue;
		if (write(file, chunk, sizeof(chunk)) < 0 && errno != EAGAIN && errno != EINTR)
			fail(path);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"fifo", required_argument, NULL, 'f'},
	    {"seconds", required_argument, NULL, 's'},
	    {"stall-after", required_argument, NULL, 'a'},
	    {"stall", required_argument, NULL, 'S'},
	    {"log", required_argument, NULL, 'l'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	double seconds = 60, stall_after = -1, stall = 0;
	const char *fifo = NULL, *log = NULL;
	struct moment start;
	uint64_t begin_ns, end_ns;
	int opt, file, reader;
	char chunk[CHUNK];

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'f':
			fifo = optarg;
			break;
		case 's':
			seconds = number("--seconds", optarg, 0.1, 1e6);
			break;
		case 'a':
			stall_after = number("--stall-after", optarg, 0, 1e6);
			break;
		case 'S':
			stall = number("--stall", optarg, 0, 1e6);
			break;
		case 'l':
			log = optarg;
			break;
		default:
			fifo = NULL;
			optind = argc;
			break;
		}
	}
	if (!fifo) {
		fprintf(stderr,
			"usage: fifo_writer --fifo PATH [--seconds T] [--stall-after T --stall S] [--log FILE]\n");
		return 2;
	}
	stop_on_signals();
	signal(SIGPIPE, SIG_IGN);
	if (mkfifo(fifo, 0600) && errno != EEXIST)
		fail(fifo);
	/* opens when the first reader does */
	file = open(fifo, O_WRONLY);
	if (file < 0)
		fail(fifo);
	reader = open(fifo, O_RDONLY | O_NONBLOCK); /* also keeps the FIFO open when the other reader goes */
	if (reader < 0 || fcntl(file, F_SETFL, O_NONBLOCK))
		fail(fifo);
	begin_ns = clock_ns(CLOCK_MONOTONIC);
	end_ns = begin_ns + (uint64_t)(seconds * 1e9);
	if (stall_after >= 0) {
		feed(fifo, file, begin_ns + (uint64_t)(stall_after * 1e9));
		while (read(reader, chunk, sizeof(chunk)) > 0)
			;
		start = moment_now();
		if (!stop)
			sleep_until(start.monotonic_ns + (uint64_t)(stall * 1e9));
		eventlog__write(log, "fifo_writer", -1, start, moment_now());
	}
	feed(fifo, file, end_ns);
	return 0;
}
