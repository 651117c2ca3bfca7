/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unit everything from collect/ to report/ handles: bundles (ARCHITECTURE section 4).
 *
 * A bundle is n >= 1 fragments of one thread, one state (an edge or a vertex of the State
 * Transition Graph together with its labels), one norm cell, inside one 200 ms bin. A fragment
 * is a bundle of n = 1. Times are nanoseconds; in the analysis floors they are UTC since the
 * epoch, in captures CLOCK_MONOTONIC. Counts and sums are exact, never sampled or scaled.
 */
#ifndef VAPRO_BUNDLE_H
#define VAPRO_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

#define VAPRO_BIN_NS 200000000ULL
#define VAPRO_BINS_PER_SECOND (1000000000ULL / VAPRO_BIN_NS)

enum vapro_class {
	VAPRO_COMPUTATION,
	VAPRO_COMMUNICATION, /* with the label scope=process: between threads */
	VAPRO_IO,
	VAPRO_CLASSES,
};

/*
 * Factors of a fragment: the leaves of the variance breakdown (VAPRO (PPoPP'22) section 4.1) that the
 * kernel or the counters report, each with its word of the output contract. Times are in ns and parts of the
 * duration; counts follow them. The place of a factor in the breakdown and its texts are in diagnose/factor_table.c.
 */
#define VAPRO_TIMES(FACTOR)                                                                                            \
	FACTOR(PREEMPTED, preempted)	     /* off the CPU while runnable, switched out by another task */            \
	FACTOR(WAKEUP_WAIT, wakeup_wait)     /* woken, waiting for a CPU */                                            \
	FACTOR(BLOCKED_IO, blocked_io)	     /* asleep in io wait */                                                   \
	FACTOR(BLOCKED_OTHER, blocked_other) /* asleep for anything else */                                            \
	FACTOR(THROTTLED, throttled)	     /* runnable, in a cgroup that had used up its CPU quota */                \
	FACTOR(STEAL, steal)		     /* the hypervisor ran something else on its CPU */                        \
	FACTOR(STOPPED, stopped)	     /* by a signal, a tracer or the freezer of its cgroup */                  \
	FACTOR(IRQ, irq)                                                                                               \
	FACTOR(KERNEL, kernel)                                                                                         \
	FACTOR(RETIRING, retiring)                                                                                     \
	FACTOR(FRONTEND, frontend)                                                                                     \
	FACTOR(BAD_SPECULATION, bad_speculation)                                                                       \
	FACTOR(BACKEND, backend)                                                                                       \
	/* parts of frontend, bad_speculation and backend: stage 2 */                                                  \
	FACTOR(FRONTEND_LATENCY, frontend_latency)                                                                     \
	FACTOR(FRONTEND_BANDWIDTH, frontend_bandwidth)                                                                 \
	FACTOR(MISPREDICTS, mispredicts)                                                                               \
	FACTOR(CLEARS, clears)                                                                                         \
	FACTOR(MEMORY, memory)                                                                                         \
	FACTOR(CORE, core)                                                                                             \
	/* parts of memory: stage 3 */                                                                                 \
	FACTOR(L1, l1)                                                                                                 \
	FACTOR(L2, l2)                                                                                                 \
	FACTOR(L3, l3)                                                                                                 \
	FACTOR(DRAM, dram)                                                                                             \
	FACTOR(STORE, store)                                                                                           \
	/* parts of kernel and irq, for tracers that report them */                                                    \
	FACTOR(PAGE_FAULTS, page_faults)                                                                               \
	FACTOR(SYSTEM_CALLS, system_calls)                                                                             \
	FACTOR(RECLAIM, reclaim)                                                                                       \
	FACTOR(HARD_IRQ, hard_irq)                                                                                     \
	FACTOR(SOFT_IRQ, soft_irq)                                                                                     \
	FACTOR(FREQUENCY,                                                                                              \
	       frequency) /* time that the machine's fastest core would have spared at its highest frequency */

#define VAPRO_COUNTS(FACTOR)                                                                                           \
	FACTOR(MINOR_FAULTS, minor_faults)                                                                             \
	FACTOR(MAJOR_FAULTS, major_faults)                                                                             \
	FACTOR(VOLUNTARY_SWITCHES, voluntary_switches)                                                                 \
	FACTOR(INVOLUNTARY_SWITCHES, involuntary_switches)                                                             \
	FACTOR(MIGRATIONS, migrations)                                                                                 \
	/* cache lines filled on demand, by source: where no counter shows memory stalls by level */                   \
	FACTOR(L2_FILLS, l2_fills)                                                                                     \
	FACTOR(L3_FILLS, l3_fills)                                                                                     \
	FACTOR(DRAM_FILLS, dram_fills)                                                                                 \
	FACTOR(REMOTE_FILLS, remote_fills)

#define VAPRO_FACTOR_NUMBER(id, word) VAPRO_##id,
enum vapro_factor {
	VAPRO_TIMES(VAPRO_FACTOR_NUMBER) VAPRO_FACTOR_COUNTS,
	VAPRO_LAST_TIME = VAPRO_FACTOR_COUNTS - 1, /* the first count has the number VAPRO_FACTOR_COUNTS */
	VAPRO_COUNTS(VAPRO_FACTOR_NUMBER) VAPRO_FACTORS,
};
#undef VAPRO_FACTOR_NUMBER

/* Magnitudes of the workload vector; from VAPRO_NAMED on they are the user's own counters. */
enum vapro_magnitude {
	VAPRO_INSTRUCTIONS,
	VAPRO_BYTES,
	VAPRO_NAMED,
	VAPRO_MAGNITUDES = VAPRO_NAMED + 2,
};

enum vapro_bundle_flag {
	VAPRO_BUNDLE_ABNORMAL = 1 << 0, /* merged from fragments over k_a times the least of their cell */
	VAPRO_BUNDLE_OPEN = 1 << 1,	/* not ended yet: sum_ns is the time elapsed so far, n = 1 */
	VAPRO_BUNDLE_APPROX = 1 << 2,	/* a label or the call-site is approximate */
};

struct vapro_bundle {
	uint32_t thread; /* index of a vapro_thread */
	uint32_t state;	 /* index of a vapro_state */
	uint32_t n;
	uint32_t flags;
	uint64_t start_ns, end_ns; /* first start, last end */
	uint64_t sum_ns, min_ns, max_ns;
	uint64_t first_call, last_call; /* call numbers of the thread */
	double magnitude_min[VAPRO_MAGNITUDES], magnitude_max[VAPRO_MAGNITUDES];
	double factor[VAPRO_FACTORS]; /* sums over the n fragments */
};

/* One row of a job: rank (-1 where unknown) and thread number within the rank (0 = main). */
struct vapro_thread {
	uint32_t id;
	int32_t rank;
	int32_t thread;
	uint32_t world_size; /* 0 where unknown */
	uint32_t pid, tid;
	const char *job;  /* identity, equal on all hosts of the job */
	const char *host; /* never NULL */
	uint32_t user;	  /* owner of the job, part of the job's identity: uid + 1, 0 unknown */
};

/*
 * A state: an edge (from and to call-sites) or a vertex (from NULL, to = the call-site), and the
 * labels that must be equal. Texts are canonical, so that equal states of several ranks, runs and
 * hosts have equal texts: call-sites are `name@<build-id>+0xOFFSET`, labels `key=value` sorted by
 * key and joined by one blank. `common` holds the labels that count across ranks (peer, comm and
 * file dropped). Callers that a call-site is hopped to follow it, each after SITE_CALLED_BY.
 */
#define SITE_CALLED_BY " < "

struct vapro_state {
	uint32_t id;
	enum vapro_class class;
	const char *from, *to;
	const char *labels, *common;
	const char *from_symbol, *to_symbol; /* for people; NULL where unknown */
	const char *from_path, *to_path; /* paths of the call-sites' images, as the process saw them; NULL if unknown */
};

/*
 * Time that one thread lost to one task, inside one bin. A slice is a stay of that task on the CPU that the thread
 * waited for, or the part of it in which the thread waited.
 */
struct vapro_interference {
	uint32_t thread;
	uint32_t pid; /* pid of the task that ran instead, in the init pid namespace */
	uint64_t bin; /* UTC ns / VAPRO_BIN_NS */
	uint64_t preempted_ns, wakeup_wait_ns;
	char comm[16];
	uint32_t process;    /* pid of that task's process; 0 unknown: captures of older versions */
	uint32_t monitor;    /* 1: that process is vaprod or its child */
	uint32_t slices;     /* 0 unknown */
	uint32_t longest_us; /* of one slice, rounded down */
};

/* What stops a thread, as the kernel's files say while it is stopped. */
enum vapro_stopped_by {
	VAPRO_STOPPED_UNKNOWN, /* or not at all */
	VAPRO_STOPPED_SIGNAL,
	VAPRO_STOPPED_TRACER,
	VAPRO_STOPPED_FREEZER, /* of its cgroup */
	VAPRO_STOPPED_KINDS,
};

/*
 * A thread's time in one bin by condition, from the scheduler's events, whatever was seen of its calls. In the rest of
 * the bin the thread slept, or was not known yet.
 */
struct vapro_account {
	uint32_t thread;
	uint64_t bin;	    /* UTC ns / VAPRO_BIN_NS */
	uint64_t on_cpu_ns; /* without stolen time */
	uint64_t preempted_ns, wakeup_wait_ns, throttled_ns, stopped_ns, steal_ns;
	uint64_t blocked_io_ns, blocked_other_ns;
	/* enum vapro_stopped_by: the thread is stopped at the bin's end, whatever its times; 0 where it was not looked
	 * up
	 */
	uint32_t stopped_by;
};

/* A thread's last known location: facts that slow ranks may share. Emitted again at each change. */
struct vapro_place {
	uint32_t thread;
	int32_t cpu, socket, numa; /* -1 unknown */
	const char *core_type;	   /* NULL unknown, or the machine has one only */
	const char *cpu_model;	   /* as the kernel names it; NULL unknown */
	const char *cgroup;	   /* NULL unknown */
	const char *limit;	   /* its CPU quota as the kernel's files have it; NULL unknown, or none */
	const char *limit_cgroup;  /* cgroup with that quota: its own or an ancestor */
	const char *cpus;	   /* CPUs it may use, as a list such as 0-3,7; NULL unknown */
};

/* What the kernel of a host says of its own clock (adjtimex). */
struct vapro_host_clock {
	const char *host;
	bool synchronised;
	uint64_t error_ns; /* how far off it is at most while it is synchronised */
};

/* Causes of loss; each is shown beside the numbers that it reduces. */
enum vapro_loss {
	VAPRO_LOST_RING_FULL,
	VAPRO_LOST_MAP_FULL,
	VAPRO_LOST_NO_STORAGE,
	VAPRO_LOST_ARGUMENT,
	VAPRO_LOST_TRUNCATED,
	VAPRO_LOST_GOVERNED, /* fragments that the governor suppressed, or that were open when it closed links */
	VAPRO_LOST_VANISHED, /* frames left without a return: longjmp, exit, exec */
	VAPRO_LOST_UNACCOUNTED,
	VAPRO_LOST_APPROXIMATED, /* not lost: calls emitted with an approximate call-site or size */
	VAPRO_LOST_UNMATCHED,	 /* not lost: requests whose post or completion was not seen */
	VAPRO_LOST_COUNTER,	 /* computations that were not counted: time known, workload unknown */
	VAPRO_LOST_STATES,	 /* fragments of a process beyond its share of the kernel's tables */
	VAPRO_LOST_PUBLISHED,	 /* not lost here: fragments in blocks that no broker took (vaprod --broker) */
	VAPRO_LOST_INTERFERENCE, /* not lost: waits for a CPU, or slices of them, whose other task is not known */
	VAPRO_LOSSES,
};

/* Facts about one process for the new part of a window. */
struct vapro_process_facts {
	uint32_t pid;
	const char *job;
	uint64_t wall_ns;     /* watched time */
	uint64_t governed_ns; /* part of wall_ns with links closed by the governor */
	uint64_t thinned_ns;  /* threads' time in and after calls that the governor suppressed */
	uint64_t thinned;     /* suppressed fragments; they are in lost[VAPRO_LOST_GOVERNED] too */
	uint64_t hits;
	uint64_t cost_ns; /* hits times calibrated cost */
	uint64_t lost[VAPRO_LOSSES];
	uint32_t user; /* as in struct vapro_thread */
	/* file of its MPI functions (NULL: none, or not known), and those of them that are not probed, see label
	 * `without` */
	const char *image, *without;
	const char *without_own; /* those of `without` that this node's own governor left out */
};

extern const char *const vapro_class_name[VAPRO_CLASSES];
extern const char *const vapro_factor_name[VAPRO_FACTORS];
extern const char *const vapro_loss_name[VAPRO_LOSSES];

#endif
