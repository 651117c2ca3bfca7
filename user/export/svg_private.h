/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of a picture share. Lengths are points. */
#ifndef VAPRO_EXPORT_SVG_PRIVATE_H
#define VAPRO_EXPORT_SVG_PRIVATE_H

#include <stdio.h>

#include "export/row_order.h"
#include "page/run_report.h"
#include "page/scale.h"

#define SVG_FONT 6.5		     /* size of texts */
#define SVG_LINE 8.5		     /* from line to line */
#define SVG_LETTER (0.56 * SVG_FONT) /* width of one, about */

/* Rows [first, end) of the order that share one row of the picture. */
struct svg_row {
	size_t first, end;
};

struct picture {
	const struct run_report *report;
	const struct view_map *map;
	const struct scale *scale;
	bool waiting;
	FILE *out;
	struct row_order order;
	struct svg_row *rows;
	size_t row_count, host_count;
	size_t columns;
	uint64_t step;			 /* bins of a column */
	double left, top, width, height; /* where the map is */
};

/* Writes text as content of an element, at most `most` characters of it; others become an ellipsis. */
void svg__text(FILE *out, const char *text, size_t most);

/* Returns where a time is, within the map. */
double svg__x(const struct picture *picture, uint64_t utc_ns);

/* Returns where a row of the picture begins. */
double svg__y(const struct picture *picture, size_t row);

/* svg_cells.c: the cells. Returns 0 or -ENOMEM. */
int svg__cells(const struct picture *picture);

/* Returns the colours that the cells may have, from full speed down: a performance in percent each. */
#define SVG_LEVELS 21
static inline double svg__level_pct(unsigned level)
{
	return 100 - 100.0 * level / (SVG_LEVELS - 1);
}

/* svg_regions.c: outlines and numbers. Returns 0 or -ENOMEM. */
int svg__regions(const struct picture *picture);

/* Writes a line for each of the worst regions, from y down. Returns the y below them; out NULL: only that. */
double svg__list_regions(const struct picture *picture, FILE *out, double x, double y, double width);

#endif
