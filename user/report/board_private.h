/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The data of a board: filled by board.c, written by board_write.c. */
#ifndef VAPRO_REPORT_BOARD_PRIVATE_H
#define VAPRO_REPORT_BOARD_PRIVATE_H

#include "detect/heatmap.h"
#include "report/board.h"

#define BOARD_RETAINED_NS (HEATMAP_SPAN * VAPRO_BIN_NS) /* time for which windows and what has ended is retained */
#define BOARD_OVER_NS 60000000000ULL			/* and shown by `vapro top` */

/* A record as it was emitted, and as the job's user may see it. */
struct board_text {
	char *whole, *shown;
	bool others; /* it names tasks that the user may not see: shown differs */
};

struct board_region {
	uint64_t id, ended_ns; /* ended_ns: end of the window in which it was closed; 0: it is open */
	double lost_s;
	struct board_text variance, diagnosis;
};

/* A hang, which is about tasks of the job's own user only. */
struct board_hang {
	uint64_t id, ended_ns; /* ended_ns: end of the window in which it was closed; 0: it lasts */
	char *line;
};

#define BOARD_HANGS 8 /* of a job: the latest */

struct board_window {
	char *line;
	uint64_t end_ns;
};

struct board_row {
	uint32_t pid;
	int32_t rank;
	double speed[VAPRO_CLASSES]; /* NAN: not evaluated at the window's end */
	double evaluated;	     /* 0..1, share of the window in which a class could be evaluated */
};

struct board_job {
	char *name;
	uint32_t user;
	uint64_t end_ns;	      /* of its latest window */
	struct board_window *windows; /* their records, the latest last */
	size_t window_count, window_capacity;
	uint32_t world_size; /* of the latest one, where the window came as records */
	struct board_row *rows;
	size_t row_count, row_capacity;
	struct board_region *regions;
	size_t region_count, region_capacity;
	uint64_t regions_left_out;
	struct board_hang hangs[BOARD_HANGS]; /* the latest last */
	size_t hang_count;
};

struct board {
	board_shows shows;
	void *ctx;
	board_share share; /* NULL: none */
	void *share_ctx;
	struct board_job *jobs;
	size_t job_count, job_capacity;
	uint64_t jobs_left_out;
	const struct job_result *result; /* of the job whose lines come; NULL: of none */
	size_t current;			 /* this job's place among jobs */
	char *hello;			 /* the hello record, or NULL */
	char *stage;			 /* the latest stage record, or NULL */
	size_t bytes;			 /* of the records of regions and hangs */
	size_t window_bytes;		 /* of the records of windows */
	uint64_t end_ns;		 /* of the latest window; 0: none */
};

/* Frees what a job holds. */
void board_job__free(struct board *board, struct board_job *job);

#endif
