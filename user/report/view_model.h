/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What view reads from lines and draws: maps of bins, and regions. */
#ifndef VAPRO_REPORT_VIEW_MODEL_H
#define VAPRO_REPORT_VIEW_MODEL_H

#include "report/asides.h"
#include "report/regions.h"

#define VIEW_BINS_MAX 20000000 /* beyond, a time is wrong */

/* Consecutive bins of one row, as one line told them. */
struct view_piece {
	uint64_t bin;
	uint32_t count, revision;
	float *values; /* NAN = null */
};

struct view_row {
	int64_t rank, thread; /* thread -1: the rank as a whole */
	uint64_t pid;
	char *host;
	struct view_piece *pieces; /* in the order of their lines */
	size_t piece_count, piece_capacity;
};

struct view_map {
	char *job, *class;	     /* the job as it is shown */
	char *said;		     /* and as its processes say */
	double uid;		     /* NAN where it is not known */
	uint64_t bin_ns, first, end; /* bins since the epoch */
	struct view_row *rows;	     /* by rank once read */
	size_t row_count, row_capacity;
};

struct view_model {
	struct view_map *maps;
	size_t map_count, map_capacity;
	struct regions regions;
	struct asides asides;
	uint64_t start_ns; /* of the first window or map */
	uint64_t lines, bad_lines;
	size_t run, runs; /* the number of the run that was read, from 1, and how many there are */
};

/*
 * Reads all lines of a run of each host (line_runs.h); bad ones are reported on stderr with their number.
 * Returns 0, -ENOENT where there is no such run, or another negative errno.
 */
int view_model__read(struct view_model *model, FILE *file, int run, const char *name);
void view_model__free(struct view_model *model);

/*
 * The slowest value of rows [row, row_end) in each of `columns` groups of `step` bins; NAN where no
 * bin is known. Of bins told twice the higher revision counts, of equal ones the later.
 * Returns 0 or -ENOMEM.
 */
int view_map__cells(const struct view_map *map, size_t row, size_t row_end, uint64_t step, size_t columns,
		    double *cells);

/* Draws one map. width in columns, most rows; in 256 colours or plain characters. Returns 0 or -ENOMEM. */
int view_map__draw(const struct view_map *map, FILE *out, bool color, unsigned width, unsigned most_rows);

#endif
