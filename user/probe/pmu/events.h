/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which events tell what on which CPU: a small table of data per model, made from the vendors' lists
 * (intel/perfmon, the kernel's pmu-events, Arm's telemetry data). Events come in groups that are
 * counted together; each has the formula that turns its counts into shares (probe/topdown.h). Stage 1
 * parts all time, later stages one part of it (papers/000 section 4.1).
 */
#ifndef VAPRO_EVENTS_H
#define VAPRO_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include <vapro/kernel.h>

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
	const char *parent; /* what it parts; NULL: all */
	const char *approx; /* why it is no more than an approximation; NULL: it is not */
	const char *parts[TOPDOWN_PARTS + 1];
	topdown_formula formula;
	topdown_whole whole; /* of later stages, where a group counts all time as well; or NULL */
	struct event events[EVENTS_IN_GROUP];
};

struct event_cpu {
	const char *name;			 /* short; that of the vendor's list */
	const char *title;			 /* for people */
	double width;				 /* slots per cycle */
	struct event instructions;		 /* retired; the workload */
	const struct event_group *const *groups; /* NULL-terminated; of each stage at least one */
	const struct event_group *stage1_smt;	 /* instead of the first where cores are shared; or NULL */
	struct event named[4];			 /* what users may ask for by a common name */
	const char *const *named_as;
};

/* What identifies a CPU. */
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

/* Clocks in the place of counters: no CPU's, to test with. */
extern const struct event_cpu event_cpu_clocks;

/* Reads what the first processor of a cpuinfo file is; *id is all 0 where it does not tell. */
void cpu_id__read(const char *cpuinfo, struct cpu_id *id);

/* As text: "GenuineIntel 6-8f-8", "MIDR 0x413fd0c1". */
void cpu_id__format(const struct cpu_id *id, char *text, size_t size);

/* An event of the CPU by its vendor's or common name; NULL where it has none. */
const struct event *events__find(const struct event_cpu *cpu, const char *name);

/* The number of events in a group. */
size_t event_group__count(const struct event_group *group);

static inline uint64_t event__config(const struct event *event)
{
	return event->config | (uint64_t)event->cmask << 24;
}

#endif
