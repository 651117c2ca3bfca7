/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of a probe hit on this node is measured at start on a child of vaprod: no constant is
 * compiled in, since the cost of a trap differs by a factor of 30 between machines.
 */
#ifndef VAPRO_CALIBRATE_H
#define VAPRO_CALIBRATE_H

#include "probe/bpf/bpf_object.h"

/* Nanoseconds that a probe adds to a call; least of several batches. 0 where not measured. */
struct costs {
	double entry_ns;	/* entry at an emulated site, return skipped */
	double call_ns;		/* entry and return at an emulated site */
	double stepped_call_ns; /* entry and return at a single-stepped site */
	double nop5_ns;		/* entry at a five-byte nop */
	double syscall_ns;	/* a traced IO system call */
	double bystander_ns;	/* any system call of an untracked process, while IO is traced */
	/* extra cost of an entry and a return after a pause (KERNEL_PAUSES); medians */
	double pause_ns[2][KERNEL_PAUSES];
};

/* Measures costs. Returns 0, or -errno with a sentence in err: then costs are 0 and the run should report that. */
int calibrate__run(struct kernel_side *side, bool syscalls, struct costs *costs, char *err, size_t err_size);

/* Returns the cost of the hits in a process's counters, in ns. */
double calibrate__cost(const struct costs *costs, const struct kernel_counters *counters);

#endif
