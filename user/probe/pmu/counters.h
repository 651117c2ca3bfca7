/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events that this machine can count, and those counted now. Instructions in user mode are the workload of a
 * computation wherever they can be had (VAPRO (PPoPP'22) section 3.3); beside them the events of stage 1 say
 * where the time went. Providers: hardware, none, and clocks in place of counters, which drive the same
 * code on machines without a PMU (--counters). An event that cannot be counted has a reason.
 */
#ifndef VAPRO_COUNTERS_H
#define VAPRO_COUNTERS_H

#include <stdio.h>
#include <vapro/bundle.h>
#include <vapro/config.h>

#include "probe/pmu/events.h"

struct counters;
struct kernel_bundle;
struct kernel_bundle_key;
struct vapro_bpf;

/* One event that is counted, or was wanted. */
struct counter_line {
	char name[64];
	const char *provider; /* hardware, clock, none */
	bool available;
	char reason[256]; /* why not, or a caveat; "" */
};

/* Opens the events that work: instructions, events named by the user, stage 1. NULL when out of memory. */
struct counters *counters__new(const struct vapro_config *config);
void counters__free(struct counters *counters);

/* Stops counting, for this reason: the kernel refuses the code that reads counters. */
void counters__give_up(struct counters *counters, const char *reason);

/* Whether instructions are counted; if not, why. */
bool counters__count(const struct counters *counters);
const char *counters__reason(const struct counters *counters);

/* The event of a bundle's magnitude VAPRO_NAMED + number; NULL: none. */
const char *counters__named(const struct counters *counters, size_t number);

/* The outcome of each event. */
const struct counter_line *counters__lines(const struct counters *counters, size_t *count);

/* Before the object is loaded: sets sizes, and whether the code that reads counters is there. */
int counters__prepare(const struct counters *counters, struct vapro_bpf *bpf);

/* After the load: gives the counters to the kernel side. 0 or -errno. */
int counters__arm(struct counters *counters, struct vapro_bpf *bpf);

/*
 * Counts another group from now on, NULL for none; computations that are under way stay uncounted.
 * A group that does not fit is left out: -errno, and err says why. Where not even instructions open
 * any more, nothing is counted until a later switch succeeds.
 */
int counters__switch(struct counters *counters, struct vapro_bpf *bpf, const struct event_group *group, char *err,
		     size_t err_size);

/* The groups that this CPU has (NULL-terminated; NULL: none). */
const struct event_group *const *counters__groups(const struct counters *counters);

/*
 * Follows CPUs that went or came; to be called now and then. 1 where all counters had to be opened again,
 * with a sentence in text; 0, or -errno.
 */
int counters__refresh(struct counters *counters, struct vapro_bpf *bpf, char *text, size_t size);

/* The group of a stage that divides a factor (NULL: all time), or NULL where this CPU has none. */
const struct event_group *counters__find(const struct counters *counters, int stage, const char *parent);

/* Names of the events that are counted now, joined by commas. */
void counters__names(const struct counters *counters, char *text, size_t size);

/*
 * Enters the counts of one key's computations into their bundle: workload, and the parts of the time on
 * the CPU that the group shows which was open when they were counted. A later stage's group shows parts
 * of one factor; that factor's time comes from a count of all time in the same group or, where there is
 * no counter for that, from the other factors of the same work at stage 1.
 */
void counters__fill(const struct counters *counters, const struct kernel_bundle_key *key,
		    const struct kernel_bundle *counted, double on_cpu_ns, struct vapro_bundle *bundle);

/*
 * Opens every group in turn, says what fits and why not, and what a known loop counts (`vapro check
 * --counters`). Returns whether instructions can be counted.
 */
bool counters__report(const struct vapro_config *config, FILE *out);

#endif
