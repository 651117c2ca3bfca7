/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a function that was too expensive is looked at again. Pure: times are arguments. */
#ifndef VAPRO_ROW_BACKOFF_H
#define VAPRO_ROW_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#define ROW_BACKOFF_FIRST_S 10 /* a function is left out for so long at first, then four times as long */
#define ROW_BACKOFF_LEVELS 4   /* 10, 40, 160 and 640 s */

/* How long a function is left out; zeroed: it was not yet. */
struct row_backoff {
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0 = it is not left out */
	unsigned int level;
};

/* Leaves a function out for now. random: 0..1; hosts and processes should not keep step. */
void row_backoff__refuse(struct row_backoff *backoff, uint64_t now_ns, double random);

/* Whether a function left out may be looked at again. */
bool row_backoff__is_over(const struct row_backoff *backoff, uint64_t now_ns);

/* Notes that a function is opened; if it is too expensive again, it is left out for longer. */
void row_backoff__opened(struct row_backoff *backoff);

#endif
