/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An injector's own log: when its disturbance began and ended, on both clocks, as one JSON object per
 * disturbance and line:
 * {"name":"hog","pid":1,"cpu":0,"start":{"monotonic_ns":..,"realtime_ns":..},"end":{..}}
 */
#ifndef VAPRO_INJECT_EVENTLOG_H
#define VAPRO_INJECT_EVENTLOG_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct moment {
	uint64_t monotonic_ns, realtime_ns;
};

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static inline struct moment moment_now(void)
{
	return (struct moment){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_REALTIME)};
}

static inline void sleep_until(uint64_t monotonic_ns)
{
	struct timespec ts = {(time_t)(monotonic_ns / 1000000000ULL), (long)(monotonic_ns % 1000000000ULL)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL); /* a signal may end it early */
}

/* path may be NULL: stdout. cpu -1: none. Exits with 1 where it cannot be written. */
static inline void eventlog__write(const char *path, const char *name, int cpu, struct moment start, struct moment end)
{
	FILE *out = path ? fopen(path, "a") : stdout;

	if (!out) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	fprintf(out,
		"{\"name\":\"%s\",\"pid\":%d,\"cpu\":%d,\"start\":{\"monotonic_ns\":%llu,\"realtime_ns\":%llu},"
		"\"end\":{\"monotonic_ns\":%llu,\"realtime_ns\":%llu}}\n",
		name, (int)getpid(), cpu, (unsigned long long)start.monotonic_ns, (unsigned long long)start.realtime_ns,
		(unsigned long long)end.monotonic_ns, (unsigned long long)end.realtime_ns);
	if (path ? fclose(out) : fflush(out)) {
		fprintf(stderr, "%s: %s\n", path ? path : "stdout", strerror(errno));
		exit(1);
	}
}

#endif
