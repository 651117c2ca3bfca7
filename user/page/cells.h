/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cells of a heat map as a page carries them: a byte each, 0 = not evaluated, 1 to 101 = the performance in percent
 * plus one. Columns are bins; where a map has more cells than allowed, only those around regions are, and the others
 * are groups of bins that have the slowest value in `worst` and the mean in `mean`.
 */
#ifndef VAPRO_PAGE_CELLS_H
#define VAPRO_PAGE_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/view_model.h"

#define CELLS_MOST (32U << 20)	 /* cells of all maps of a page at full resolution */
#define CELLS_ROUNDED (4U << 20) /* from so many cells on values are rounded, which compresses twice as well */

enum cells_rounding {
	CELLS_EXACT,   /* to 1 % */
	CELLS_SPEED,   /* from 95 % on all are 97 %: noise of what is fast */
	CELLS_WAITING, /* to 5 % */
};

/* Consecutive columns of one width. */
struct cells_part {
	uint64_t first; /* bin of the first column, since the epoch */
	uint32_t columns;
	uint32_t bins; /* of a column; the last one may have fewer */
};

struct cells {
	uint8_t *worst; /* rows x columns */
	uint8_t *mean;	/* the same, 0 in columns of one bin; NULL where all are */
	size_t rows, columns;
	struct cells_part *parts;
	size_t part_count, part_capacity;
	enum cells_rounding rounding;
};

/* A time to be shown in full resolution: bins [first, end). */
struct cells_interval {
	uint64_t first, end;
};

/*
 * Makes the cells of a map with at most `most` cells; intervals in the order of their importance. Returns 0 or -ENOMEM;
 * cells__free() is fine after both.
 */
int cells__make(struct cells *cells, const struct view_map *map, const struct cells_interval *intervals, size_t count,
		size_t most, enum cells_rounding rounding);
void cells__free(struct cells *cells);

/* Returns the byte of a performance, which may be NAN. */
uint8_t cells__byte(double performance, enum cells_rounding rounding);

#endif
