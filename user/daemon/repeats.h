/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Warnings of one code that processes of one owner cause again and again: the first is reported at once, further ones
 * as one record a window, with their number. Pure.
 */
#ifndef VAPRO_REPEATS_H
#define VAPRO_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define REPEATS_MOST 64

struct repeat {
	const char *code; /* static text; NULL: the entry is free */
	uid_t owner;
	bool renewed;	/* in this window */
	uint64_t count; /* not reported yet */
	pid_t pid;	/* of the latest */
	char text[1024];
};

/* All zeros: none. */
struct repeats {
	struct repeat of[REPEATS_MOST];
};

/* Returns whether a warning is to be reported now; else it is counted. */
bool repeats__note(struct repeats *repeats, const char *code, uid_t owner, pid_t pid, const char *text);

/* Passes what was counted in a window that ends: the latest one of each, and the number of all. */
void repeats__end_window(struct repeats *repeats, void (*report)(void *ctx, const struct repeat *repeat), void *ctx);

#endif
