/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The meaning of events on each CPU: a small table of data per model, made from the vendors' lists
 * (intel/perfmon, the kernel's pmu-events, Arm's telemetry data). Events come in groups that are counted
 * together; each has the formula that turns its counts into shares (probe/pmu/topdown.h). Stage 1 divides
 * all time, later stages one part of it (VAPRO (PPoPP'22) section 4.1).
 */
#ifndef VAPRO_EVENTS_H
#define VAPRO_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include <vapro/bpf/abi.h>

#include "probe/pmu/topdown.h"

#define EVENTS_IN_GROUP (KERNEL_EVENTS - 1) /* instructions are counted beside every group */

enum event_flag {
	EVENT_OPTIONAL = 1,  /* left out where it does not fit: the formula does without */
	EVENT_REFERENCE = 2, /* cycles of the time-stamp counter's rate while not halted: time in user mode */
	EVENT_BUSY = 4,	     /* every running program makes it count: 0 is a counter that does not work */
};

struct event {
	const char *name; /* the vendor's */
	uint64_t config;  /* raw, as the vendor's list has it */
	uint8_t cmask;	  /* added to config where a formula wants cycles in which at least so many happen */
	uint8_t flags;
};

struct event_group {
	const char *name;
	int stage;
	const char *parent; /* factor it divides; NULL: all time */
	const char *approx; /* why its shares are approximate; NULL: they are exact */
	const char *parts[TOPDOWN_PARTS + 1];
	topdown_formula formula;
	topdown_whole whole; /* for later stages whose group counts all time as well; or NULL */
	struct event events[EVENTS_IN_GROUP];
};

struct event_cpu {
	const char *name;			 /* short; that of the vendor's list */
	const char *title;			 /* for people */
	double width;				 /* slots per cycle */
	struct event instructions;		 /* retired; the workload */
	const struct event_group *const *groups; /* NULL-terminated; at least one per stage */
	const struct event_group *stage1_smt;	 /* instead of the first where cores are shared; or NULL */
	struct event named[4];			 /* events that users may name by a common name */
	const char *const *named_as;
};

/* Identity of a CPU. */
struct cpu_id {
	char vendor[16]; /* x86: GenuineIntel, AuthenticAMD */
	unsigned family, model, stepping;
	uint64_t midr; /* arm64; 0 elsewhere */
};

/* The model's table, or NULL. */
const struct event_cpu *events__match(const struct cpu_id *id);

/* All tables, for tests. */
extern const struct event_cpu *const event_cpus[];
extern const size_t event_cpu_count;

/* Clocks in place of counters, to test with: no CPU's table. */
extern const struct event_cpu event_cpu_clocks;

/* Reads the identity of a cpuinfo file's first processor; *id is all 0 where it is not given. */
void events__read_cpu(const char *cpuinfo, struct cpu_id *id);

/* As text: "GenuineIntel 6-8f-8", "MIDR 0x413fd0c1". */
void events__format_cpu(const struct cpu_id *id, char *text, size_t size);

/* An event of the CPU by its vendor's or common name; NULL where it has none. */
const struct event *events__find(const struct event_cpu *cpu, const char *name);

/* The number of events in a group. */
size_t events__group_size(const struct event_group *group);

static inline uint64_t event__config(const struct event *event)
{
	return event->config | (uint64_t)event->cmask << 24;
}

#endif
