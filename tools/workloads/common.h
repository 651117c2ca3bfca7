/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions that the test workloads share: a unit of fixed work with a known result, numbers from the
 * command line, and pinning.
 */
#ifndef VAPRO_WORKLOAD_COMMON_H
#define VAPRO_WORKLOAD_COMMON_H

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LCG_A 6364136223846793005ULL
#define LCG_C 1442695040888963407ULL

/* Steps of a linear congruential generator: work in registers only, the same time for the same count. */
static inline uint64_t lcg(uint64_t x, uint64_t steps)
{
	while (steps--)
		x = x * LCG_A + LCG_C;
	return x;
}

/* Steps that take about a microsecond on a 3 GHz core (a multiplication and an addition in a chain). */
#define LCG_STEPS_PER_US 750ULL

static inline double number(const char *option, const char *text, double min, double max)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || *end || errno || !(value >= min && value <= max)) {
		fprintf(stderr, "%s: '%s' is not a number between %g and %g\n", option, text, min, max);
		exit(2);
	}
	return value;
}

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned int)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "cannot pin to CPU %d: %s\n", cpu, strerror(errno));
		exit(1);
	}
}

/*
 * Waits for an observer to attach: until the file that VAPRO_GO names exists (at most two minutes), so
 * that a test does not depend on the machine's speed; without VAPRO_GO the given seconds.
 */
static inline void wait_for_observer(double seconds)
{
	const char *go = getenv("VAPRO_GO");

	if (!go || !*go) {
		usleep((useconds_t)(seconds * 1e6));
		return;
	}
	for (int i = 0; i < 12000 && access(go, F_OK); i++)
		usleep(10000);
}

/* Pins rank R to CPU R modulo the number of CPUs. */
static inline void pin_rank(int rank)
{
	pin(rank % (int)sysconf(_SC_NPROCESSORS_ONLN));
}

#endif
