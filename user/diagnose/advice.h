/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words for people: whom it is about, and one or two sentences on what to do, by rules over the finest major factor. */
#ifndef VAPRO_ADVICE_H
#define VAPRO_ADVICE_H

#include <vapro/analysis.h>

/*
 * Whom a variance is about, in words: "rank 3", "ranks 0-3,7"; with `threads` "thread 3 of rank 0".
 * Reads its ranks and threads only.
 */
void advice__who(const struct result_variance *variance, bool threads, char *buf, size_t size);

/* Of a variance whose diagnosis is complete but for the advice. Writes at most size bytes. */
void advice__write(const struct result_variance *variance, bool waiting, bool transfer, char *buf, size_t size);

#endif
