// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rounds of many short calls and one long computation, in phases: the governor suppresses calls, and must
 * not suppress the computation. A round is --short calls of MPI_Send to MPI_PROC_NULL from one place, MPI_Barrier on
 * MPI_COMM_SELF, and computation until the next round is due; rounds that are late follow at once, so
 * that the rate holds on a busy machine.
 *
 *   mpirun -n 1 rounds --us 2000 --phase 40:10 --phase 2:30 [--delay 3]
 *
 * --phase CALLS:SECONDS is the number of short calls of a phase's rounds, and its duration. Prints
 * {"ready":true,"pid":P} before the first call, and at the end the calls of each phase as JSON.
 */
#include <getopt.h>
#include <mpi.h>

#include "common.h"
#include "truth.h"

#define PHASES 8
#define GAP_NS 3000 /* gap between short calls */

struct phase {
	unsigned short_calls;
	double seconds;
	unsigned long long rounds;
};

static void spin_until(uint64_t due_ns)
{
	while (now_ns() < due_ns)
		;
}

static void run(struct phase *phase, uint64_t round_ns)
{
	uint64_t begin_ns = now_ns(), rounds = (uint64_t)(phase->seconds * 1e9 / (double)round_ns);
	char byte = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		for (unsigned call = 0; call < phase->short_calls; call++) {
			MPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
			spin_until(now_ns() + GAP_NS);
		}
		MPI_Barrier(MPI_COMM_SELF);
		spin_until(begin_ns + (i + 1) * round_ns);
	}
	phase->rounds = rounds;
}

static int add_phase(struct phase *phases, int count, const char *text)
{
	char *colon;

	if (count == PHASES)
		return -1;
	phases[count].short_calls = (unsigned)strtoul(text, &colon, 10);
	if (*colon != ':')
		return -1;
	phases[count].seconds = number("--phase", colon + 1, 0.01, 1e6);
	return count + 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"us", required_argument, NULL, 'u'},
	    {"phase", required_argument, NULL, 'p'},
	    {"delay", required_argument, NULL, 'd'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	struct phase phases[PHASES] = {{0}};
	double us = 2000, delay = 0;
	int opt, count = 0;

	MPI_Init(&argc, &argv);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'u')
			us = number("--us", optarg, 1, 1e7);
		else if (opt == 'd')
			delay = number("--delay", optarg, 0, 1e4);
		if (opt == 'p')
			count = add_phase(phases, count, optarg);
		if (count < 0 || (opt != 'u' && opt != 'd' && opt != 'p')) {
			fprintf(opt == 'h' ? stdout : stderr,
				"usage: mpirun -n 1 rounds [--us T] --phase CALLS:SECONDS ... [--delay T]\n");
			MPI_Finalize();
			return opt == 'h' ? 0 : 2;
		}
	}
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	if (delay > 0)
		wait_for_observer(delay);
	for (int i = 0; i < count; i++)
		run(&phases[i], (uint64_t)(us * 1e3));
	printf("{\"program\":\"rounds\",\"pid\":%d,\"phases\":[", (int)getpid());
	for (int i = 0; i < count; i++)
		printf("%s{\"rounds\":%llu,\"short\":%llu}", i ? "," : "", phases[i].rounds,
		       phases[i].rounds * phases[i].short_calls);
	printf("]}\n");
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
