/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histories of states that were not met for long make room for new ones: a program that generates code, or whose
 * call paths count as states, meets others for ever. Those met last longest ago go first.
 */
#ifndef VAPRO_EVICT_H
#define VAPRO_EVICT_H

#include "model/series.h"

/*
 * Frees series until `wanted` numbers are free, where so many were not met in the last EVICT_LEAST windows and
 * no bundle or variance uses them; and workloads that no series is left of. used: by series. Numbers of others stay as
 * they are. Histories that have truths stay. Returns how many went; without memory, none.
 */
size_t evict__series(struct series_book *book, const unsigned char *used, size_t wanted);

/* Gives back the room of the last numbers that are free; lower ones are taken first from now on. */
void evict__shrink(struct series_book *book);

#define EVICT_LEAST 2

#endif
