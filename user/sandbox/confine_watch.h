/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a reader waits for a file system: it sleeps and uses no processor time, look after look. */
#ifndef VAPRO_CONFINE_WATCH_H
#define VAPRO_CONFINE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFINE_WATCH_LOOK_MS 200

/* All zeros at first. */
struct confine_watch {
	int64_t looked_ms;
	uint64_t used; /* clock ticks of processor time at the last look */
	unsigned int silent;
};

/* Looks at a process where the last look is long enough ago. Returns at how many looks in a row it was silent. */
unsigned int confine_watch__look(struct confine_watch *watch, pid_t pid, int64_t now_ms);

/* What a look makes of a process's state, as /proc/PID/stat has it after the name. */
void confine_watch__note(struct confine_watch *watch, const char *stat);

#endif
