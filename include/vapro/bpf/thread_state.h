/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel side's state of one tracked thread. User space reads it for fragments that are still open.
 */
#ifndef VAPRO_KERNEL_THREAD_H
#define VAPRO_KERNEL_THREAD_H

#include <vapro/bpf/abi.h>

/* Why a thread is off the CPU. */
enum kernel_away {
	KERNEL_AWAY_RUNNABLE, /* preempted, or it yielded */
	KERNEL_AWAY_IO,	      /* asleep in IO wait */
	KERNEL_AWAY_ASLEEP,   /* asleep for anything else */
	KERNEL_AWAY_STOPPED,  /* by a signal, a tracer or the freezer of its cgroup */
};

/* Off-CPU accounting of one thread. */
struct kernel_offcpu {
	u64 out_ns; /* 0 while on a CPU */
	u64 wake_ns;
	u32 away;   /* enum kernel_away */
	u32 cpu;    /* CPU that a runnable thread waits for */
	u32 waiter; /* number of its entry among those that wait for that CPU; 0: it has none */
	u32 pad;
	u64 queue;     /* queue of the runnable thread; 0 where none can be throttled */
	u64 throttled; /* ns that this queue had been throttled then */
};

/*
 * Total time stolen by a CPU from the threads that it runs, ns. slow: time that the CPU would have spared
 * at its highest frequency.
 */
struct kernel_stolen {
	u64 steal, irq, hard_irq, soft_irq, slow;
};

/* A reading of a CPU's counters. */
struct kernel_reading {
	u64 value[KERNEL_EVENTS];
	u64 enabled;  /* time the first counter was on; if it stands still the counter is dead */
	u32 epoch;    /* epoch of the set of counters */
	u32 switches; /* the kernel's own number of times that the thread left a CPU */
};

/*
 * The counts of one thread, in separate task storage. Counters belong to CPUs: a thread's counts are
 * sums over its stays on CPUs (ARCHITECTURE section 3).
 */
struct kernel_tally {
	u64 sum[KERNEL_EVENTS];	    /* counts up to `last` */
	struct kernel_reading last; /* reading when the present stay began */
	struct kernel_reading now;  /* scratch of the thread's own programs */
	u64 border[KERNEL_EVENTS];  /* counts at the start of the computation */
	u64 delta[KERNEL_EVENTS];   /* counts at the end of the computation */
	u32 on;			    /* on a CPU, and last is valid */
	u32 switches;		    /* a read across one is repeated */
	u32 gaps;		    /* stays that were not counted completely */
	u32 mark;		    /* gaps + 1 at the border; 0 = not counted */
};

/*
 * A thread's cache of recent map lookups, since a loop's calls come again and again. Entries are valid
 * while their epoch is the present one, and are distinguished by their whole key. The caches are large: between two
 * calls a program uses the processor's caches for itself, and a lookup in a map then reads several lines from memory.
 */
#define KERNEL_RECENT 16
#define KERNEL_RECENT_EDGES 64
#define KERNEL_RECENT_CALLS 16
#define KERNEL_RECENT_BUNDLES 128
#define KERNEL_RECENT_OUTLINED 4
#define KERNEL_TYPES 4

struct kernel_recent {
	struct kernel_vertex_key key;
	u32 vertex;
	u32 epoch;
};

struct kernel_recent_edge {
	struct kernel_edge_key key;
	u32 edge;
	u32 epoch;
};

/*
 * A bundle and its pool slot. An entry stays until its bin ends: other bundles with the same index are in the map
 * `places` meanwhile. Where the entry is of an earlier bin, the present bin has no bundle with that index.
 */
struct kernel_recent_bundle {
	struct kernel_bundle_key key;
	u32 slot;
};

struct kernel_recent_handle {
	u64 handle;
	u32 number;
	u32 epoch;
};

/* A call of KERNEL_SITE_PLAIN as it comes in; its handles have the same meaning as long as the epoch lasts. */
struct kernel_recent_call {
	u64 site;
	u64 in[KERNEL_PLAIN_ARGUMENTS]; /* arguments; those that the row reads count */
	u64 bytes;
	u32 vertex;
	u32 function;
	u32 epoch;
	u32 pad;
};

/* Hits not yet in the process's counters, which other CPUs write too: at most KERNEL_HITS_HELD, for about 10 ms. */
#define KERNEL_HITS_HELD 64
#define KERNEL_HITS_NS 10000000

struct kernel_hits {
	u32 enter, exit, emitted;
	u32 untimed; /* hits before the next one whose program is timed */
	u64 reported_ns;
};

/* Calls not yet added, by row; rows of one index displace each other. */
#define KERNEL_ROW_HITS 8

struct kernel_row_hits {
	u32 row, calls;
};

/* Calls not yet added that may be suppressed, by the octave of their span. */
struct kernel_span_hits {
	u64 time_ns;
	u64 calls;
};

/* KERNEL_WAIT: a team thread's wait; the thread's next activity ends it. */
enum kernel_open { KERNEL_NOTHING, KERNEL_CALL, KERNEL_SYSCALL, KERNEL_WAIT };

/* State of one tracked thread, in task storage. */
struct bpf_thread_state {
	u32 tgid, tid;
	u32 slot;
	u32 generation;
	u32 open; /* enum kernel_open */
	u32 process_flags;
	u64 sp;	      /* stack pointer at the open call's entry */
	u64 start_ns; /* start of the open call, or of the computation since the last one */
	u64 call;     /* calls made */
	u32 vertex;   /* vertex of the open or last call; 0 = none yet */
	u32 function;
	u64 bytes;
	u64 trampoline;		     /* where hijacked returns go; 0 while unknown */
	struct kernel_counts border; /* counts at start_ns */
	struct kernel_counts now;    /* counts now; the off-CPU part is accumulated here */
	struct kernel_offcpu off;
	struct kernel_stolen stolen;	/* stolen from this thread, up to its last switch */
	struct kernel_stolen stolen_at; /* stolen from the CPU when the present stay began */
	u64 stolen_clock;		/* clock of its queue at the last look; 0 = look again */
	u32 stolen_cpu;			/* CPU of that stay, + 1; 0 = its beginning was not seen */
	u32 set;			/* set of its process for its present states */
	u64 token_ns;
	u32 tokens;
	u32 polls;			  /* polling calls in the open computation, while learnt */
	u32 own_sites;			  /* the open call's exits are sites */
	u64 return_to;			  /* return address of that call; 0 unknown */
	u64 fork_sp;			  /* sp at the entry of the call that forked; 0 = none open */
	u64 fork_outer;			  /* sp of the call around that one */
	u32 computing;			  /* computation runs since start_ns, also where returns are unwanted */
	u32 rows_generation;		  /* generation of thinned rows */
	u32 pending;			  /* the last call left something to be read, struct kernel_pending */
	u64 hit_ns;			  /* time of the last hit */
	u64 entered_ns;			  /* entry of the last call; 0 = unknown */
	u64 suppressed_ns;		  /* entry of a suppressed call, if nothing is a fragment since; 0 = none */
	u32 probe_epoch, drop_open_epoch; /* epochs of its process's probes */
	u32 entered;			  /* vertex of the last call */
	u32 octave;			  /* octave of the last call's span, + 1; 0 = not suppressible */
	u32 weight;			  /* calls that the last call stands for */

	struct kernel_hits hits;
	u64 noted, border_noted; /* sums of the kernel's own counts, in now and in border */
	u64 faults;		 /* faults when `now` was last updated */
	u64 bin_ns;		 /* start of the last fragment's bin, UTC */
	u32 bin;		 /* number of that bin */
	u32 counted;		 /* KERNEL_SITE_COUNTED of the open call */
	u32 region;		 /* number of the parallel region that it began or entered last; 0 = none */
	u32 unentered;		 /* 1: it began that region and was not seen to enter its function */
	u32 account;		 /* account's number + 1; 0 = none yet, KERNEL_NO_ACCOUNT = none left */
	u32 epoch;		 /* epoch of its process for which hits are summed up */
	u64 epoch_hits;		 /* hits of that epoch by weight */
	u64 rq;			 /* the kernel's run queue of the last CPU; 0 unknown */

	/* members from here on need not be cleared */
	u64 registers[11];	  /* scratch, as `one`: registers at an entry */
	struct kernel_bundle one; /* scratch: the stack of a program is too small for it */
	u64 described;		  /* bytes of the vertex that was described last */
	u32 posts_epoch;	  /* its posted operations are of this epoch, or forgotten */
	struct kernel_recent recent[KERNEL_RECENT];
	struct kernel_recent_edge recent_edges[KERNEL_RECENT_EDGES];
	struct kernel_recent_call recent_calls[KERNEL_RECENT_CALLS];
	struct kernel_recent_bundle recent_bundles[KERNEL_RECENT_BUNDLES];
	struct kernel_recent_handle recent_handles[3]; /* by enum kernel_handle_kind; for requests the null one */
	struct kernel_recent_handle recent_types[KERNEL_TYPES];		     /* predefined datatypes, and their sizes */
	struct kernel_recent_handle recent_outlined[KERNEL_RECENT_OUTLINED]; /* functions of teams, reported */

	struct kernel_row_hits rows[KERNEL_ROW_HITS];
	struct kernel_span_hits spans[KERNEL_SPANS]; /* cleared with hits */
	u64 task, ran_ns; /* its task_struct, and the task's CPU time when it left its CPU last */
};

#endif
