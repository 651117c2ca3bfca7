/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics of a daemon or worker, as a file for the textfile collector of node_exporter (docs/metrics.md): what the jobs
 * of the last windows are like, and counters since the start. Series are bounded: no label has a rank, process,
 * command, user or path, METRICS_JOBS jobs have series of their own, and a job has them until METRICS_AFTER_NS after
 * its last window; what further jobs lose is that of the job "other". Counters never fall while the process runs.
 */
#ifndef VAPRO_METRICS_H
#define VAPRO_METRICS_H

#include "analysis/causes.h"

#include <stdbool.h>
#include <stdint.h>

#define METRICS_JOBS 64
#define METRICS_OF_JOB 12 /* series of a job, at most */
#define METRICS_FIXED 40  /* series beside those of jobs, at most */
#define METRICS_AFTER_NS 300000000000ULL

struct metrics;

/* What the caller has counted since the start. */
struct metrics_counts {
	uint64_t lost_lines;	   /* of outputs, without those of the limit */
	uint64_t over_lines;	   /* that --output-max cost */
	uint64_t discarded_blocks; /* that no broker took */
	uint64_t published_blocks;
	double overhead_pct; /* NAN: that of the jobs' windows counts */
};

/* path is copied. Returns NULL when out of memory. */
struct metrics *metrics__new(const char *path);
void metrics__free(struct metrics *metrics);

/*
 * Takes the result of a job's window; cluster: of the job. now_ns: of any clock that all calls share. A job whose text
 * is the same as that of another user's or cluster's job is not shown by itself. Returns 0 or -ENOMEM.
 */
int metrics__add(struct metrics *metrics, const char *cluster, const struct job_result *result, uint64_t now_ns);

/* Takes the causes of losses of jobs so far. What is in no result before is passed over. */
void metrics__add_causes(struct metrics *metrics, const char *cluster, const struct cause_list *list);

/* Writes the metrics as text. up: false once the process ends. Returns 0 or -ENOMEM. */
int metrics__print(struct metrics *metrics, const struct metrics_counts *counts, bool up, uint64_t now_ns, char **text);

/*
 * Replaces the file by the present metrics: a new file of mode 0644 beside it is renamed, so that a reader has all or
 * none of it. Returns 0 or a negative errno.
 */
int metrics__write(struct metrics *metrics, const struct metrics_counts *counts, bool up, uint64_t now_ns);

#endif
