/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time in ns: CLOCK_MONOTONIC, the clock of all measurements as on the kernel side, and UTC since 1970. */
#ifndef VAPRO_CLOCK_H
#define VAPRO_CLOCK_H

#include <stdint.h>
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

#endif
