// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls one attached, cheap MPI function (MPI_Send to MPI_PROC_NULL) flat out or at a given rate, and
 * counts its own calls: vaprod's bundles and losses must add up to that count, and its overhead cap
 * must bound their cost. Calls are paced by spinning on the clock.
 *
 *   mpirun -n 1 flat_out --rate 300000 --seconds 30 [--delay 3] [--cpu N]
 *
 * Prints {"ready":true,"pid":P} before the first call (then waits --delay seconds, so that an observer
 * can attach), and at the end the number of calls as JSON.
 */
#include <getopt.h>
#include <mpi.h>

#include "common.h"
#include "truth.h"

/* Makes the calls. All other activity of MPI in this process is before "ready" and after the result. */
static uint64_t call(double seconds, double rate, uint64_t *elapsed_ns)
{
	uint64_t begin_ns = now_ns(), end_ns = begin_ns + (uint64_t)(seconds * 1e9), at_ns = begin_ns, calls = 0;
	double period_ns = rate > 0 ? 1e9 / rate : 0;
	char byte = 0;

	while (at_ns < end_ns) {
		MPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
		calls++;
		if (period_ns > 0) {
			uint64_t due_ns = begin_ns + (uint64_t)((double)calls * period_ns);

			do
				at_ns = now_ns();
			while (at_ns < due_ns && at_ns < end_ns);
		} else if (calls % 64 == 0) {
			at_ns = now_ns();
		}
	}
	*elapsed_ns = now_ns() - begin_ns;
	return calls;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"seconds", required_argument, NULL, 's'}, {"rate", required_argument, NULL, 'r'},
	    {"delay", required_argument, NULL, 'd'},   {"cpu", required_argument, NULL, 'c'},
	    {"help", no_argument, NULL, 'h'},	       {NULL, 0, NULL, 0},
	};
	double seconds = 30, rate = 0, delay = 0;
	uint64_t calls, elapsed_ns;
	int opt, cpu = -1;

	MPI_Init(&argc, &argv);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			seconds = number("--seconds", optarg, 0.1, 1e6);
			break;
		case 'r':
			rate = number("--rate", optarg, 0, 1e9);
			break;
		case 'd':
			delay = number("--delay", optarg, 0, 1e4);
			break;
		case 'c':
			cpu = (int)number("--cpu", optarg, 0, 1e4);
			break;
		default:
			fprintf(opt == 'h' ? stdout : stderr, "usage: mpirun -n 1 flat_out [--rate CALLS_PER_SECOND] "
							      "[--seconds T] [--delay T] [--cpu N]\n");
			MPI_Finalize();
			return opt == 'h' ? 0 : 2;
		}
	}
	if (cpu >= 0)
		pin(cpu);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	if (delay > 0)
		wait_for_observer(delay);
	calls = call(seconds, rate, &elapsed_ns);
	printf("{\"program\":\"flat_out\",\"function\":\"MPI_Send\",\"pid\":%d,\"calls\":%llu,\"seconds\":%.6f,"
	       "\"rate\":%.1f,\"ns_per_call\":%.2f}\n",
	       (int)getpid(), (unsigned long long)calls, (double)elapsed_ns / 1e9,
	       (double)calls / ((double)elapsed_ns / 1e9), (double)elapsed_ns / (double)calls);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
