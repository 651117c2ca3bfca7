/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The variance breakdown model (VAPRO (PPoPP'22) section 4.1, figure 10) as data: a tree of factors over
 * stages, each level a partition of its parent's time. Stage 1 splits a duration into what the CPU
 * did (one `on_cpu` where no PMU measures more), kernel, irq and suspension; stage 2 splits those;
 * stage 3 memory. What the kernel attributes in time is in every bundle; what counters measure comes in
 * groups, of which only the current stage's are on. Counts have a place in the tree too: their time
 * is found by regression (section 4.2).
 */
#ifndef VAPRO_FACTORS_H
#define VAPRO_FACTORS_H

#include "model/bundle_rec.h"

/* Parents come before their parts. */
enum factor_node {
	NODE_ON_CPU,
	NODE_RETIRING,
	NODE_FRONTEND,
	NODE_BAD_SPECULATION,
	NODE_BACKEND,
	NODE_KERNEL,
	NODE_IRQ,
	NODE_SUSPENSION,
	NODE_PREEMPTED,
	NODE_WAKEUP_WAIT,
	NODE_BLOCKED_IO,
	NODE_BLOCKED_OTHER,
	NODE_THROTTLED,
	NODE_STEAL,
	NODE_STOPPED,
	NODE_FREQUENCY,
	NODE_FRONTEND_LATENCY,
	NODE_FRONTEND_BANDWIDTH,
	NODE_MISPREDICTS,
	NODE_CLEARS,
	NODE_MEMORY,
	NODE_CORE,
	NODE_PAGE_FAULTS,
	NODE_SYSTEM_CALLS,
	NODE_RECLAIM,
	NODE_HARD_IRQ,
	NODE_SOFT_IRQ,
	NODE_MINOR_FAULTS,
	NODE_MAJOR_FAULTS,
	NODE_VOLUNTARY_SWITCHES,
	NODE_INVOLUNTARY_SWITCHES,
	NODE_MIGRATIONS,
	NODE_KERNEL_OTHER,
	NODE_L1,
	NODE_L2,
	NODE_L3,
	NODE_DRAM,
	NODE_STORE,
	NODE_L2_FILLS,
	NODE_L3_FILLS,
	NODE_DRAM_FILLS,
	NODE_REMOTE_FILLS,
	NODE_MEMORY_OTHER,
	FACTOR_NODES,
};

#define FACTOR_ROOT FACTOR_NODES

/* Further advice on a factor. */
enum factor_cure {
	CURE_MEMORY = 1, /* where the memory of one host is slow */
	CURE_CACHE = 2,	 /* where a CPU's second-level cache loses lines: HPL in the papers */
};

/* All that is known of a factor: its place in the tree, and its texts. */
struct factor_info {
	const char *name;
	int stage;
	enum factor_node parent;  /* FACTOR_ROOT at stage 1 */
	enum vapro_factor factor; /* VAPRO_FACTORS: a sum, or what is left of its parent */
	bool rest;		  /* time that nothing explains */
	const char *noun;	  /* in a verdict: "mostly NOUN" */
	const char *meaning;	  /* in a table of causes */
	const char *advice;	  /* "RANKS: ADVICE"; NULL where advice.c has code for it */
	const char *in_work;	  /* the same of a computation; NULL: that of all classes */
	unsigned cures;		  /* enum factor_cure, added up */
};

extern const struct factor_info factor_infos[FACTOR_NODES];

/* Returns the node of that name; FACTOR_NODES if none. */
int factors__find(const char *name);

/* The factor that a group of counters splits, and the stage in which the group is on. */
struct counter_group_info {
	enum factor_node parent; /* FACTOR_ROOT: the CPU's time at stage 1 */
	int stage;
};

extern const struct counter_group_info counter_group_infos[COUNTER_GROUPS];

static inline bool factors__counted(enum factor_node node)
{
	return factor_infos[node].factor >= VAPRO_FACTOR_COUNTS && factor_infos[node].factor < VAPRO_FACTORS;
}

/* Returns the group of counters that a node comes from; COUNTER_GROUPS: in every bundle. */
enum counter_group factors__group(int node);
const enum counter_group *factors__groups(void); /* groups of all FACTOR_NODES */

/* Returns the nodes of a group, ascending. */
const unsigned char *factors__members(enum counter_group group, int *count);

/*
 * Makes the factors of a bundle of sum_ns agree with each other, in place: what counters measure is
 * scaled to the time on the CPU and to the factor it is a part of, since counters stop at the borders
 * of the probes and the clock does not; their shares are what counts. Returns the groups counted, as
 * bits.
 */
unsigned factors__finalize(double sum_ns, double *factor);

/* Splits a duration with factors that agree (and `counted` groups) into time[]. Counts get none. */
void factors__partition(double sum_ns, const double *factor, unsigned counted, double *time);

#endif
