/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a probe hit costs on this node, measured at start on a child of our own: no constant is
 * compiled in, since the cost of a trap differs by a factor of 30 between machines.
 */
#ifndef VAPRO_CALIBRATE_H
#define VAPRO_CALIBRATE_H

#include "probe/bpf/bpf_object.h"

/* Nanoseconds a call takes longer by; least of several batches. 0 where not measured. */
struct costs {
	double entry_ns;	/* entry at an emulated site, return skipped */
	double call_ns;		/* entry and return at an emulated site */
	double stepped_call_ns; /* entry and return at a single-stepped site */
	double nop5_ns;		/* entry at a five-byte nop */
	double syscall_ns;	/* a traced IO system call */
	double bystander_ns;	/* any system call of a process that is not watched, while IO is traced */
	/* what an entry and a return cost more after a pause (KERNEL_PAUSES); medians */
	double pause_ns[2][KERNEL_PAUSES];
};

/* Returns 0, or a negative errno with a sentence in err: then costs are 0 and the run should say so. */
int calibrate__run(struct kernel_side *side, bool syscalls, struct costs *costs, char *err, size_t err_size);

/* Cost of what a process's counters tell, in ns. */
double calibrate__cost(const struct costs *costs, const struct kernel_counters *counters);

#endif
