/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of the counters: counters.c opens events, counter_choice.c chooses them, counter_fill.c
 * makes time of counts, counter_report.c reports.
 */
#ifndef VAPRO_COUNTERS_PRIVATE_H
#define VAPRO_COUNTERS_PRIVATE_H

#include "probe/pmu/counters.h"
#include "probe/pmu/event_set.h"

#define COUNTER_PMUS 8
#define COUNTER_LINES 64 /* events of the groups of all stages */

/* Layout of the counts of bundles that bear its number, which may come in when other events are open already. */
struct counter_layout {
	const struct event_group *group; /* NULL: none */
	uint8_t fixed, count;
	uint8_t reference;	    /* index of the event that counts user time; 0: none */
	uint8_t row[KERNEL_EVENTS]; /* index in the group of each event from fixed on */
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
	size_t fixed, count;		      /* events outside the group, and all */
	const struct event_group *group;
	struct event_set *set;
	struct counter_layout layouts[COUNTER_LAYOUTS];
	uint8_t layout;	     /* number of the present layout; 0 before the first */
	struct usual *usual; /* see counter_fill.c */
	struct counter_line lines[COUNTER_LINES + 1];
	size_t line_count;
	char reason[256]; /* why nothing is counted */
	char note[160];	  /* caveat about instructions */
};

/* Finds PMUs, CPUs and the model's table. 0, or -errno with a sentence in err. */
int counters__find_table(struct counters *counters, char *err, size_t err_size);

/* Say how an event is opened here: the site's way, the table's, or the kernel's. */
int counters__choose_instructions(const struct counters *counters, struct counted *counted, char *err, size_t err_size);
int counters__choose_named(const struct counters *counters, const char *name, struct counted *counted, char *err,
			   size_t err_size);
int counters__choose_row(const struct counters *counters, const struct event *row, struct counted *counted, char *err,
			 size_t err_size);

/* Counts a loop: the event must open, and count where every program makes it count. 0 or -errno. */
int counters__try(const struct counted *counted, char *err, size_t err_size);

/* Stage-1 results of kinds of work; free() them. NULL when out of memory: later stages then show less. */
struct usual *counters__new_usual(void);

/* Describes the layout of the open events. */
void counters__lay_out(const struct counters *counters, struct counter_layout *layout);

/* Shares of a layout's group, which it must have; retiring: share of stage 1, 0 unknown. whole may be NULL. */
bool counters__shares(const struct counters *counters, const struct counter_layout *layout, const uint64_t *counts,
		      double retiring, double *share, double *whole);

#endif
