/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events that are opened together: on every CPU one pinned group, so that all of them count all of
 * the time or none does. A group that does not fit is refused; nothing is ever multiplexed and scaled.
 */
#ifndef VAPRO_EVENT_SET_H
#define VAPRO_EVENT_SET_H

#include "probe/pmu/events.h"
#include "probe/pmu/pmu.h"

/* An event as it will be opened. */
struct counted {
	char name[64];
	struct pmu_event event;
	bool software;		 /* counts where user mode cannot be separated */
	bool by_core;		 /* hybrid CPUs: the kind of core goes into config */
	const struct event *row; /* row of the CPU's table; NULL: none */
};

struct event_set;

/*
 * Opens the events as one group on each of the CPUs; pmus give the kinds of cores. Every group was read
 * once: it counts. Returns 0 with *set, or a negative errno with a sentence in err that says what does
 * not fit and, where that is known, why.
 */
int event_set__open(const struct counted *events, size_t count, const struct cpu_list *cpus, const struct pmu *pmus,
		    size_t pmu_count, struct event_set **set, char *err, size_t err_size);
void event_set__close(struct event_set *set);

/* The descriptor of an event on a CPU; -1 where it is not counted there. */
int event_set__fd(const struct event_set *set, unsigned cpu, size_t event);

/*
 * Time to read an event in this thread, in ns, beyond *bare_ns, that of an event that is no counter: the least
 * of many readings. Natively it is some 30 ns; where a hypervisor catches the instruction, microseconds.
 * 0: unknown.
 */
double event_set__read_ns(const struct counted *counted, double *bare_ns);

/*
 * Counts a loop of `loops` rounds, of LOOP_INSTRUCTIONS each, in this thread. Fills counts.
 * Returns 0 or a negative errno with a sentence in err.
 */
int event_set__measure(const struct counted *events, size_t count, uint64_t loops, uint64_t *counts, char *err,
		       size_t err_size);

#define LOOP_INSTRUCTIONS 2

#endif
