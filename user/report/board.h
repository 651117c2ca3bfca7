/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live state of a run, for those who look at it while it goes on (`vapro top`, and `vapro report` without a file):
 * of each job its latest windows, the speed of its ranks at the last one's end, its slow regions and hangs. It is
 * filled from the results and records of windows, and written as records (ARCHITECTURE section 9) for one reader: a
 * user sees the jobs of that user only, and of tasks that took CPU time only those that the user may see. What it holds
 * is bounded; what it leaves out is counted.
 */
#ifndef VAPRO_REPORT_BOARD_H
#define VAPRO_REPORT_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <vapro/analysis.h>

#include "base/job_names.h"
#include "records/record_table.h"

struct board;

/* State of a process's probes. */
enum board_probes {
	BOARD_OPEN,
	BOARD_REDUCED, /* functions are left out, or returns are suppressed, to keep the budget */
	BOARD_CLOSED,  /* closed for a while, to keep the budget */
	BOARD_ENDED,   /* the process has ended */
	BOARD_UNKNOWN, /* the state comes from records */
	BOARD_PROBES,
};

extern const char *const board_probes_name[BOARD_PROBES];

/* What is known of a process now; texts are the caller's. */
struct board_process {
	uint32_t pid, user; /* user as in struct vapro_thread */
	int32_t rank;	    /* -1 where unknown */
	uint32_t world_size;
	const char *job, *exe;
	const struct job_names *names;	  /* what people call the job; NULL unknown */
	double calls_per_s, overhead_pct; /* in the last second; NAN: not known yet */
	enum board_probes probes;
};

/* What is known of the daemon. */
struct board_facts {
	const char *host, *version;
	uint32_t pid;
	uint64_t utc_ns, begin_ns; /* now, and the begin of the run (UTC) */
	double window_s;
	double daemon_cpu_pct; /* of the last window; NAN where unknown */
	uint64_t lost_lines;
};

/* Returns whether a user (as in struct vapro_thread) may see the name of a task that is no process of the user's job.
 */
typedef bool (*board_shows)(void *ctx, uint32_t user, const struct result_interferer *task);

/* shows NULL: no user may. Returns NULL when out of memory. */
struct board *board__new(board_shows shows, void *ctx);
void board__free(struct board *board);

/* Receives a record of a job as the job's user may see it; attached: the record says that a process is watched now. */
typedef void (*board_share)(void *ctx, const char *job, uint32_t user, const char *line, bool attached);

/* From now on share() gets the records of each job and of its processes. */
void board__share(struct board *board, board_share share, void *ctx);

/* Begins the lines of one job's window. */
void board__begin(struct board *board, const struct job_result *result);

/* Notes a line of the job whose window began, or a line of no job; lines of other types are ignored. */
void board__line(struct board *board, enum record_object type, const char *line);

/*
 * Notes a window of a job from its records, whole lines, in place of its result: the tasks in them are shown to all.
 * Returns 0 or -ENOMEM; lines that are no records are passed over.
 */
int board__records(struct board *board, const char *job, uint32_t user, const char *text, size_t size);

/* Forgets a job with all records about it. */
void board__forget(struct board *board, const char *job, uint32_t user);

/* Gets the ranks of the jobs' latest windows as processes, at most room; returns how many there are. Texts are the
 * board's. */
size_t board__ranks(const struct board *board, struct board_process *processes, size_t room);

/* Ends the windows of all jobs; end_ns: UTC. Jobs that ended a minute ago are forgotten. */
void board__end(struct board *board, uint64_t end_ns);

/* Who reads, and what. */
struct board_reader {
	uint32_t user; /* as in struct vapro_thread */
	bool all;      /* the reader may see all jobs */
	bool report;   /* what is retained, for a report; else the present */
};

/* Returns whether a reader may see the jobs of a user. */
bool board_reader__sees(const struct board_reader *reader, uint32_t user);

/*
 * Writes the state as records, one a line, `status` first (in a report for root after `hello`). processes: those of all
 * users. Returns 0, or -ENOMEM; an error of out is its own.
 */
int board__write(const struct board *board, const struct board_facts *facts, const struct board_process *processes,
		 size_t process_count, const struct board_reader *reader, FILE *out);

#endif
