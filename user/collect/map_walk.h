/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deletes entries of a hash map of the kernel side: those of a process that has ended, or requests that were posted and
 * never seen to complete. The map is read in batches, so that the kernel visits each of its buckets once. A walk from
 * key to key would begin at the first bucket again after each deletion before the first key that stays.
 */
#ifndef VAPRO_MAP_WALK_H
#define VAPRO_MAP_WALK_H

#include <stdbool.h>

/* Decides whether an entry is deleted. */
typedef bool map_entry_dies(void *ctx, const void *key, const void *value);

/*
 * Deletes the entries for which dies() returns true; those that the kernel side adds meanwhile may be missed. Deletes
 * nothing when out of memory.
 */
void map_walk__delete(int map, map_entry_dies *dies, void *ctx);

#endif
