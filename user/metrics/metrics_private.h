/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VAPRO_METRICS_PRIVATE_H
#define VAPRO_METRICS_PRIVATE_H

#include "base/table.h"
#include "metrics/metrics.h"

#define LABEL_BYTES 128

/* What took a job's time, in as many words as fit into its series. */
enum job_cause { JOB_PREEMPTED, JOB_HELD, JOB_OTHER, JOB_CAUSES };

enum node_cause {
	NODE_PREEMPTED,
	NODE_WAKEUP,
	NODE_THROTTLED,
	NODE_STOPPED,
	NODE_STEAL,
	NODE_IO,
	NODE_IRQ,
	NODE_FREQUENCY,
	NODE_PAGES,
	NODE_MEMORY,
	NODE_NETWORK,
	NODE_WAITING,
	NODE_OTHER,
	NODE_CAUSES
};

enum job_stat { STAT_MIN, STAT_P05, STAT_P50, JOB_STATS };

extern const char *const metrics__job_cause[JOB_CAUSES];
extern const char *const metrics__node_cause[NODE_CAUSES];
extern const char *const metrics__stat[JOB_STATS];

struct metrics_job {
	char *cluster, *job;
	uint32_t user;
	bool shown; /* it has series of its own */
	char label[LABEL_BYTES];
	uint64_t seen_ns;			      /* the last result */
	uint64_t current_ns;			      /* until then its performance counts */
	double performance[VAPRO_CLASSES][JOB_STATS]; /* NAN: not known */
	double lost[NODE_CAUSES];		      /* the greatest sums so far, seconds */
};

struct metrics {
	char *path, *fresh; /* fresh: written before it is renamed */
	struct metrics_job *jobs;
	size_t count, capacity;
	struct table *alarms; /* of (job, id): the highest severity that was counted */
	uint64_t alarm_count[VAPRO_SEVERITIES];
	double lost[NODE_CAUSES], other[JOB_CAUSES]; /* of all jobs, of those without series */
	uint64_t lost_fragments;
	/* since the last writing */
	double rank_seconds, covered[VAPRO_CLASSES], overhead_pct;
	bool judged;
};

enum job_cause metrics__fold(enum node_cause cause);

/* Whether a job's series are written at this time. */
bool metrics__is_shown(const struct metrics_job *job, uint64_t now_ns);

#endif
