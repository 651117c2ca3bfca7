/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time in ns: CLOCK_MONOTONIC, the clock of all measurements as on the kernel side; UTC since 1970; CPU time. */
#ifndef VAPRO_CLOCK_H
#define VAPRO_CLOCK_H

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static inline uint64_t mono_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t utc_now(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* CPU time of children that were reaped. */
static inline uint64_t cpu_of_children(void)
{
	struct rusage children = {0};

	getrusage(RUSAGE_CHILDREN, &children);
	return (uint64_t)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000000ULL +
	       (uint64_t)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1000ULL;
}

/* CPU time of this thread and of its reaped children: the cost of reading images and setting probes. */
static inline uint64_t cpu_spent(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_of_children();
}

/* CPU time of all threads of this process. */
static inline uint64_t cpu_of_process(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* CPU time of this process and of its reaped children. */
static inline uint64_t cpu_of_all(void)
{
	return cpu_of_process() + cpu_of_children();
}

#endif
