/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of a job host by host, as pictures and traces have them: hosts in the order of their lowest ranks, and
 * within a host ranks in order, each followed by its threads that have rows of their own.
 */
#ifndef VAPRO_EXPORT_ROW_ORDER_H
#define VAPRO_EXPORT_ROW_ORDER_H

#include "page/run_report.h"

struct ordered_row {
	const struct view_row *row;
	size_t at;   /* index of the row in its map */
	size_t host; /* number of its host, from 0 */
};

struct row_order {
	struct ordered_row *items;
	size_t count, capacity;
};

/*
 * Orders the rows of these maps of one job; a row that several maps have counts once. The maps own the rows. Returns 0
 * or -ENOMEM; row_order__free() is fine after both.
 */
int row_order__make(struct row_order *order, const struct view_map *const *maps, size_t map_count);
void row_order__free(struct row_order *order);

/*
 * Returns whether a row is slow in a region of its job. A region without known ranks is that of the processes whose
 * threads it lists.
 */
bool row_order__region_has(const struct run_region *region, const struct view_row *row);

/* Returns whether a region is one of the job of a map. */
bool row_order__region_is_of(const struct run_region *region, const struct view_map *map);

/* Writes "rank 3", "rank 3 thread 1" or "pid 4711". Returns buf. */
char *row_order__name(const struct view_row *row, char *buf, size_t size);

#endif
