/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame of a workload whose rounds all do the same work: options, truth log (truth.h), the output at
 * the end, and a rank that is late because it has more work while a signal says so.
 *
 *   --seconds T      run for T seconds (rank 0 decides), or
 *   --rounds N       for N rounds, for comparisons of the CPU time
 *   --log DIR        each rank writes DIR/truth.RANK
 *   --scratch DIR    for files
 *   --first T        compute for T seconds before the first round, without a call
 *   --late-share S   between SIGUSR1 and SIGUSR2 compute S times as much on top, for the same result
 *   --bind           rank R runs on CPU R modulo the number of CPUs
 *
 * Prints, from rank 0: {"program":..,"rounds":..,"wrong":..,"wall_s":..,"cpu_s":..}, cpu_s being user and system time
 * of all ranks during the rounds. This header knows no MPI.
 */
#ifndef VAPRO_WORKLOAD_LOOP_H
#define VAPRO_WORKLOAD_LOOP_H

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "common.h"
#include "truth.h"

struct loop {
	const char *name, *log_directory, *scratch;
	double seconds, first_s, late_share;
	uint64_t rounds; /* 0: limited by time */
	bool bind;
	int rank, size;
	struct truth log;
	uint64_t begin_ns;
	double begin_cpu_s;
};

static volatile sig_atomic_t loop_is_late;
static volatile uint64_t loop_sink;

static inline void loop__on_signal(int signal)
{
	loop_is_late = signal == SIGUSR1;
}

/* Reads the options. Exits with 2 where an option is wrong. */
static inline void loop__options(struct loop *loop, const char *name, int argc, char **argv)
{
	static const struct option options[] = {
	    {"seconds", required_argument, NULL, 's'}, {"rounds", required_argument, NULL, 'r'},
	    {"log", required_argument, NULL, 'l'},     {"scratch", required_argument, NULL, 'd'},
	    {"first", required_argument, NULL, 'f'},   {"late-share", required_argument, NULL, 'L'},
	    {"bind", no_argument, NULL, 'b'},	       {NULL, 0, NULL, 0},
	};
	int opt;

	*loop = (struct loop){.name = name, .seconds = 30, .size = 1};
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			loop->seconds = number("--seconds", optarg, 0.1, 1e6);
			break;
		case 'r':
			loop->rounds = (uint64_t)number("--rounds", optarg, 1, 1e12);
			break;
		case 'l':
			loop->log_directory = optarg;
			break;
		case 'd':
			loop->scratch = optarg;
			break;
		case 'f':
			loop->first_s = number("--first", optarg, 0, 1e4);
			break;
		case 'L':
			loop->late_share = number("--late-share", optarg, 0, 100);
			break;
		case 'b':
			loop->bind = true;
			break;
		default:
			fprintf(stderr,
				"usage: %s [--seconds T | --rounds N] [--log DIR] [--scratch DIR] [--first T] "
				"[--late-share S] [--bind]\n",
				name);
			exit(2);
		}
	}
}

/* Does fixed work of about `us` microseconds; a late rank does more, for the same result. */
static inline uint64_t loop__compute(const struct loop *loop, uint64_t x, double us)
{
	uint64_t steps = (uint64_t)(us * (double)LCG_STEPS_PER_US);

	if (loop_is_late)
		loop_sink = lcg(loop_sink, (uint64_t)(loop->late_share * (double)steps));
	return lcg(x, steps);
}

/* Computes lcg() in as many operations as `steps` has bits, for the expected result of a run. */
static inline uint64_t lcg_after(uint64_t x, uint64_t steps)
{
	uint64_t factor = LCG_A, term = LCG_C;

	for (; steps; steps >>= 1) {
		if (steps & 1)
			x = x * factor + term;
		term *= factor + 1;
		factor *= factor;
	}
	return x;
}

static inline double loop__cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Opens the log, once rank and size are known. segments: records per second. Name the segments afterwards. */
static inline void loop__open(struct loop *loop, double segments)
{
	struct sigaction action = {.sa_handler = loop__on_signal, .sa_flags = SA_RESTART};
	double seconds = loop->rounds ? 120 : loop->seconds;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	if (loop->bind)
		pin_rank(loop->rank);
	truth__open(&loop->log, loop->log_directory, "truth", loop->rank, (size_t)(seconds * segments * 1.5) + 10000);
}

/* Does the work before the first round, without a call. */
static inline void loop__first(const struct loop *loop)
{
	uint64_t end_ns = now_ns() + (uint64_t)(loop->first_s * 1e9), x = 1;

	while (now_ns() < end_ns)
		x = lcg(x, 20 * LCG_STEPS_PER_US);
	loop_sink = x;
}

static inline void loop__begin(struct loop *loop)
{
	loop->begin_ns = now_ns();
	loop->begin_cpu_s = loop__cpu_s();
	truth__leave(&loop->log);
}

/* Returns whether the rounds are over, for rank 0. */
static inline bool loop__over(const struct loop *loop, uint64_t done)
{
	return loop->rounds ? done >= loop->rounds : (double)(now_ns() - loop->begin_ns) > loop->seconds * 1e9;
}

/* Returns the CPU time of this rank's rounds. */
static inline double loop__spent_s(const struct loop *loop)
{
	return loop__cpu_s() - loop->begin_cpu_s;
}

/* Writes the log; wrong and cpu_s are sums over all ranks. Returns the program's exit code. */
static inline int loop__end(struct loop *loop, uint64_t rounds, uint64_t wrong, double cpu_s)
{
	double wall_s = (double)(now_ns() - loop->begin_ns) / 1e9;
	bool failed = truth__close(&loop->log) != 0;

	if (loop->rank == 0)
		printf(
		    "{\"program\":\"%s\",\"ranks\":%d,\"rounds\":%llu,\"wrong\":%llu,\"wall_s\":%.6f,\"cpu_s\":%.6f}\n",
		    loop->name, loop->size, (unsigned long long)rounds, (unsigned long long)wrong, wall_s, cpu_s);
	return wrong || failed;
}

#endif
