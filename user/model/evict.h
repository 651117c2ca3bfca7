/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histories of states that were not met for long make room for new ones: a program that generates code, or whose
 * call paths count as states, always meets new states. The least recently met go first.
 */
#ifndef VAPRO_EVICT_H
#define VAPRO_EVICT_H

#include "model/series.h"

/*
 * Frees series until `wanted` numbers are free, as far as series were not met in the last EVICT_LEAST windows and
 * no bundle or variance uses them (used, by series); and workloads without series. Other numbers do not change.
 * Returns the number of freed series; 0 when out of memory.
 */
size_t evict__series(struct series_book *book, const unsigned char *used, size_t wanted);

/* Frees the memory of the last unused numbers; lower ones are reused first from now on. */
void evict__shrink(struct series_book *book);

enum { EVICT_LEAST = 2 }; /* windows in which a series was not met before it may be freed */

#endif
