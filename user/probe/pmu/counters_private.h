/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the counters share: counters.c opens, counter_choice.c knows what, counter_fill.c makes
 * time of counts, counter_report.c tells.
 */
#ifndef VAPRO_COUNTERS_PRIVATE_H
#define VAPRO_COUNTERS_PRIVATE_H

#include "probe/pmu/counters.h"
#include "probe/pmu/event_set.h"

#define COUNTER_PMUS 8
#define COUNTER_LINES 64 /* of the groups of all stages */

/* What the counts of bundles are, of those that bear its number: they may come in when others are counted already. */
struct counter_layout {
	const struct event_group *group; /* NULL: none */
	uint8_t fixed, count;
	uint8_t reference;	    /* which of them counts time in user mode; 0: none */
	uint8_t row[KERNEL_EVENTS]; /* places in the group, of those from fixed on */
};

#define COUNTER_LAYOUTS 256 /* as many as a bundle's key has numbers */

struct usual;

struct counters {
	const struct vapro_config *config;
	const char *provider;
	const struct event_cpu *table; /* NULL: this CPU is in none */
	struct cpu_id id;
	struct pmu pmus[COUNTER_PMUS];
	size_t pmu_count;
	struct cpu_list online, cpus; /* cpus: those that are counted on */
	bool smt;
	double width, tsc_hz;
	struct counted events[KERNEL_EVENTS]; /* instructions, named ones, the group's */
	size_t fixed, count;		      /* of them: not of the group, and all */
	const struct event_group *group;
	struct event_set *set;
	struct counter_layout layouts[COUNTER_LAYOUTS];
	uint8_t layout;	     /* number of the present one; 0 before the first */
	struct usual *usual; /* see counter_fill.c */
	struct counter_line lines[COUNTER_LINES + 1];
	size_t line_count;
	char reason[256]; /* why nothing is counted */
	char note[160];	  /* what must be known of instructions */
};

/* What there is to count with: PMUs, CPUs, the model's table. 0, or -errno with a sentence in err. */
int choice__look(struct counters *counters, char *err, size_t err_size);

/* How an event is opened here: the site's way, the table's, or the kernel's. */
int choice__instructions(const struct counters *counters, struct counted *counted, char *err, size_t err_size);
int choice__named(const struct counters *counters, const char *name, struct counted *counted, char *err,
		  size_t err_size);
int choice__row(const struct counters *counters, const struct event *row, struct counted *counted, char *err,
		size_t err_size);

/* Counts a loop with it: whether it opens, and counts where every program makes it count. 0 or -errno. */
int choice__try(const struct counted *counted, char *err, size_t err_size);

/* What stage 1 told of kinds of work; free() it. NULL when out of memory: then later stages tell less. */
struct usual *usual__new(void);

/* How the events that are open are laid out. */
void counters__lay_out(const struct counters *counters, struct counter_layout *layout);

/* Shares of a layout's group, which it must have; retiring: share of stage 1, 0 unknown. whole may be NULL. */
bool counters__shares(const struct counters *counters, const struct counter_layout *layout, const uint64_t *counts,
		      double retiring, double *share, double *whole);

#endif
