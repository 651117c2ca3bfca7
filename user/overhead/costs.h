/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of probe hits, as calibrate.c measures it on this machine. Pure. */
#ifndef VAPRO_COSTS_H
#define VAPRO_COSTS_H

#include <stdint.h>

#include <vapro/bpf/abi.h>

/* Nanoseconds that a probe adds to a call; least of several batches. 0 where not measured. */
struct costs {
	double entry_ns;	/* entry at an emulated site, return skipped */
	double call_ns;		/* entry and return at an emulated site */
	double stepped_call_ns; /* entry and return at a single-stepped site */
	double nop5_ns;		/* entry at a five-byte nop */
	double syscall_ns;	/* a traced IO system call */
	double bystander_ns;	/* any system call of an untracked process, while IO is traced */
	double sample_ns;	/* a sample of a clock in a thread; 0 where none is taken */
	double beside_ns; /* a link of another process at the sites of a call: the kernel asks each whom it is for */
	/* extra cost of an entry and a return after a pause (KERNEL_PAUSES); medians */
	double pause_ns[2][KERNEL_PAUSES];
	double preamble_ns[2][KERNEL_PAUSES]; /* time of the first part of our BPF program at these hits; medians */
	double program_ns[2]; /* mean time of our BPF program at an entry and at a return; part of the costs above */
};

/*
 * Returns what hits of a kind (0: entries, 1: returns) cost more since they follow pauses, ns, by their number in each
 * class of pauses. In the calibration the thread walks through memory in its pauses; a program that uses less of it,
 * or a quieter host, leaves more of the trap's working set in the caches. The first part of our BPF program is the same
 * at every hit and shows how much: preamble_ns is its time at all these hits. Hits cost as many times what they cost in
 * the calibration as this part takes longer than without a pause here and there, four times at most.
 */
double costs__of_pauses(const struct costs *costs, int returned, const uint64_t pauses[KERNEL_PAUSES],
			uint64_t preamble_ns);

/*
 * Returns the part of costs__of() that hits cost more since they follow pauses, ns. *pauses: entries after a pause,
 * each weighed by its usual cost as a share of that of the most expensive class of pauses that occurred.
 */
double costs__after_pauses(const struct costs *costs, const struct kernel_counters *counters, double *pauses);

/*
 * Returns the cost of the hits in a process's counters, in ns. Where our BPF program was timed in the process,
 * hits cost as much more as it takes longer there than in the calibration, whose calls have no requests.
 */
double costs__of(const struct costs *costs, const struct kernel_counters *counters);

/*
 * Sets delta to the hits of a process since its counters were `since`, for costs__of(). Timed programs are the totals
 * of `now`: few hits are timed. The rest of delta is 0, system calls included.
 */
void costs__hits_since(const struct kernel_counters *now, const struct kernel_counters *since,
		       struct kernel_counters *delta);

/*
 * Returns what the links of so many other processes at the same sites add to the hits of a process, ns. Their returns
 * are hijacked for all processes, so that a suppressed return costs as any other.
 */
double costs__of_others(const struct costs *costs, const struct kernel_counters *counters, uint32_t others);

/* Returns the cost of a return in a process, ns, as costs__of() charges it; a return that is not traced saves it. */
double costs__of_return(const struct costs *costs, const struct kernel_counters *counters);

/* Returns how many times as much a call costs at a single-stepped site. */
double costs__stepped_ratio(const struct costs *costs);

/* Returns what is added to a time without something, ns; 0 where either was not measured. */
static inline double costs__extra(double with, double without)
{
	return with > without && without > 0 ? with - without : 0;
}

#endif
