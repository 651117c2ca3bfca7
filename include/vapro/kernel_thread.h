/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel side keeps of one tracked thread. User space reads it, for fragments that are still open.
 */
#ifndef VAPRO_KERNEL_THREAD_H
#define VAPRO_KERNEL_THREAD_H

#include <vapro/kernel.h>

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
	u32 away;      /* enum kernel_away */
	u32 own;       /* it was vaprod that was switched to */
	u32 other_pid; /* who was switched to */
	u32 cpu;       /* it left */
	u64 queue;     /* that it waits in since it is runnable; 0 where none can be throttled */
	u64 throttled; /* ns that this queue had been throttled then */
	char other_comm[16];
	u32 other_tgid;
	u32 pad;
};

/*
 * What a CPU did not do for the thread that it runs, since ever; ns. slow: time that it would have spared
 * at its highest frequency.
 */
struct kernel_taken {
	u64 steal, irq, hard_irq, soft_irq, slow;
};

/* What the counters of a CPU showed. */
struct kernel_reading {
	u64 value[KERNEL_EVENTS];
	u64 enabled;  /* time the first counter had been on; one that stands still is dead */
	u32 epoch;    /* of the set of counters */
	u32 switches; /* the kernel's own number of times that the thread had left a CPU before */
};

/*
 * The counters of one thread, in task storage of their own. Counters belong to CPUs: what a thread
 * did is the sum over its stays on them (ARCHITECTURE section 3).
 */
struct kernel_tally {
	u64 sum[KERNEL_EVENTS];	    /* up to `last` */
	struct kernel_reading last; /* when the present stay began */
	struct kernel_reading now;  /* scratch of the thread's own programs */
	u64 border[KERNEL_EVENTS];  /* counts at the start of the computation */
	u64 delta[KERNEL_EVENTS];   /* of the computation that has just ended */
	u32 on;			    /* on a CPU, and last holds */
	u32 turns;		    /* switches: who reads meanwhile must begin again */
	u32 gaps;		    /* stays that were not counted as a whole */
	u32 mark;		    /* gaps + 1 at the border; 0 = it was not counted */
};

/*
 * What a thread found in the maps lately: those of a loop's calls come again and again. Entries hold as
 * long as their epoch is the present one, and are distinguished by their whole key.
 */
#define KERNEL_RECENT 16
#define KERNEL_RECENT_CALLS 8
#define KERNEL_RECENT_BUNDLES 32
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

struct kernel_recent_handle {
	u64 handle;
	u32 number;
	u32 epoch;
};

/* A call as it comes in: one of KERNEL_SITE_PLAIN, whose handles stand for the same as long as there is one epoch. */
struct kernel_recent_call {
	u64 site;
	u64 in[KERNEL_PLAIN_ARGUMENTS]; /* those that the row reads count */
	u64 bytes;
	u32 vertex;
	u32 function;
	u32 epoch;
	u32 pad;
};

/* Not yet added to the process's counters, which other CPUs write too: at most KERNEL_HITS_HELD, for about 1 ms. */
#define KERNEL_HITS_HELD 64
#define KERNEL_HITS_NS 1000000

struct kernel_hits {
	u32 enter, exit, emitted, pad;
	u64 told_ns;
};

/* The same of calls by row; rows that meet in a place take turns. */
#define KERNEL_ROW_HITS 8

struct kernel_row_hits {
	u32 row, calls;
};

/* The same of calls that may be let go, by the octave of their span. */
struct kernel_span_hits {
	u64 time_ns;
	u64 calls;
};

/* KERNEL_WAIT: of a team's thread; whatever it does next ends it. */
enum kernel_open { KERNEL_NOTHING, KERNEL_CALL, KERNEL_SYSCALL, KERNEL_WAIT };

/* State of one tracked thread, in task storage. */
struct kernel_thread {
	u32 tgid, tid;
	u32 slot;
	u32 generation;
	u32 open; /* enum kernel_open */
	u32 process_flags;
	u64 sp;	      /* stack pointer at the open call's entry */
	u64 start_ns; /* of the open call, or of the computation since the last one */
	u64 call;     /* calls made */
	u32 vertex;   /* of the open or last call; 0 = none yet */
	u32 function;
	u64 bytes;
	u64 trampoline;		     /* where hijacked returns go; 0 while unknown */
	struct kernel_counts border; /* counts at start_ns */
	struct kernel_counts now;    /* off-CPU part of it is accumulated here */
	struct kernel_offcpu off;
	struct kernel_taken taken;    /* from this thread, up to its last switch */
	struct kernel_taken taken_at; /* the CPU's, when the present stay began */
	u64 taken_clock;	      /* its queue's, when it was looked at last; 0 = look again */
	u32 taken_cpu;		      /* of that stay, + 1; 0 = its beginning was not seen */
	u32 set;		      /* of its process, in which its present states are */
	u64 token_ns;
	u32 tokens;
	u32 polls;		  /* in the open computation, while polling calls are learnt */
	u32 own_sites;		  /* the open call's exits are sites */
	u64 return_to;		  /* of that call; 0 unknown */
	u64 fork_sp;		  /* at the entry of the call that forked; 0 = none open */
	u64 fork_outer;		  /* of the one around it */
	u32 computing;		  /* what runs since start_ns is computation, also where returns are not wanted */
	u32 rows_generation;	  /* of thinned rows */
	u32 pending;		  /* the last call left something to be read, struct kernel_pending */
	u64 hit_ns;		  /* its last hit */
	u64 entered_ns;		  /* the entry of the last call; 0 = nothing is known of it */
	u64 let_go_ns;		  /* that of one that was let go, after which nothing is a fragment yet; 0 = none */
	u32 turn, voids;	  /* of its process's probes */
	u32 entered;		  /* vertex of the last call */
	u32 octave;		  /* of its span, + 1; 0 = it could not have been let go */
	u32 weight;		  /* calls that it stands for */
	struct kernel_bundle one; /* scratch: the stack of a program is too small for it */

	struct kernel_hits hits;
	u64 noted, border_noted; /* sums of the kernel's own counts, in now and in border */
	u64 faults;		 /* when those were looked at last */
	u64 bin_ns;		 /* UTC, where the bin of the last fragment began */
	u32 bin;		 /* its number */
	u32 counted;		 /* KERNEL_SITE_COUNTED of the open call */
	u32 region;		 /* number of the parallel region that it began or entered last; 0 = none */
	u32 unentered;		 /* it began that one, and has not been seen to enter its function */
	u32 account;		 /* its number + 1; 0 = none yet, KERNEL_NO_ACCOUNT = none to be had */
	u32 epoch;		 /* of its process, for which hits are summed up */
	u64 epoch_hits;		 /* by their weight */
	u64 rq;			 /* the kernel's run queue of the CPU that it got last; 0 unknown */

	/* from here on it need not be cleared */
	u64 registers[11]; /* scratch, as `one`: at an entry */
	u64 described;	   /* bytes of the vertex that was described last */
	struct kernel_recent recent[KERNEL_RECENT];
	struct kernel_recent_edge recent_edges[KERNEL_RECENT];
	struct kernel_recent_call recent_calls[KERNEL_RECENT_CALLS];
	u32 recent_bundles[KERNEL_RECENT_BUNDLES];     /* their places in the pool, which say whose they are */
	struct kernel_recent_handle recent_handles[3]; /* by enum kernel_handle_kind; of requests the null one */
	struct kernel_recent_handle recent_types[KERNEL_TYPES]; /* predefined datatypes, and their sizes */

	struct kernel_row_hits rows[KERNEL_ROW_HITS];
	struct kernel_span_hits spans[KERNEL_SPANS]; /* cleared with hits */
};

#endif
