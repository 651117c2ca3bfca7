/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the roll-up share: regions as they are held, and sums of them. */
#ifndef VAPRO_ANALYSIS_CAUSES_PRIVATE_H
#define VAPRO_ANALYSIS_CAUSES_PRIVATE_H

#include "analysis/causes.h"
#include "base/intern.h"

/* What regions of one cause have in common, as ids of texts. */
struct cause_key {
	uint32_t job, user, cause, culprit, culprit_job, place;
	bool confirmed;
};

#define CAUSE_MINUTES_MOST 525600 /* of one region: a year */

/* Nanoseconds by minute since 1970, ascending; minutes without any are left out. */
struct cause_minute {
	uint64_t minute, ns;
};

struct cause_minutes {
	struct cause_minute *items;
	size_t count, capacity;
};

/* The latest revision of a variance, one of its causes. */
struct rolled_region {
	struct cause_key key;
	uint64_t id;
	uint32_t part; /* number of the cause among those of the variance, from 0 on */
	uint32_t revision, pid;
	int32_t culprit_rank;
	enum vapro_relation relation;
	enum vapro_class class;
	bool closed, alarm;
	uint64_t effect_of; /* id of the region that this one waits for; 0: none */
	uint64_t begin_ns, end_ns, lost_ns, caused_ns, culprit_ns, task_ns;
	int32_t *ranks;
	uint32_t *hosts;
	uint32_t rank_count, host_count;
};

/* The sum of regions of one key. */
struct cause_sum {
	struct cause_key key;
	bool alarm;
	uint32_t pid;
	bool pids; /* several processes */
	int32_t culprit_rank;
	enum vapro_relation relation;
	struct cause_minutes minutes; /* lost and caused */
	uint64_t begin_ns, end_ns, lost_ns, caused_ns, culprit_ns, task_ns, regions, intervals, class_ns[VAPRO_CLASSES];
	uint64_t *ranks; /* a bit each */
	size_t rank_words;
	uint32_t *hosts; /* a bit for each id */
	size_t host_words;
	struct {
		uint64_t id, lost_ns;
	} worst[CAUSE_VARIANCES];
	uint32_t worst_count;
};

struct cause_sums {
	struct cause_sum *items;
	size_t count, capacity;
};

struct job_time {
	uint32_t job, user;
	double rank_seconds;
	uint64_t begin_ns, end_ns;
	struct cause_minutes minutes; /* of all ranks */
};

/* What was emitted of a cause. */
struct emitted_cause {
	struct cause_key key;
	uint64_t cost_ns;
	enum vapro_severity severity;
	bool alarm;
};

struct causes {
	struct intern *texts, *hosts;
	double critical_share, warning_share, min_lost_s;
	struct rolled_region *regions; /* by job, user and id */
	size_t region_count, region_capacity;
	uint64_t folded;	   /* regions up to this id are in the sums, unless they are still held */
	struct cause_sums history; /* regions that are no longer held */
	struct job_time *times;
	size_t time_count, time_capacity;
	uint64_t latest_ns; /* end of the latest time of any job */
	struct emitted_cause *emitted;
	size_t emitted_count, emitted_capacity;
	uint32_t names; /* greatest id of a culprit's name */
};

/* Returns whether a region is of the latest revision of its variance: an earlier one may have had more causes. */
bool causes__is_current(const struct causes *causes, size_t region);

/* Returns the time of a job, or NULL where none was added. */
struct job_time *causes__time_of(const struct causes *causes, uint32_t job, uint32_t user);
bool causes__is_over(const struct causes *causes, const struct job_time *time);

/* Adds ns that are spread evenly over a time. Returns 0 or -ENOMEM. */
int causes_rating__add(struct cause_minutes *minutes, uint64_t begin_ns, uint64_t end_ns, uint64_t ns);
int causes_rating__merge(struct cause_minutes *into, const struct cause_minutes *from);

/* Computes the greatest share that costs have of an hour, and the ranks' time of that hour, ns; NAN where it is not
 * known. */
void causes_rating__rate(const struct cause_minutes *costs, const struct job_time *time, double *share,
			 double *denominator_ns);

/* Adds a region to the sum of its key. Returns 0 or -ENOMEM. */
int causes__add_region(struct cause_sums *sums, const struct rolled_region *region);
void causes__clear_sum(struct cause_sum *sum);

#endif
