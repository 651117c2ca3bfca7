/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The model that view reads from lines and draws: maps of bins, and a summary of all else. */
#ifndef VAPRO_REPORT_VIEW_MODEL_H
#define VAPRO_REPORT_VIEW_MODEL_H

#include "report/summary.h"

#define VIEW_BINS_MAX 20000000 /* more bins mean a wrong time */

/* Consecutive bins of one row in one line. */
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
	double lost, rank_lost; /* bins that it lost, and those of its rank: view_model__measure() */
};

struct view_map {
	char *job, *class;	     /* job as shown, and class */
	char *said;		     /* job as reported by its processes */
	double uid;		     /* NAN where unknown */
	uint64_t bin_ns, first, end; /* bins since the epoch */
	struct view_row *rows;	     /* rows, ordered by rank after reading */
	size_t row_count, row_capacity;
	size_t next_row; /* where the row of a part's first line is likely */
	bool by_loss;	 /* its rows are in the order of what they lost, worst first */
};

struct view_model {
	struct view_map *maps;
	size_t map_count, map_capacity;
	struct summary *summary;
	uint64_t start_ns; /* start of the first window or map */
	uint64_t lines, bad_lines;
	bool began;	      /* a hello was read: what follows is all of a run */
	size_t run, runs;     /* number of the run that was read, from 1, and count of runs */
	const char *job;      /* only records of this job, as it is shown or reported, and of none; NULL: all */
	uint64_t job_records; /* records of that job */
	/* Gets each line of the run after it was added, or NULL; it may own the line by setting *line to NULL. */
	void (*seen)(void *arg, cJSON **line);
	void *seen_arg;
};

/* Makes an empty model. Returns 0 or -ENOMEM. */
int view_model__init(struct view_model *model);

/*
 * Adds all lines of a run of each host (line_runs.h); bad ones are reported on stderr with their number. Several files
 * may be added. Returns 0, -ENOENT where there is no such run, or another negative errno.
 */
int view_model__add_file(struct view_model *model, FILE *file, int run, const char *name);

/* Makes a model of one file, in order. Returns as view_model__add_file() does. */
int view_model__read(struct view_model *model, FILE *file, int run, const char *name);

/* Adds a heatmap record. Returns 0, -EINVAL with the reason in *why, or -ENOMEM. */
int view_model__add_map(struct view_model *model, const cJSON *line, const char **why);

/* Leaves out bins and regions outside [begin_ns, end_ns), UTC. Returns whether a bin is left. */
bool view_model__clip(struct view_model *model, uint64_t begin_ns, uint64_t end_ns);

/*
 * Puts the rows of all maps in order, without those of threads of which nothing was judged, and that of a thread that
 * is the only judged one of its rank.
 */
void view_model__sort(struct view_model *model);
/* Sets what rows of maps in order lost: the bins that they would have needed less. Returns 0 or -ENOMEM. */
int view_model__measure(struct view_model *model);

/* Puts the ranks that lost most first, each with its threads; measured before. */
void view_model__sort_by_loss(struct view_model *model);

/* Returns the row of the rank that lost most, or the number of rows where none lost anything. */
size_t view_model__worst_row(const struct view_map *map);

void view_model__free(struct view_model *model);

#define VIEW_MEAN_OF 8 /* rows of a line beyond which it shows their mean: of many ranks one is slow at any time */

/*
 * Finds the slowest value of rows [row, row_end) in each of `columns` groups of `step` bins, of more than VIEW_MEAN_OF
 * rows the lowest mean; NAN where no bin is known. For bins emitted twice the higher revision counts, for equal
 * revisions the later one. Returns 0 or -ENOMEM.
 */
int view_model__cells(const struct view_map *map, size_t row, size_t row_end, uint64_t step, size_t columns,
		      double *cells);

/* Draws one map, width columns and at most most_rows rows, in 256 colours or plain characters. Returns 0 or -ENOMEM. */
int view_model__draw_map(const struct view_map *map, FILE *out, bool color, unsigned width, unsigned most_rows);

#endif
