/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What vaprod says of its present state in one snapshot (query/status.h), read from its records. */
#ifndef VAPRO_TOP_SNAPSHOT_H
#define VAPRO_TOP_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vapro/analysis.h>

#include "report/regions.h"

struct summary;

/* A process; numbers that are unknown are NAN, speeds are 0..1 of the best observed one. */
struct top_process {
	uint32_t pid;
	int32_t rank; /* -1 unknown */
	char *exe;
	char probes[16]; /* "open", "reduced", "closed", "ended" */
	double speed[VAPRO_CLASSES];
	double evaluated_pct, calls_per_s, overhead_pct;
};

struct top_job {
	char *name, *host;
	char *title;	    /* what people call it: its name and short identity */
	uint32_t user;	    /* as in struct vapro_thread */
	char user_name[64]; /* the user's name, or number */
	uint32_t world_size;
	struct top_process *processes;
	size_t process_count, process_capacity;
	double speed[VAPRO_CLASSES]; /* of the latest window; NAN unknown, as below */
	double coverage, overhead_pct, overhead_most_pct;
	uint64_t lost[VAPRO_LOSSES]; /* fragments lost in that window */
	uint64_t regions_left_out;
	/* sums over its regions that last and are no effects of others */
	size_t region_count, alarm_count;
	double lost_s; /* lost and caused */
	char *hang; /* time without progress in words, the one that lasts or else the last one; NULL: there is none */
	bool hang_lasts, hang_alarm;
};

struct top_snapshot {
	uint64_t utc_ns, begin_ns, window_end_ns; /* now; begin of the run; end of the latest window, 0: none yet */
	char *host, *version, *stage;		  /* stage: the factor whose parts are counted, or NULL */
	uint32_t pid;
	double window_s;
	bool all;	       /* the jobs of all users */
	double daemon_cpu_pct; /* NAN unknown */
	uint64_t lost_lines, jobs_left_out;
	struct top_job *jobs;
	size_t job_count, job_capacity;
	struct summary *summary; /* holds the regions */
	size_t bad_lines;	 /* lines that are no records, or contradict themselves */
};

/* Returns the name of a user in name, of 64 bytes; NULL: its number is used. */
typedef void (*top_user_name)(uint32_t uid, char *name);

/*
 * Reads a snapshot of NDJSON records; size: of the text without its NUL. Returns it, or NULL where memory is short or
 * the text has no `status` record.
 */
struct top_snapshot *top_snapshot__read(const char *text, size_t size, top_user_name user_name);
void top_snapshot__free(struct top_snapshot *snapshot);

/* The slow regions, those that have ended too; they stay the snapshot's. */
const struct regions *top_snapshot__regions(const struct top_snapshot *snapshot);

/* Returns whether a region is the effect of one that is in the snapshot, too, and is shown with that. */
bool top_snapshot__has_cause(const struct top_snapshot *snapshot, const struct region *region);

/* Returns whether a job hangs now, which is an alarm. */
bool top_job__hangs(const struct top_job *job);

/* Returns whether a region is one of a job. */
bool top_job__has(const struct top_job *job, const struct region *region);

#endif
