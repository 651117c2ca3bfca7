/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What kernel side and user side share: plain structs and enums, no pointers, fixed sizes. Included
 * by the BPF object, by the daemon and by the unit tests that compile the BPF logic natively.
 */
#ifndef VAPRO_KERNEL_H
#define VAPRO_KERNEL_H

#ifndef __VAPRO_BPF__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#include <stdbool.h>
#endif

#define KERNEL_BIN_NS 200000000ULL
#define KERNEL_SLOTS 1024     /* processes watched at once */
#define KERNEL_FUNCTIONS 1024 /* rows of the function table, and rows of images */
#define KERNEL_STATES 65536   /* vertices, and as many edges */
#define KERNEL_SYSCALLS 512
#define KERNEL_CPUS 4096
#define KERNEL_EVENTS 8	    /* counters read at once: instructions first, then the named ones */
#define KERNEL_MAGNITUDES 3 /* of them are the workload: instructions and two named */

/*
 * Roles: the number of the argument that means it, counted from 1; 0 = the function has none.
 * Arguments 1-6 are registers, from 7 on 8-byte slots above the return address.
 */
struct vapro_roles {
	u8 count;  /* number of elements */
	u8 type;   /* datatype handle of count */
	u8 count2; /* a second pair (receive side) where only that has a size */
	u8 type2;
	u8 peer; /* destination or source rank */
	u8 root;
	u8 op; /* reduction operation handle */
	u8 comm;
	u8 requests; /* number of requests completed or started, the array follows; 255 = the first argument is the one
		      */
	u8 flags;    /* VAPRO_ROLE_* */
	u8 request;  /* where the handle of a posted operation is written to */
	u8 done;     /* where a completion that may leave requests open tells which are done */
};

/* count is an array of counts: its first element stands for it */
#define VAPRO_ROLE_COUNT_ARRAY 1
/* the request posted outlives its completions, and works only once started */
#define VAPRO_ROLE_PERSISTENT 2
/* the requests named are started, not completed */
#define VAPRO_ROLE_START 4
/* what done points to: a flag for all of them; the index of one; a number of indices, which follow */
#define VAPRO_ROLE_DONE_FLAG 8
#define VAPRO_ROLE_DONE_INDEX 16
#define VAPRO_ROLE_DONE_SOME 32

/* What a row's entry and exit mean for the thread. */
enum kernel_row_kind {
	KERNEL_ROW_CALL,     /* an invocation: a vertex from entry to exit */
	KERNEL_ROW_FORK,     /* hands a function to threads: its own wait ends where that begins */
	KERNEL_ROW_BOUNDARY, /* entry and exit are vertices without duration, computation goes on between them */
	KERNEL_ROW_OUTLINED, /* entry is such a vertex, exit begins the wait for the next one */
};

/*
 * Cookie of a probe: the row, and what kind of site it is. A row with sites of its own has its
 * return never hijacked: each place where it is left has a probe.
 */
#define KERNEL_SITE_ROW 0xffffu
#define KERNEL_SITE_READS 16		/* from this bit on, for each of six arguments: the row reads it */
#define KERNEL_SITE_PLAIN 0x00400000u	/* and nothing but those registers, as they are, tells the vertex */
#define KERNEL_SITE_COUNTED 0x08000000u /* entries and returns of the function must be told exactly */
#define KERNEL_SITE_POLL 0x10000000u	/* a call that only asks how far communication is */
#define KERNEL_SITE_OWN 0x20000000u	/* of such a row */
#define KERNEL_SITE_STEPPED 0x40000000u /* single-stepped (told so for such rows alone) */
#define KERNEL_SITE_EXIT 0x80000000u	/* a `ret`, or a jump that leaves the function */

/* A function as the kernel side sees it; index = row in the probe's cookie. */
struct kernel_function {
	struct vapro_roles roles;
	u8 class;   /* enum vapro_class */
	u8 known;   /* 0: row not in use */
	u8 stepped; /* its site is single-stepped: costs more */
	u8 kind;    /* enum kernel_row_kind */
	u8 forked;  /* KERNEL_ROW_FORK: the argument that is the function */
	u8 hot;	    /* of those whose probes the governor closes */
};

/* A watched process, by tgid. */
struct kernel_process {
	u32 slot;
	u32 flags; /* KERNEL_PROCESS_* */
};

#define KERNEL_COMMUNICATION 1 /* enum vapro_class's, of a function */

#define KERNEL_PROCESS_NO_RETURN 1
#define KERNEL_PROCESS_MPICH 2 /* MPICH's ABI: handles are 32-bit numbers, not addresses */

/*
 * What the governor lets a process's calls cost, and what it learns of them; by slot. The span of a
 * state is the time from its entry to the next one, on average: what is lost of a thread's time when
 * the return is let go.
 */
#define KERNEL_SPANS 16 /* octaves of microseconds: below 2, 4, .. 32768, and all others */

struct kernel_governed {
	/* user space's */
	u32 turn;  /* raised whenever probes that it hits were closed or opened; odd: not all its calls are seen */
	u32 voids; /* raised with turn where open calls will not be seen to return */
	u32 no_io; /* its system calls are let go */
	u32 pad;
	u64 thin_ns; /* returns of calls in states of a shorter span are let go */
	/* the kernel side's */
	u64 calls[KERNEL_SPANS];   /* by the span of their state, of those that may be let go */
	u64 time_ns[KERNEL_SPANS]; /* from them to the next call, as it was */
	u64 thinned, thinned_io;   /* calls let go */
	u64 thinned_ns;		   /* of threads, from there to their next call */
};

/* Handles whose number user space sets beforehand (MPI_COMM_WORLD, MPI_SUM, ...), or given by first sight. */
enum kernel_handle_kind { KERNEL_COMM, KERNEL_OP, KERNEL_REQUEST };

/* Numbers of requests: null, or one handle for all operations that were done when posted. */
enum { KERNEL_REQUEST_NULL, KERNEL_REQUEST_SHARED };

struct kernel_handle_key {
	u64 handle;
	u32 tgid;
	u32 kind;
};

#define KERNEL_FIRST_UNKNOWN 64 /* numbers from here on are given by first sight */

/* Vertex: call-site, labels and norm cell (of bytes); all-zero padding, it is hashed. */
struct kernel_vertex_key {
	u64 site; /* return address */
	u32 tgid;
	u16 function;
	u16 cell; /* of bytes */
	s32 peer;
	s32 root;
	u16 op;	     /* number + 1; 0 = none */
	u16 comm;    /* number + 1; 0 = none */
	u32 mode;    /* open flags */
	u32 file;    /* inode number of the descriptor */
	u16 fd_kind; /* S_IFMT bits >> 12 of the descriptor's inode, 0 = none */
	u16 flags;   /* KERNEL_VERTEX_* */
	u32 path;    /* number of the chain of callers; 0 = none */
	u16 requests;
	u16 pad;
};

#define KERNEL_VERTEX_NO_PEER 1 /* peer holds no rank */
#define KERNEL_VERTEX_NO_ROOT 2
#define KERNEL_VERTEX_NO_RETURN 4
#define KERNEL_VERTEX_APPROX 8	   /* call-site or bytes not exact */
#define KERNEL_VERTEX_NO_SIZE 16   /* the datatype does not tell its size: bytes are elements */
#define KERNEL_VERTEX_EXIT 64	   /* the exit of a boundary; the call-site of both is their own place */
#define KERNEL_VERTEX_NO_FRAMES 32 /* a path was wanted, and the caller keeps no frame pointer */

/*
 * Transparent images (ARCHITECTURE section 3): where a process has them mapped, and per image what an
 * unwinder would know at each of its calls. All distances are from the stack pointer, or from the
 * frame pointer, as it is when the call has returned.
 */
#define KERNEL_TRANSPARENT 8 /* executable ranges per process */

struct kernel_text {
	u64 begin, end;
	u64 bias;  /* linked address + bias = address */
	u32 image; /* number of ours */
	u32 pad;
};

struct kernel_transparent {
	struct kernel_text ranges[KERNEL_TRANSPARENT];
	u32 count;
	u32 pad;
};

struct kernel_hop_key {
	u32 image;
	u32 vaddr; /* linked address that the call returns to */
};

struct kernel_hop {
	s32 return_at; /* where the wrapper's own return address lies */
	s32 sp;	       /* what the stack pointer is once the wrapper has returned */
	s32 frame_at;  /* where its caller's frame pointer lies, or KERNEL_FRAME_KEPT */
	u32 by_frame;  /* distances are from the frame pointer */
};

#define KERNEL_FRAME_KEPT (-1) /* still in its register: nothing is saved at an odd place */

/* The callers above a call-site, innermost first, by frame pointers. */
#define KERNEL_PATH_DEPTH 8

struct kernel_path_key {
	u64 address[KERNEL_PATH_DEPTH];
	u32 tgid;
	u32 count;
};

/*
 * What is known of a request handle between post and completion. A handle may stand for several
 * operations at once: MPI libraries have one for all that were done when posted.
 */
struct kernel_request_key {
	u64 at; /* handle, or address of the variable that holds it */
	u32 tgid;
	u32 pad;
};

struct kernel_request {
	u64 bytes;   /* of all that the handle stands for */
	u64 last;    /* of the last of them */
	u64 time_ns; /* that one was posted */
	u64 walk;    /* the last completion that it was seen in */
	u32 count;
	u32 flags; /* KERNEL_REQUEST_* */
};

#define KERNEL_REQUEST_PERSISTENT 1
#define KERNEL_REQUEST_ACTIVE 2

/* The variable a handle was written to: it tells operations apart that share one. */
struct kernel_request_slot {
	u64 handle;
	u64 bytes;
};

#define KERNEL_REQUESTS 64 /* read per completion */

/* What a call leaves to be read when it has returned; per thread, in task storage. */
struct kernel_pending {
	u64 post_at; /* address of the request, 0 = nothing was posted */
	u64 post_bytes;
	u32 post_flags;
	u32 count;   /* handles below; 0 = no completion is pending */
	u64 done_at; /* what VAPRO_ROLE_DONE_* is about */
	u64 indices_at;
	u64 array; /* address of the first handle */
	u32 done;  /* VAPRO_ROLE_DONE_* */
	u32 slots; /* variables are the application's own */
	u64 handle[KERNEL_REQUESTS];
};

struct kernel_edge_key {
	u32 from, to; /* vertex ids */
};

/* Counters of a state, by id; read by user space for nothing but debugging. */
struct kernel_state_stats {
	u64 min_ns;  /* least duration (computation: on-CPU time) */
	u32 n;	     /* saturates; racy between threads, decides only how fragments travel */
	u32 of;	     /* computation whose instructions are counted: whose these are, of all that share the place */
	u32 bin;     /* in which they were last used */
	u32 span_ns; /* of a vertex: see struct kernel_governed */
};

/* Counts at a fragment's border; all monotone. */
struct kernel_counts {
	u64 preempted_ns, wakeup_wait_ns, blocked_io_ns, blocked_other_ns, throttled_ns;
	u64 steal_ns, irq_ns, hard_irq_ns, soft_irq_ns, slow_ns; /* taken from it while it was on a CPU */
	u64 minor_faults, major_faults, voluntary_switches, involuntary_switches, migrations;
};

/* A fragment or the merge of many (ARCHITECTURE section 4). */
struct kernel_bundle {
	u64 start_ns, end_ns;
	u64 sum_ns, min_ns, max_ns;
	u64 bytes_min, bytes_max;
	u64 first_call, last_call;
	struct kernel_counts counts;
	u64 event_min[KERNEL_MAGNITUDES], event_max[KERNEL_MAGNITUDES];
	u64 event_sum[KERNEL_EVENTS]; /* of computation; 0 where it was not counted */
	u32 n;
	u32 slot; /* of the process's counters */
};

#define KERNEL_EDGE 0x80000000u

struct kernel_bundle_key {
	u32 state; /* vertex id, or edge id | KERNEL_EDGE */
	u32 tid;
	u32 bin;  /* low bits of UTC ns / 200 ms */
	u16 cell; /* for edges, of instructions; where they are not counted, of on-CPU time */
	u8 abnormal;
	u8 group; /* which events were counted: a number of user space's, 0 = none */
	u16 named_cell[KERNEL_MAGNITUDES - 1];
};

/*
 * A place of the pool, in which merged bundles lie. Its state is written last, and is 0 while it is free:
 * user space clears it when it has told the bundle.
 */
struct kernel_place {
	struct kernel_bundle_key key;
	struct kernel_bundle bundle;
};

struct kernel_interference_key {
	u32 tid;
	u32 pid;
	u32 bin;
	u32 pad;
};

struct kernel_interference {
	u64 preempted_ns, wakeup_wait_ns;
	char comm[16];
};

/* Counters of one process, in memory that user space has mapped; in cache lines of their own. */
struct kernel_counters {
	u64 enter, exit, skipped, vanished, syscalls;
	u64 stepped;  /* of enter and left, those at single-stepped sites */
	u64 lost[16]; /* by enum vapro_loss: fragments */
	u64 emitted;  /* vertex fragments handed over, singly or merged */
	u64 left;     /* hits at exit sites */
	u64 io_ns;    /* in system calls that were told */
} __attribute__((aligned(64)));

struct kernel_function_counters {
	u64 enter, exit, vanished;
};

/* Off-CPU accounting of one thread. */
struct kernel_offcpu {
	u64 out_ns; /* 0 while on a CPU */
	u64 wake_ns;
	u32 runnable; /* preempted, or yielded */
	u32 io_wait;
	u32 other_pid; /* who was switched to */
	u32 cpu;       /* it left */
	u64 queue;     /* that it waits in since it is runnable; 0 where none can be throttled */
	u64 throttled; /* ns that this queue had been throttled then */
	char other_comm[16];
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
 * long as their epoch is the present one, and are told apart by their whole key.
 */
#define KERNEL_RECENT 16
#define KERNEL_RECENT_CALLS 8
#define KERNEL_RECENT_BUNDLES 32
#define KERNEL_TYPES 4
#define KERNEL_PLAIN_ARGUMENTS 6

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

/* Where in the pool a bundle is, of a bin that is not closed. */
struct kernel_recent_bundle {
	struct kernel_bundle_key key;
	u32 place;
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
	u32 pad;
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

	/* from here on it need not be cleared */
	u64 registers[11]; /* scratch, as `one`: at an entry */
	u64 described;	   /* bytes of the vertex that was described last */
	struct kernel_recent recent[KERNEL_RECENT];
	struct kernel_recent_edge recent_edges[KERNEL_RECENT];
	struct kernel_recent_call recent_calls[KERNEL_RECENT_CALLS];
	struct kernel_recent_bundle recent_bundles[KERNEL_RECENT_BUNDLES];
	struct kernel_recent_handle recent_handles[2];		/* by enum kernel_handle_kind */
	struct kernel_recent_handle recent_types[KERNEL_TYPES]; /* predefined datatypes, and their sizes */

	struct kernel_row_hits rows[KERNEL_ROW_HITS];
	struct kernel_span_hits spans[KERNEL_SPANS]; /* cleared with hits */
};

enum kernel_record_type {
	KERNEL_FRAGMENT = 1,
	KERNEL_UNKNOWN, /* a process that nobody asked for called a probed function */
	KERNEL_EXEC,
	KERNEL_EXIT,
	KERNEL_THREAD,	 /* a thread is seen for the first time */
	KERNEL_OUTLINED, /* a function is handed to a team for the first time in its process */
};

struct kernel_outlined_key {
	u64 address;
	u32 tgid;
	u32 pad;
};

struct kernel_record {
	u32 type;
	u32 tgid, tid;
	u32 pad;
	u64 time_ns;
	union {
		struct kernel_bundle_key key;
		u64 address; /* KERNEL_OUTLINED */
	};
	struct kernel_bundle bundle;
};

#endif
