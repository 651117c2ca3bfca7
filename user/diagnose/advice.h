/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words for people: a variance's ranks, and one or two sentences of advice, by rules over the finest major factor. */
#ifndef VAPRO_ADVICE_H
#define VAPRO_ADVICE_H

#include <vapro/analysis.h>

/*
 * Writes whom a variance is about: "rank 3", "ranks 0-3,7"; with `threads` "thread 3 of rank 0".
 * Reads the variance's ranks and threads only.
 */
void advice__who(const struct result_variance *variance, bool threads, char *buf, size_t size);

/* Writes the advice, at most size bytes, of a variance whose diagnosis is complete otherwise. */
void advice__write(const struct result_variance *variance, bool waiting, bool transfer, char *buf, size_t size);

#endif
