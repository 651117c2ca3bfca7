/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of a trace share: its output, and the events of each kind. */
#ifndef VAPRO_EXPORT_TRACE_PRIVATE_H
#define VAPRO_EXPORT_TRACE_PRIVATE_H

#include <stdio.h>

#include "export/row_order.h"
#include "page/run_report.h"

struct trace {
	const struct run_report *report;
	FILE *out;
	uint64_t start_ns; /* UTC: zero of its times */
	uint64_t events, slices, left_out;
	unsigned last_id; /* processes and threads have different numbers, in the order of their appearance */
	bool out_of_memory;
};

/* A row of the trace: a rank, a thread or a task. */
struct trace_row {
	unsigned process, thread; /* numbers */
	char name[400];
};

/* A job of the run: the maps of its classes, and its rows. */
struct trace_job {
	const char *name; /* as shown */
	const struct view_map *maps[VAPRO_CLASSES];
	size_t map_count;
	struct row_order order;
	struct trace_row *rows; /* in that order */
	unsigned process;	/* number of the job's own process */
};

/* Makes an event; args is taken, or NULL. Its members can be added to before it is put. */
cJSON *trace__event(struct trace *trace, const char *phase, const char *name, unsigned process, unsigned thread,
		    cJSON *args);

/* Adds the time, and a duration where end_ns is not 0. */
void trace__set_time(struct trace *trace, cJSON *event, uint64_t begin_ns, uint64_t end_ns);

/* Writes and frees an event. */
void trace__put(struct trace *trace, cJSON *event);

/* Names a process, or a thread of one, and returns its number. */
unsigned trace__add_process(struct trace *trace, const char *name);
unsigned trace__add_thread(struct trace *trace, unsigned process, const char *name);

/* trace_counters.c: performance over time by class. Returns 0 or -ENOMEM. */
int trace__counters(struct trace *trace, const struct trace_job *job);

/* trace_hangs.c: the times in which a job made no progress, on a row of the job's process. */
void trace__hangs(struct trace *trace, const struct trace_job *job);

/* trace_regions.c: regions and fragments on the rows of their ranks, and tasks that ran instead. Returns 0 or -ENOMEM.
 */
int trace__regions(struct trace *trace, const struct trace_job *job);

/*
 * Complete events of a trace before they are written. Those of one row may only nest; what overlaps otherwise goes to a
 * further lane of the row, which a viewer shows as a row below it.
 */
#define TRACE_LANES 32 /* most lanes of a row */

enum trace_kind { TRACE_REGION, TRACE_FRAGMENT, TRACE_TASK };

struct trace_slice {
	size_t row; /* number of the row within its job, or of the task */
	uint64_t begin_ns, end_ns;
	enum trace_kind kind;
	const struct run_region *region;
	const cJSON *item; /* fragment: the exemplar; task: the interferer */
	bool whole;	   /* the event that has all that is known of its region */
	unsigned lane;	   /* filled by trace_slices__place(); TRACE_LANES: there was no room */
};

struct trace_slices {
	struct trace_slice *items;
	size_t count, capacity;
};

/* Adds a slice. Returns 0 or -ENOMEM. */
int trace_slices__add(struct trace_slices *slices, const struct trace_slice *slice);

/* Sorts by row and begin, and chooses lanes in which slices nest. */
void trace_slices__place(struct trace_slices *slices);
void trace_slices__free(struct trace_slices *slices);

#endif
