/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Injectors that SIGINT and SIGTERM end early, so that they still log what they did. */
#ifndef VAPRO_INJECT_STOP_H
#define VAPRO_INJECT_STOP_H

#include <signal.h>
#include <stdlib.h>

#include "eventlog.h"

static volatile sig_atomic_t stop;

static inline void on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

static inline void stop_on_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* Waits before anything is disturbed; a signal meanwhile ends the injector. */
static inline void start_later(double seconds)
{
	stop_on_signals();
	if (seconds > 0)
		sleep_until(clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9));
	if (stop)
		exit(1);
}

#endif
