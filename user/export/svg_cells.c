// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cells of a picture: a path for each colour, of rectangles. Neighbours of one colour in a row are one rectangle,
 * and so are equal ones in rows below each other.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/svg_private.h"

/* A rectangle that may go on in the next row: [at, end) in columns, from row `first` on. */
struct run {
	unsigned level; /* SVG_LEVELS: nothing evaluated, which is not drawn */
	size_t end, first;
};

/* The text of the path of each level. */
struct paths {
	FILE *out[SVG_LEVELS];
	char *text[SVG_LEVELS];
	size_t size[SVG_LEVELS];
};

static int open_paths(struct paths *paths)
{
	for (unsigned level = 0; level < SVG_LEVELS; level++) {
		paths->out[level] = open_memstream(&paths->text[level], &paths->size[level]);
		if (!paths->out[level])
			return -ENOMEM;
	}
	return 0;
}

static void put_run(const struct paths *paths, size_t at, const struct run *run, size_t row)
{
	if (run->end > at && run->level < SVG_LEVELS)
		fprintf(paths->out[run->level], "M%zu %zuh%zuv%zuh-%zuz", at, run->first, run->end - at,
			row - run->first, run->end - at);
}

/* Writes the paths and frees their texts. */
static int close_paths(struct paths *paths, const struct picture *picture, int ret)
{
	for (unsigned level = 0; level < SVG_LEVELS; level++) {
		if (!paths->out[level])
			continue;
		if (fclose(paths->out[level]))
			ret = -ENOMEM;
		if (!ret && paths->size[level])
			fprintf(picture->out, "<path fill=\"#%06x\" d=\"%s\"/>\n",
				scale__color(picture->scale, svg__level_pct(level)), paths->text[level]);
		free(paths->text[level]);
	}
	return ret;
}

static unsigned level_of(double performance)
{
	return isnan(performance) ? SVG_LEVELS
				  : (unsigned)lround((SVG_LEVELS - 1) * (1 - fmin(fmax(performance, 0), 1)));
}

/* Fills the levels of a row of the picture: the slowest value of its rows in each column. */
static int fill(const struct picture *picture, const struct svg_row *row, double *cells, double *values)
{
	for (size_t i = 0; i < picture->columns; i++)
		cells[i] = NAN;
	for (size_t i = row->first; i < row->end; i++) {
		size_t at = picture->order.items[i].at;
		int ret = view_map__cells(picture->map, at, at + 1, picture->step, picture->columns, values);

		if (ret)
			return ret;
		for (size_t column = 0; column < picture->columns; column++)
			cells[column] = fmin(cells[column], values[column]); /* the number, if one is NAN */
	}
	return 0;
}

/* Compares a row with the rectangles of the one above it. */
static void merge(const struct paths *paths, const struct picture *picture, const double *cells, size_t row,
		  const struct run *above, struct run *runs)
{
	memset(runs, 0, picture->columns * sizeof(*runs));
	for (size_t at = 0, end; at < picture->columns; at = end) {
		unsigned level = level_of(cells[at]);

		for (end = at + 1; end < picture->columns && level_of(cells[end]) == level; end++)
			;
		runs[at] = (struct run){level, end, row};
		if (above[at].end == end && above[at].level == level)
			runs[at].first = above[at].first;
	}
	for (size_t at = 0; at < picture->columns; at++) {
		if (runs[at].end != above[at].end || runs[at].level != above[at].level)
			put_run(paths, at, &above[at], row);
	}
}

int svg__cells(const struct picture *picture)
{
	size_t columns = picture->columns;
	double *cells = calloc(columns, sizeof(*cells)), *values = calloc(columns, sizeof(*values));
	struct run *runs = calloc(columns, sizeof(*runs)), *above = calloc(columns, sizeof(*above));
	struct paths paths = {.size = {0}};
	int ret = cells && values && runs && above ? open_paths(&paths) : -ENOMEM;

	for (size_t row = 0; !ret && row < picture->row_count; row++) {
		struct run *last = above;

		ret = fill(picture, &picture->rows[row], cells, values);
		if (ret)
			break;
		merge(&paths, picture, cells, row, above, runs);
		above = runs;
		runs = last;
	}
	for (size_t at = 0; !ret && at < columns; at++)
		put_run(&paths, at, &above[at], picture->row_count);
	fprintf(picture->out,
		"<g transform=\"translate(%.2f %.2f) scale(%.6f %.6f)\" shape-rendering=\"crispEdges\">\n",
		picture->left, picture->top, picture->width / (double)columns,
		picture->height / (double)picture->row_count);
	ret = close_paths(&paths, picture, ret);
	fputs("</g>\n", picture->out);
	free(cells);
	free(values);
	free(runs);
	free(above);
	return ret;
}
