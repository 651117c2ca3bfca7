/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line per cause: what variances of a job have in common, by cause, culprit and kind of place, rolled up. A
 * thousand regions in which one program preempted ranks are one cause, and a region has as many as took much of it.
 * Culprits are distinguished by their name and, where they are ranks of another job, by that job, not by their process
 * numbers; the kind of place divides causes without a culprit only.
 *
 * Adding is free of order: of each variance the highest revision counts, and sums are whole nanoseconds. It is bounded:
 * of more than CAUSES_REGIONS variances the older half that has ended is summed up for good, and a later revision of
 * those is ignored; of more than CAUSES_NAMES culprits further ones are one, named CAUSES_OTHER. Sets of ranks and
 * hosts are as large as the job. A variance that waits for another one is part of that one's loss and no cause of its
 * own. Where jobs come and go, those that are over are dropped by causes__drop_over.
 */
#ifndef VAPRO_ANALYSIS_CAUSES_H
#define VAPRO_ANALYSIS_CAUSES_H

#include "base/archive.h"

#include <vapro/analysis.h>

#include <stddef.h>

#define CAUSES_REGIONS 4096
#define CAUSES_NAMES 4096
#define CAUSES_OVER_NS 600000000000ULL /* a job of which nothing came for so long, where others went on, is over */
#define CAUSES_OTHER "(others)"
#define CAUSE_VARIANCES 16 /* ids that a cause lists, of those that lost most */

struct causes;

/* A variance as the roll-up sees it. Texts and lists are copied. */
struct cause_region {
	const char *job; /* NULL: no name */
	uint32_t user;	 /* as in struct vapro_thread */
	uint64_t id;
	uint32_t part; /* number of the cause among those of the variance; the first, 0, is added first */
	uint32_t revision;
	bool closed, confirmed;
	bool alarm;
	uint64_t effect_of;
	const char *cause;   /* NULL: not known yet */
	const char *culprit; /* name of a task; NULL: none */
	uint32_t pid;	     /* of the culprit */
	double culprit_seconds,
	    task_seconds; /* lost to the culprit, and to all tasks that ran instead, in this cause */
	enum vapro_relation relation;
	const char *culprit_job; /* the other job that the culprit is a rank of; NULL: none */
	int32_t culprit_rank;	 /* in it; -1: not known */
	const char *place;	 /* the first fact that the ranks share: "host", "socket", ...; NULL: none */
	enum vapro_class class;
	uint64_t begin_ns, end_ns; /* UTC */
	double lost_seconds, caused_seconds;
	const int32_t *ranks; /* -1: not known */
	uint32_t rank_count;
	const char *const *hosts;
	uint32_t host_count;
};

/* A cause as it is listed. All is owned by its list. */
struct cause {
	const char *job;
	uint32_t user;
	const char *cause, *culprit, *place; /* culprit and place NULL: none */
	const char *culprit_job;	     /* the other job that the culprit is of; NULL: none */
	int32_t culprit_rank;		     /* in it; -1: not known, or several */
	uint32_t pid;			     /* of the culprit; 0: several */
	double culprit_share;		     /* its part of the time of the tasks that ran instead; NAN: not known */
	enum vapro_relation relation;
	bool confirmed, alarm;
	enum vapro_class class;	      /* that which lost most */
	enum vapro_severity severity; /* of all of it, by its rated share and its own loss */
	uint64_t begin_ns, end_ns;
	uint64_t job_begin_ns; /* UTC; 0: not known */
	double job_seconds;    /* its ranks' time */
	double lost_seconds, caused_seconds;
	double share;	   /* lost and caused, of the job's time; NAN: that is not known */
	double lost_share; /* lost alone */
	double
	    rated_share; /* the greatest share in any hour, in steps of minutes, or of the whole job; NAN: not known */
	double denominator_seconds; /* ranks' time of which that is */
	uint64_t regions;	    /* variances */
	uint64_t intervals;	    /* sum of the ranks of all variances */
	int32_t *ranks;		    /* known ranks, ascending */
	uint32_t rank_count;
	const char **hosts; /* in order */
	uint32_t host_count;
	uint64_t variances[CAUSE_VARIANCES]; /* ids, most lost first */
	uint32_t variance_count;
	bool little;  /* a rest that nothing explains, below all bounds: it is counted, not listed */
	bool changed; /* much, since the last call of causes__emitted */
	bool over;    /* its job is */
};

/* Confirmed causes first, then by severity, then by lost and caused seconds, most first. */
struct cause_list {
	struct cause *items;
	uint32_t count;
};

/* config: the shares that decide the severity. Returns NULL when out of memory. */
struct causes *causes__new(const struct vapro_config *config);
void causes__free(struct causes *causes);

/* Writes or reads all causes; an object to be read is new. */
void causes__archive(struct archive *archive, struct causes *causes);

/* Whether a cause is as sure as its variance: what is not explained beside causes is not. */
static inline bool cause_region__is_sure(bool variance, bool explained, uint32_t part)
{
	return variance && (explained || !part);
}

/* Adds a cause of a variance, or of a revision of it. Returns 0 or -ENOMEM. */
int causes__add(struct causes *causes, const struct cause_region *region);

/* Adds all that a window reports: its variances and the time of its ranks. Returns 0 or -ENOMEM. */
int causes__add_result(struct causes *causes, const struct job_result *result);

/* Adds the time of a job's ranks in [begin_ns, end_ns), UTC: costs are shares of it. Returns 0 or -ENOMEM. */
int causes__add_time(struct causes *causes, const char *job, uint32_t user, uint64_t begin_ns, uint64_t end_ns,
		     double rank_seconds);

/*
 * Returns the severity of an alarm of a job that lost so much and made others wait so long in [begin_ns, end_ns), rated
 * by all time that was added; `otherwise` where that is not known.
 */
enum vapro_severity causes__severity(const struct causes *causes, const char *job, uint32_t user, uint64_t begin_ns,
				     uint64_t end_ns, double lost_seconds, double caused_seconds,
				     enum vapro_severity otherwise);

/* Lists the causes; the list lives until it is freed or the causes change. Returns 0 or -ENOMEM. */
int causes__list(struct causes *causes, struct cause_list *list);
void causes__free_list(struct cause_list *list);

/* Forgets the jobs that are over. Lists become invalid. Returns 0, or -ENOMEM with all still known. */
int causes__drop_over(struct causes *causes);

/* Notes that a cause was emitted as it is. Returns 0 or -ENOMEM. */
int causes__emitted(struct causes *causes, const struct cause *cause);

#endif
