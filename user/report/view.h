/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `vapro view FILE`: the lines of a run as heat maps (rows = ranks, columns = time) and a table of
 * slow regions. A cell of several bins or ranks shows the slowest value: an average would hide the
 * slow spots that a map is for.
 */
#ifndef VAPRO_REPORT_VIEW_H
#define VAPRO_REPORT_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report/outcome.h"

enum view_color { VIEW_COLOR_AUTO, VIEW_COLOR_ALWAYS, VIEW_COLOR_NEVER };

struct view_options {
	enum view_color color;	     /* auto: out is a terminal and NO_COLOR is unset */
	unsigned width;		     /* columns; 0: COLUMNS, else the terminal's, else 80 */
	unsigned rows;		     /* most rows of a map; 0: 48 */
	const char *class;	     /* only this class; NULL: those of work, not that of waiting */
	bool by_loss;		     /* the ranks that lost most are the first rows */
	bool all;		     /* every cause and region, and the map of waiting */
	bool relative;		     /* since_ns and until_ns count from the begin of the run, else they are UTC */
	uint64_t since_ns, until_ns; /* what lies outside is not shown; until 0: to the end */
	int run;		     /* run of each host; 1 = the first, -1 (or 0) = the last */
	struct outcome *outcome;     /* filled; or NULL. Its times count cells of the heat maps. */
};

/* Replaces what depends on the terminal of out (colours, width) by what that is. */
void view__finalize(struct view_options *options, FILE *out);

/*
 * Reads path ("-" = standard input), reports bad lines on stderr, and draws to out. bad_lines may be NULL.
 * Returns 0, -ENODATA where there was nothing to draw, or a negative errno; both with a sentence in err.
 */
int view__file(const char *path, const struct view_options *options, FILE *out, uint64_t *bad_lines, char *err,
	       size_t err_size);

/* The same of an open file, which stays the caller's; messages call it name. */
int view__stream(FILE *file, const char *name, const struct view_options *options, FILE *out, uint64_t *bad_lines,
		 char *err, size_t err_size);

#endif
