// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Equal pieces of work, which for a while take longer: for tests of what the counters show.
 *
 *   mpirun -n 1 stalls --pieces 400 --us 2000 --idle-us 3000 --from 150 --to 350 --more-us 1500
 *   mpirun -n 1 stalls ... --device /dev/standin --kind 1 --stall-us 2000
 *
 * Each round works, sends to MPI_PROC_NULL, idles and sends again. From round --from on, up to --to, each
 * piece but every third takes longer: by more work of the same kind, or without more work by a stall in a device
 * to which each round writes {kind, ns} (0 ns: no stall). --alone: real-time priority on its CPU, so that
 * the program is slow for no other reason. Prints {"ready":true,"pid":P}
 * before the first call (then waits --delay seconds), and a summary of its work as JSON at the end.
 */
#include <fcntl.h>
#include <getopt.h>
#include <mpi.h>

#include "common.h"
#include "truth.h"

/* A request to the device. */
struct stall {
	uint32_t kind, ns;
};

static void send_nothing(void)
{
	char byte = 0;

	MPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"pieces", required_argument, NULL, 'n'},	{"us", required_argument, NULL, 'u'},
	    {"idle-us", required_argument, NULL, 'i'},	{"from", required_argument, NULL, 'f'},
	    {"to", required_argument, NULL, 't'},	{"more-us", required_argument, NULL, 'm'},
	    {"device", required_argument, NULL, 'v'},	{"kind", required_argument, NULL, 'k'},
	    {"stall-us", required_argument, NULL, 's'}, {"delay", required_argument, NULL, 'd'},
	    {"alone", no_argument, NULL, 'a'},		{NULL, 0, NULL, 0},
	};
	double us = 2000, idle_us = 3000, more_us = 0, stall_us = 0, delay = 0;
	int opt, pieces = 400, from = 0, to = 0, device = -1;
	struct sched_param first = {.sched_priority = 1};
	struct stall stall = {0};
	const char *path = NULL;
	uint64_t x = 1, begin_ns, slow = 0;

	MPI_Init(&argc, &argv);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'n':
			pieces = (int)number("--pieces", optarg, 1, 1e6);
			break;
		case 'u':
			us = number("--us", optarg, 1, 1e7);
			break;
		case 'i':
			idle_us = number("--idle-us", optarg, 0, 1e7);
			break;
		case 'f':
			from = (int)number("--from", optarg, 0, 1e6);
			break;
		case 't':
			to = (int)number("--to", optarg, 0, 1e6);
			break;
		case 'm':
			more_us = number("--more-us", optarg, 0, 1e7);
			break;
		case 'v':
			path = optarg;
			break;
		case 'k':
			stall.kind = (uint32_t)number("--kind", optarg, 0, 100);
			break;
		case 's':
			stall_us = number("--stall-us", optarg, 0, 1e6);
			break;
		case 'a':
			sched_setscheduler(0, SCHED_FIFO, &first); /* where allowed */
			break;
		case 'd':
			delay = number("--delay", optarg, 0, 1e4);
			break;
		default:
			fprintf(stderr,
				"usage: mpirun -n 1 stalls [--pieces N] [--us T] [--idle-us T] [--from N] [--to N] "
				"[--more-us T | --device FILE --kind N --stall-us T] [--alone] [--delay T]\n");
			MPI_Finalize();
			return 2;
		}
	}
	if (path) {
		device = open(path, O_WRONLY | O_CLOEXEC);
		if (device < 0) {
			fprintf(stderr, "cannot open %s: %s\n", path, strerror(errno));
			MPI_Finalize();
			return 1;
		}
	}
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	if (delay > 0)
		wait_for_observer(delay);
	begin_ns = now_ns();
	for (int i = 0; i < pieces; i++) {
		int longer = i >= from && i < to && i % 3;

		send_nothing();
		x = lcg(x, (uint64_t)us * LCG_STEPS_PER_US);
		stall.ns = longer ? (uint32_t)(stall_us * 1000) : 0;
		if (device >= 0 && write(device, &stall, sizeof(stall)) != sizeof(stall)) {
			fprintf(stderr, "%s does not take a stall: %s\n", path, strerror(errno));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		if (longer && device < 0)
			x = lcg(x, (uint64_t)more_us * LCG_STEPS_PER_US);
		slow += (uint64_t)longer;
		send_nothing();
		usleep((useconds_t)idle_us);
	}
	/* a computation follows each call: the last one ends at MPI_Finalize */
	printf("{\"pieces\":%d,\"slow\":%llu,\"computations\":%d,\"seconds\":%.3f,\"result\":%llu}\n", pieces,
	       (unsigned long long)slow, 2 * pieces, (double)(now_ns() - begin_ns) / 1e9, (unsigned long long)x);
	MPI_Finalize();
	return 0;
}
