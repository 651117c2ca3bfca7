/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The variance breakdown model (papers/000 section 4.1, figure 10) as data: a tree of factors, each
 * level a partition of its parent's time. Stage 1 splits a duration into what the CPU did (one
 * `on_cpu` where no PMU tells more), kernel, irq and suspension; stage 2 splits suspension.
 */
#ifndef VAPRO_FACTORS_H
#define VAPRO_FACTORS_H

#include <vapro/bundle.h>

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
	FACTOR_NODES,
};

#define FACTOR_ROOT FACTOR_NODES

struct factor_info {
	const char *name;
	int stage;
	enum factor_node parent; /* FACTOR_ROOT at stage 1 */
};

extern const struct factor_info factor_infos[FACTOR_NODES];

/*
 * Splits a duration (ns, of any number of fragments, with their factor sums) into time[]. Each level
 * sums to its parent: time on the CPU that no counter explains is `on_cpu`, or spread over the
 * counters' shares where there are some. Returns whether counters told anything.
 */
bool factors__partition(double sum_ns, const double *factor, double *time);

#endif
