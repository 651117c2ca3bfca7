/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hits as the kernel side counts them, by process and by function, with what their cost depends on: pauses before
 * them, single-stepping, the time of our own program. Included by abi.h.
 */
#ifndef VAPRO_HIT_COUNTERS_H
#define VAPRO_HIT_COUNTERS_H

/*
 * A hit costs more after a pause of its thread from hits: the trap's working set has left the caches,
 * the hypervisor's too. Pauses by length: from KERNEL_PAUSE_NS on, twice as long each. How much has left them is
 * measured by the first part of our program, the same at every hit: it is timed at hits after pauses, up to
 * KERNEL_PREAMBLE_MOST_NS.
 */
#define KERNEL_PAUSES 12
#define KERNEL_PAUSE_NS 4000
#define KERNEL_PREAMBLE_MOST_NS 4000

/*
 * Our program at one call does more than at another, such as following requests. Of the hits without a pause one in
 * KERNEL_TIMED_EVERY is timed; the number is odd, since entries and returns alternate. A time above
 * KERNEL_TIMED_MOST_NS is left out: the program was interrupted.
 */
#define KERNEL_TIMED_EVERY 31
#define KERNEL_TIMED_MOST_NS 16000

/* Causes of lost fragments: enum vapro_loss has the same numbers (user/probe/bpf/kernel_side.c asserts it). */
#define KERNEL_LOSSES 16 /* a power of two */

enum kernel_loss {
	KERNEL_LOST_RING_FULL,
	KERNEL_LOST_MAP_FULL,
	KERNEL_LOST_NO_STORAGE,
	KERNEL_LOST_ARGUMENT,
	KERNEL_LOST_TRUNCATED,
	KERNEL_LOST_GOVERNED,
	KERNEL_LOST_VANISHED,
	KERNEL_LOST_UNACCOUNTED, /* counted by user space */
	KERNEL_LOST_APPROXIMATED,
	KERNEL_LOST_UNMATCHED,
	KERNEL_LOST_COUNTER,
	KERNEL_LOST_STATES,
	KERNEL_LOST_PUBLISHED, /* counted by user space */
	KERNEL_LOST_INTERFERENCE,
	KERNEL_LOSSES_KNOWN,
};

/*
 * The weight of a single-stepped hit, where threads of a process are compared by their hits. A thread is slowed down by
 * its own hits alone: a process pays the cost of its busiest thread.
 */
#define KERNEL_STEPPED_WEIGHT 8

/* Counters of one process, in memory that user space has mapped; in cache lines of their own. */
struct kernel_counters {
	u64 enter, exit, skipped, vanished, syscalls;
	u64 stepped;			     /* hits of enter and left at single-stepped sites */
	u64 lost[KERNEL_LOSSES];	     /* fragments lost, by enum vapro_loss */
	u64 emitted;			     /* vertex fragments emitted, singly or merged */
	u64 left;			     /* hits at exit sites */
	u64 rows;			     /* hits of enter in rows whose exits are sites */
	u64 io_ns;			     /* time in emitted system calls */
	u64 pauses[2][KERNEL_PAUSES];	     /* hits of enter and left, and of exit, after a pause */
	u64 preamble_ns[2];		     /* time of the first part of our program at these hits */
	u64 held_ns;			     /* its threads' wait for a CPU that vaprod had */
	u64 sampled;			     /* samples of the software clock, of all its threads */
	u64 busiest;			     /* weighted hits of the busiest thread in this epoch */
	u64 timed[2], timed_ns[2];	     /* hits of enter and exit that were timed; the sum of their times */
	u32 vertices, edges, handles, paths; /* entries of the tables that all processes share */
	u32 pool_bin[2], pool_used[2];	     /* pool slots used in the latest even bin and odd one */
	u32 bounded;			     /* KERNEL_BOUNDED_* */
	u32 owner;			     /* number of its owner, set by user space */
} __attribute__((aligned(64)));

/*
 * What the processes of one owner have of the tables that all processes share, and its room there: a share of each
 * table, in KERNEL_SHARE_ALL parts. User space sets share and tokens.
 */
#define KERNEL_SHARE_ALL 1024
#define KERNEL_TOKENS 20

struct kernel_owner {
	u32 share;
	u32 tokens;			     /* records of abnormal fragments of a thread in a bin */
	u32 vertices, edges, handles, paths; /* entries */
	u32 pool_bin[2], pool_used[2];	     /* as in struct kernel_counters */
	u32 tasks_bin[2], tasks_used[2];     /* the same of entries of tasks that ran instead of its threads */
} __attribute__((aligned(64)));

#define KERNEL_WAIT_NS 8000 /* a call that takes so long may have waited */

/*
 * Calls of one function, in all images that define it. Where entries and returns are counted exactly
 * (KERNEL_SITE_COUNTED, and functions whose exits are sites) enter - exit - vanished is the number of calls in flight;
 * calls at other sites have no counted return and are counted apart.
 */
struct kernel_function_counters {
	u64 enter, exit;
	u64 vanished; /* calls of enter whose return is given up */
	u64 calls;    /* at sites that are not counted exactly */
	/* calls of both that took KERNEL_WAIT_NS or longer while they had their CPU or slept, and that time */
	u64 waits, waited_ns;
	/* rows whose exits are sites: all hits, whatever their meaning, and the hits after a pause of the thread */
	u64 entry_hits, exit_hits;
	u64 pauses[KERNEL_PAUSES];
	u64 preamble_ns;
};

#endif
