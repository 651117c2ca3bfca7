/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slow regions printed for a person: ranked by lost seconds, waiting effects under their cause. The
 * end summary fills the list from results, `vapro view` from lines.
 */
#ifndef VAPRO_REPORT_REGIONS_H
#define VAPRO_REPORT_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <vapro/analysis.h>

#include "diagnose/interferers.h"

#define REGION_CAUSES 48
#define REGION_INTERFERERS 3

struct region_cause {
	char name[32];
	double share; /* share of its level, 0..1 */
	bool major;
	bool part; /* a part of another cause in the list */
};

struct region_interferer {
	char comm[32];
	uint32_t pid;
	enum vapro_relation relation;
	int32_t rank;		  /* OTHER_JOB: in its job; -1: not known */
	char job[INTERFERER_JOB]; /* its job; "": none */
	double seconds;
};

/* A cause of a region; all of them add up to its loss. */
struct region_part {
	char cause[32];
	char culprit[32]; /* name of the task that is to blame; "": none */
	bool explained;
	double culprit_seconds; /* of what was lost, that it took; negative: not known */
	double lost_seconds, caused_seconds;
	uint64_t begin_ns, end_ns;
	int32_t *ranks; /* owned */
	uint32_t rank_count;
};

struct region {
	uint64_t id, effect_of;
	char *job, *class, *who, *site, *inside, *evidence, *advice, *verdict; /* owned; NULL where unknown */
	char *cause, *place;		  /* what regions are rolled up by; owned, NULL where unknown */
	uint32_t user;			  /* as in struct vapro_thread */
	struct region_interferer culprit; /* comm empty: none */
	int32_t *ranks;			  /* owned; -1: not known */
	uint32_t rank_count;
	char **hosts; /* owned, as the list */
	uint32_t host_count;
	enum vapro_severity level;
	uint64_t begin_ns, end_ns;
	bool site_unknown; /* site says only that its calls were not observed */
	bool work_unknown; /* performance is the share of time without obstacles to running */
	double performance, lost_seconds;
	double observed, whole_lost_seconds; /* as in struct result_variance */
	double unseen_before_seconds, unseen_after_seconds;
	double caused_seconds; /* waiting of others, caused by this region */
	char severity[16];     /* in words; "" unknown */
	bool confirmed, alarm, ended;
	bool place_only;	   /* not confirmed, but all ranks of one place are slow and no others */
	struct region_part *parts; /* owned */
	uint32_t part_count;
	struct region_cause causes[REGION_CAUSES];
	size_t cause_count;
	struct region_interferer interferers[REGION_INTERFERERS];
	size_t interferer_count;
};

struct regions {
	struct region *items;
	size_t count, capacity;
	struct table *places; /* of the items, by id and job; NULL: not made since the order has changed */
};

/* Returns a number of a job's name, the same for that with harmless characters only. */
uint64_t regions__job_number(const char *job);

/*
 * Writes how much earlier the region may have begun, and how much later it may have ended, since nothing was seen of
 * its ranks then: "1.40 s before it: it may have begun earlier". Returns text, or NULL where its borders are known.
 */
const char *regions__unseen(const struct region *region, char *text, size_t size);

/* Returns whether nothing was lost in a region, as in one that was withdrawn; it is not listed. */
bool regions__is_nothing(const struct region *region);

/* Returns whether a region counts as slow: confirmed, or an alarm. Others are perhaps slow. */
bool regions__sure(const struct region *region);

/* Finds or makes the region with this id; NULL when out of memory. */
struct region *regions__get(struct regions *regions, const char *job, uint64_t id);
void regions__free(struct regions *regions);

/*
 * Makes the table of places, by which regions are found, where there is none. Returns 0 or -ENOMEM. Who changes the
 * order makes it be forgotten.
 */
int regions__make_places(struct regions *regions);
void regions__forget_places(struct regions *regions);

/* Drops regions that lie outside [begin_ns, end_ns). */
void regions__clip(struct regions *regions, uint64_t begin_ns, uint64_t end_ns);

/* Replaces control characters in place: users choose names, and terminals show names. NULL is fine. */
char *regions__defuse(char *text);

/* Replaces an owned text by a defused copy. */
bool regions__set_text(char **text, const char *value);

/* Sets the ranks (copied). Returns whether there was memory. */
bool regions__set_ranks(struct region *region, const int32_t *ranks, uint32_t count);

/* Sets the causes (copied). Returns whether there was memory. */
bool regions__copy_causes(struct region *region, const struct result_cause *causes, uint32_t count);

/* Sets the hosts (copied, defused). Returns whether there was memory. */
bool regions__set_hosts(struct region *region, const char *const *hosts, uint32_t count);

struct regions_options {
	uint64_t start_ns; /* zero of offsets */
	unsigned width;
	size_t most;	  /* regions printed; the rest is counted */
	bool details;	  /* also the shares of all causes, which the verdict says in words */
	const char *more; /* how the rest is seen; NULL: it is not */
};

/* Sorts: sure regions first, then by cost. */
void regions__sort(struct regions *regions);

/* Returns what a factor of the region's diagnosis means, in words; NULL where it says nothing. */
const char *regions__meaning(const struct region *region, const char *factor);

/* Returns whether a region is waiting, which is no fault of its ranks. */
bool regions__is_waiting(const struct region *region);

/* Sorts and prints the regions. */
void regions__print(struct regions *regions, FILE *out, const struct regions_options *options);

#endif
