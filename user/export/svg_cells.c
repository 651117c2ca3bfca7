// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cells of a picture: a path for each colour, fast ones first, of all cells that are as slow or slower. Slower
 * cells lie on faster ones, so that no ground shows between neighbours where a program draws parts of pixels, and none
 * is lost that is smaller than a pixel. Neighbours in a row are one rectangle, and so are equal ones in rows below each
 * other.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/svg_private.h"

#define UNKNOWN SVG_LEVELS /* not evaluated */

/* The level of each cell, row after row. */
struct levels {
	uint8_t *items;
	bool used[SVG_LEVELS + 1];
};

/* A rectangle that may go on in the next row, beginning in row `first`; end: its last column and one, 0: there is none.
 */
struct run {
	size_t end, first;
};

static uint8_t level_of(double performance)
{
	if (!isfinite(performance))
		return UNKNOWN;
	return (uint8_t)lround((SVG_LEVELS - 1) * (1 - fmin(fmax(performance, 0), 1)));
}

/* Fills the levels of a row of the picture: the slowest value of its rows in each column. */
static int fill_row(const struct picture *picture, const struct svg_row *row, uint8_t *levels, double *cells)
{
	memset(levels, UNKNOWN, picture->columns);
	for (size_t i = row->first; i < row->end; i++) {
		size_t at = picture->order.items[i].at;
		int ret = view_model__cells(picture->map, at, at + 1, picture->step, picture->columns, cells);

		if (ret)
			return ret;
		for (size_t column = 0; column < picture->columns; column++) {
			uint8_t level = level_of(cells[column]);

			if (level != UNKNOWN && (levels[column] == UNKNOWN || level > levels[column]))
				levels[column] = level;
		}
	}
	return 0;
}

static int fill(const struct picture *picture, struct levels *levels)
{
	double *cells = calloc(picture->columns, sizeof(*cells));
	int ret = cells ? 0 : -ENOMEM;

	for (size_t row = 0; !ret && row < picture->row_count; row++) {
		uint8_t *own = levels->items + row * picture->columns;

		ret = fill_row(picture, &picture->rows[row], own, cells);
		for (size_t column = 0; column < picture->columns; column++)
			levels->used[own[column]] = true;
	}
	free(cells);
	return ret;
}

/* Finds the rectangles of a row, those that go on from the row above with its beginning. */
static void find_runs(const struct picture *picture, const uint8_t *levels, uint8_t least, size_t row,
		      const struct run *above, struct run *runs)
{
	memset(runs, 0, picture->columns * sizeof(*runs));
	for (size_t at = 0, end; at < picture->columns; at = end) {
		for (end = at; end < picture->columns && levels[end] >= least && levels[end] != UNKNOWN; end++)
			;
		if (end > at)
			runs[at] = (struct run){end, above[at].end == end ? above[at].first : row};
		else
			end++;
	}
}

/* Draws the rectangles of a row that do not go on in the next one. */
static void put_runs(const struct picture *picture, const struct run *runs, const struct run *below, size_t row)
{
	for (size_t at = 0; at < picture->columns; at++) {
		if (runs[at].end && runs[at].end != below[at].end)
			fprintf(picture->out, "M%zu %zuh%zuv%zuh-%zuz", at, runs[at].first, runs[at].end - at,
				row + 1 - runs[at].first, runs[at].end - at);
	}
}

static int put_level(const struct picture *picture, const struct levels *levels, uint8_t level)
{
	struct run *runs = calloc(2 * picture->columns, sizeof(*runs)), *above = runs + picture->columns, *next = runs;

	if (!runs)
		return -ENOMEM;
	fprintf(picture->out, "<path fill=\"#%06x\" d=\"", scale__color(picture->scale, svg__level_pct(level)));
	for (size_t row = 0; row < picture->row_count; row++) {
		struct run *last = above;

		find_runs(picture, levels->items + row * picture->columns, level, row, above, next);
		if (row)
			put_runs(picture, above, next, row - 1);
		above = next;
		next = last;
	}
	memset(next, 0, picture->columns * sizeof(*next));
	put_runs(picture, above, next, picture->row_count - 1);
	fputs("\"/>\n", picture->out);
	free(runs);
	return 0;
}

int svg__cells(const struct picture *picture)
{
	struct levels levels = {.items = malloc(picture->columns * picture->row_count)};
	int ret = levels.items ? fill(picture, &levels) : -ENOMEM;

	fprintf(picture->out, "<g transform=\"translate(%.2f %.2f) scale(%.6f %.6f)\">\n", picture->left, picture->top,
		picture->width / (double)picture->columns, picture->height / (double)picture->row_count);
	for (uint8_t level = 0; !ret && level < SVG_LEVELS; level++) {
		if (levels.used[level])
			ret = put_level(picture, &levels, level);
	}
	fputs("</g>\n", picture->out);
	free(levels.items);
	return ret;
}
