/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by kernel side and user side: plain structs and enums, no pointers, fixed sizes. Included
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
#define KERNEL_SLOTS 1024	 /* processes watched at once */
#define KERNEL_FUNCTIONS 1024	 /* rows of the function table, and rows of images */
#define KERNEL_STATES 65536	 /* vertices, and as many edges */
#define KERNEL_HANDLES 8192	 /* communicators, operations and requests with a number */
#define KERNEL_NEW_VERTICES 4096 /* vertices that user space finds by number: the latest ones */
#define KERNEL_PATHS 16384	 /* chains of callers */
#define KERNEL_SYSCALLS 512
#define KERNEL_CPUS 4096
#define KERNEL_EVENTS 8	    /* counters read at once: instructions first, then the named ones */
#define KERNEL_MAGNITUDES 3 /* workload counters: instructions and two named */

/*
 * Roles: for each the number of its argument, counted from 1; 0 = the function has none.
 * Arguments 1-6 (arm64: 1-8) are registers, later ones 8-byte slots on the stack.
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
	u8 requests; /* number of requests completed or started, the array follows; 255 = argument 1 is the request */
	u8 flags;    /* VAPRO_ROLE_* */
	u8 request;  /* where the handle of a posted operation is written to */
	u8 done;     /* where a completion that may leave requests open reports which are done */
};

/* count is an array of counts: its first element stands for all */
#define VAPRO_ROLE_COUNT_ARRAY 1
/* the request posted outlives its completions, and works only once started */
#define VAPRO_ROLE_PERSISTENT 2
/* the requests named are started, not completed */
#define VAPRO_ROLE_START 4
/* done points to a flag for all, the index of one, or a number of indices, which follow */
#define VAPRO_ROLE_DONE_FLAG 8
#define VAPRO_ROLE_DONE_INDEX 16
#define VAPRO_ROLE_DONE_SOME 32

/* Meaning of a row's entry and exit for the thread. */
enum kernel_row_kind {
	KERNEL_ROW_CALL,     /* an invocation: a vertex from entry to exit */
	KERNEL_ROW_FORK,     /* hands a function to threads: its own wait ends where the function begins */
	KERNEL_ROW_BOUNDARY, /* entry and exit are vertices without duration, computation goes on between them */
	KERNEL_ROW_OUTLINED, /* entry has no duration, exit begins the wait for the next function */
};

/*
 * Cookie of a probe: the row and the kind of site. The return of a row with own exit sites is never
 * hijacked: each place where the row is left has a probe.
 */
#define KERNEL_SITE_ROW 0xffffu
#define KERNEL_SITE_READS 16		/* from this bit on, for each of six arguments: the row reads it */
#define KERNEL_PLAIN_ARGUMENTS 6	/* number of those arguments */
#define KERNEL_SITE_PLAIN 0x00400000u	/* those registers alone, as they are, determine the vertex */
#define KERNEL_SITE_LARGE 0x00800000u	/* the large-count form of a function: counts have 64 bits */
#define KERNEL_SITE_LOOK 0x04000000u	/* site of a row whose calls are counted, to learn its probes' cost */
#define KERNEL_SITE_COUNTED 0x08000000u /* entries and returns of the function must be counted exactly */
#define KERNEL_SITE_POLL 0x10000000u	/* a call that only polls the progress of communication */
#define KERNEL_SITE_OWN 0x20000000u	/* site of a row with own exit sites */
#define KERNEL_SITE_STEPPED 0x40000000u /* single-stepped (set for such rows alone) */
#define KERNEL_SITE_EXIT 0x80000000u	/* a `ret`, or a jump that leaves the function */

/* A function as the kernel side sees it; index = row in the probe's cookie. */
struct bpf_function_state {
	struct vapro_roles roles;
	u8 class;   /* enum vapro_class */
	u8 known;   /* 0: not in use, or not open: its probes' hits are ignored */
	u8 stepped; /* its site is single-stepped: costs more */
	u8 kind;    /* enum kernel_row_kind */
	u8 forked;  /* KERNEL_ROW_FORK: the argument that is the function */
	u8 hot;	    /* 1: the governor closes the function's probes */
	u8 no_wait; /* KERNEL_ROW_OUTLINED: regions may begin unseen: the time after its exit is unknown */
	u8 unit;    /* 1 + its bit in kernel_governed.set; 0: none */
};

/* A watched process, by tgid. */
struct bpf_process_state {
	u32 slot;
	u32 flags; /* KERNEL_PROCESS_* */
};

#define KERNEL_COMMUNICATION 1 /* a function's class, as in enum vapro_class */

#define KERNEL_PROCESS_NO_RETURN 1
#define KERNEL_PROCESS_MPICH 2	  /* MPICH's ABI: handles are 32-bit numbers, not addresses */
#define KERNEL_PROCESS_STANDARD 4 /* the ABI of MPI 5: predefined handles are small numbers, others addresses */

/* Units of functions that never wait, in kernel_governed.set: without the posts completions are unknown. */
#define KERNEL_SET_POSTS 0x1fu

/*
 * The governor's limits on a process's calls, and its observations of them; by slot. The span of a
 * state is the mean time from its entry to the next entry: the loss of a thread's time when the return
 * is suppressed.
 */
#define KERNEL_SPANS 16 /* octaves of microseconds: below 2, 4, .. 32768, and all others */

struct kernel_governed {
	/* set by user space */
	u32 probe_epoch;     /* raised whenever its probes were closed or opened; odd: some calls are unseen */
	u32 drop_open_epoch; /* raised with probe_epoch where returns of open calls go unseen */
	u32 no_io;	     /* its system calls are suppressed */
	u32 set;     /* bitmap of the units of functions that are not probed (functions__unit()); 0 = all are probed */
	u64 thin_ns; /* returns of calls in states of a shorter span are suppressed */
	u32 epoch;   /* raised whenever the cost was read: the busiest thread is found again from then on */
	u32 requester; /* kernel side: the only thread that posts or completes requests; 0: none yet */
	u64 known_ns;  /* requests posted before this time (CLOCK_MONOTONIC) may be unknown, which is no loss then */
	/* set by the kernel side, as `requester` above, which every hit of a request reads beside them */
	u64 calls[KERNEL_SPANS];   /* calls that may be suppressed, by the span of their state */
	u64 time_ns[KERNEL_SPANS]; /* time from such calls to the next ones */
	u64 thinned, thinned_io;   /* calls suppressed */
	u64 thinned_ns;		   /* threads' time from these to next calls */
};

/* Handles with a number, set by user space (MPI_COMM_WORLD, MPI_SUM, ...) or given at first sight. */
enum kernel_handle_kind { KERNEL_COMM, KERNEL_OP, KERNEL_REQUEST };

/* Numbers of requests: null, or one handle for all operations that were done when posted. */
enum { KERNEL_REQUEST_NULL, KERNEL_REQUEST_SHARED };

struct kernel_handle_key {
	u64 handle;
	u32 tgid;
	u32 kind;
};

#define KERNEL_FIRST_UNKNOWN 64 /* numbers from here on are given at first sight */

/*
 * All processes of the node share the tables of states. An owner's processes have a share of each together (struct
 * kernel_owner), of which a process may have an eighth of what is free, and never more entries than these. Beyond
 * KERNEL_DETAILED vertices, the arguments that may have any number of values (peer, root, communicator, operation,
 * file, open flags, call path) no longer make new states: all further values of each are one. Beyond a process's share
 * of vertices or edges its fragments are lost.
 */
#define KERNEL_DETAILED 1024
#define KERNEL_STATES_LEAST 16 /* vertices, and edges, that a process may have in any case */
#define KERNEL_VERTICES_MOST 2048
#define KERNEL_EDGES_MOST 8192
#define KERNEL_HANDLES_MOST 1024
#define KERNEL_PATHS_MOST 4096
#define KERNEL_OTHER_HANDLES 0xffff    /* instead of a handle's number + 1 */
#define KERNEL_OTHER_PATHS 0xffffffffu /* instead of a path's number */

/* Bounds reached by a process, in struct kernel_counters. */
#define KERNEL_BOUNDED_VALUES 1 /* further values of arguments are one */
#define KERNEL_BOUNDED_STATES 2 /* further states are lost */

/* Vertex: call-site, labels and norm cell (of bytes); all-zero padding, it is hashed. */
struct kernel_vertex_key {
	u64 site; /* return address */
	u32 tgid;
	u16 function;
	u16 cell; /* cell of bytes */
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
	u16 set; /* as in struct kernel_governed: calls of other sets are other states */
};

#define KERNEL_VERTEX_NO_PEER 1 /* peer holds no rank */
#define KERNEL_VERTEX_NO_ROOT 2
#define KERNEL_VERTEX_NO_RETURN 4
#define KERNEL_VERTEX_APPROX 8	   /* call-site or bytes not exact */
#define KERNEL_VERTEX_NO_SIZE 16   /* the datatype's size is unknown: bytes are elements */
#define KERNEL_VERTEX_OTHERS 128   /* arguments of this vertex stand for all further values, see KERNEL_DETAILED */
#define KERNEL_VERTEX_EXIT 64	   /* the exit of a boundary; entry and exit are their own call-sites */
#define KERNEL_VERTEX_NO_FRAMES 32 /* a path was wanted, and the caller keeps no frame pointer */
#define KERNEL_VERTEX_NO_BYTES 256 /* the completed or started requests are unknown: so are their bytes */

/*
 * Transparent images (ARCHITECTURE section 3): their mappings in a process, and per image an unwinder's
 * knowledge at each call. All distances are from the stack pointer, or from the frame pointer, as it is
 * when the call has returned.
 */
#define KERNEL_TRANSPARENT 8 /* executable ranges per process */

struct kernel_text {
	u64 begin, end;
	u64 bias;  /* linked address + bias = address */
	u32 image; /* vapro's number of the image */
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
	s32 return_at; /* distance of the wrapper's own return address */
	s32 sp;	       /* distance of the stack pointer after the wrapper's return */
	s32 frame_at;  /* distance of the caller's frame pointer, or KERNEL_FRAME_UNCHANGED */
	u32 by_frame;  /* distances are from the frame pointer */
};

#define KERNEL_FRAME_UNCHANGED (-1) /* still in its register: nothing is saved at an odd place */

/*
 * Hopped call-sites: return addresses of one process whose frames an unwinder can leave by a kernel_hop. A call
 * from there has the chain of its callers, up to the first address without such a rule, as its path.
 */
#define KERNEL_HOPS 4 /* frames above a call; more only through the C library and the runtimes of languages */

struct kernel_hopped_key {
	u64 address;
	u32 tgid;
	u32 pad;
};

/* The callers above a call-site, innermost first: by frame pointers, or by the rules of hopped call-sites. */
#define KERNEL_PATH_DEPTH 8

struct kernel_path_key {
	u64 address[KERNEL_PATH_DEPTH];
	u32 tgid;
	u32 count;
};

/*
 * The state of a request handle between post and completion. A handle may stand for several
 * operations at once: MPI libraries have one for all that were done when posted.
 */
struct kernel_request_key {
	u64 at; /* handle, or address of the variable that holds it */
	u32 tgid;
	u32 pad;
};

struct kernel_request {
	u64 bytes;   /* bytes of all its operations */
	u64 last;    /* bytes of the last operation */
	u64 time_ns; /* post of the last operation */
	u64 walk;    /* the last completion with this handle */
	u32 count;
	u32 flags; /* KERNEL_REQUEST_* */
};

#define KERNEL_REQUEST_PERSISTENT 1
#define KERNEL_REQUEST_ACTIVE 2

/* The variable a handle was written to: it distinguishes operations that share one. */
struct kernel_request_slot {
	u64 handle;
	u64 bytes;
};

#define KERNEL_REQUESTS 64 /* read per completion */

#define KERNEL_REQUESTERS 0xffffffffu /* instead of a thread: there are several */

/*
 * An operation that its thread posted, by the variable that holds its handle: while one thread alone posts and
 * completes requests, a completion mostly finds all of its own here. All else goes through the maps of requests.
 */
#define KERNEL_POSTED 32

struct kernel_posted {
	u64 at; /* address of the variable; 0 = no entry */
	u64 handle;
	u64 bytes;
	u32 epoch; /* the entry is valid in this epoch of its thread's posts */
	u32 pad;
};

/* Completions that did not find their requests among the posted ones weigh so much, those that did 1 less. */
#define KERNEL_POSTED_MISS 8
#define KERNEL_POSTED_MISSES 64 /* from this on the maps have all: the program copies its handles */

/* Data that a call leaves to be read after its return, and posted operations; per thread, in task storage. */
struct kernel_pending {
	u64 post_at; /* address of the request, 0 = nothing was posted */
	u64 post_bytes;
	u32 post_flags;
	u32 count;   /* handles below; 0 = no completion is pending */
	u64 done_at; /* address of VAPRO_ROLE_DONE_* data */
	u64 indices_at;
	u64 array;	/* address of the first handle */
	u32 done;	/* VAPRO_ROLE_DONE_* */
	u32 slots;	/* variables are the application's own */
	u32 any_posted; /* 1: there may be posted operations */
	u32 misses;
	u64 handle[KERNEL_REQUESTS];
	struct kernel_posted posted[KERNEL_POSTED];
};

struct kernel_edge_key {
	u32 from, to; /* vertex ids */
};

/* An edge by its number: user space looks up new ones. */
struct kernel_edge {
	u32 id; /* the key belongs to this edge; written last and read first */
	u32 pad;
	struct kernel_edge_key key;
};

struct kernel_vertex {
	u32 id; /* the key belongs to this vertex; written last and read first, as in struct kernel_edge */
	u32 pad;
	struct kernel_vertex_key key;
};

/* Counters of a state, by id; read by user space for nothing but debugging. */
struct kernel_state_stats {
	u64 min_ns;  /* least duration (computation: on-CPU time) */
	u32 n;	     /* saturates; racy between threads, decides only how fragments travel */
	u32 of;	     /* counted computation: hash of the state and work that have the entry */
	u32 bin;     /* bin of the last use */
	u32 span_ns; /* mean span of a vertex: see struct kernel_governed */
};

/*
 * Counts at a fragment's border, all monotone, each with its factor (enum vapro_factor without VAPRO_): times, and what
 * the kernel counts of a task, with the member of struct task_struct.
 */
#define KERNEL_TIMES(COUNT)                                                                                            \
	COUNT(preempted_ns, PREEMPTED)                                                                                 \
	COUNT(wakeup_wait_ns, WAKEUP_WAIT)                                                                             \
	COUNT(blocked_io_ns, BLOCKED_IO)                                                                               \
	COUNT(blocked_other_ns, BLOCKED_OTHER)                                                                         \
	COUNT(throttled_ns, THROTTLED)                                                                                 \
	COUNT(stopped_ns, STOPPED)                                                                                     \
	/* stolen from it while it was on a CPU */                                                                     \
	COUNT(steal_ns, STEAL)                                                                                         \
	COUNT(irq_ns, IRQ)                                                                                             \
	COUNT(hard_irq_ns, HARD_IRQ)                                                                                   \
	COUNT(soft_irq_ns, SOFT_IRQ)                                                                                   \
	COUNT(slow_ns, FREQUENCY)

#define KERNEL_TASK_COUNTS(COUNT)                                                                                      \
	COUNT(minor_faults, MINOR_FAULTS, min_flt)                                                                     \
	COUNT(major_faults, MAJOR_FAULTS, maj_flt)                                                                     \
	COUNT(voluntary_switches, VOLUNTARY_SWITCHES, nvcsw)                                                           \
	COUNT(involuntary_switches, INVOLUNTARY_SWITCHES, nivcsw)                                                      \
	COUNT(migrations, MIGRATIONS, se.nr_migrations)

#define KERNEL_COUNT_MEMBER(member, ...) u64 member;
struct kernel_counts {
	KERNEL_TIMES(KERNEL_COUNT_MEMBER)
	KERNEL_TASK_COUNTS(KERNEL_COUNT_MEMBER)
};
#undef KERNEL_COUNT_MEMBER

#define KERNEL_COUNT_NUMBER(member, factor, ...) KERNEL_TASK_##factor,
enum kernel_task_count { KERNEL_TASK_COUNTS(KERNEL_COUNT_NUMBER) KERNEL_TASK_COUNTED };
#undef KERNEL_COUNT_NUMBER

/* A fragment or the merge of many (ARCHITECTURE section 4). */
struct kernel_bundle {
	u64 start_ns, end_ns;
	u64 sum_ns, min_ns, max_ns;
	u64 bytes_min, bytes_max;
	u64 first_call, last_call;
	struct kernel_counts counts;
	u64 event_min[KERNEL_MAGNITUDES], event_max[KERNEL_MAGNITUDES];
	u64 event_sum[KERNEL_EVENTS]; /* counts of computation; 0 where not counted */
	u32 n;
	u32 slot; /* slot of the process's counters */
};

#define KERNEL_EDGE 0x80000000u

struct kernel_bundle_key {
	u32 state; /* vertex id, or edge id | KERNEL_EDGE */
	u32 tid;
	u32 bin;  /* low bits of UTC ns / 200 ms */
	u16 cell; /* cell of an edge's instructions, or of on-CPU time if not counted */
	u8 abnormal;
	u8 group; /* user space's number of the set of counted events, 0 = none */
	u16 named_cell[KERNEL_MAGNITUDES - 1];
};

/*
 * A slot of the pool of merged bundles. key.state is written last, and is 0 while the slot is free:
 * user space clears it when it has drained the bundle.
 */
struct bpf_pool_slot {
	struct kernel_bundle_key key;
	struct kernel_bundle bundle;
};

struct kernel_interference_key {
	u32 tid;
	u32 pid;
	u32 bin;
	u32 pad;
};

/* Time that a thread waited for a CPU while a task ran there, by slices: stays of that task on the CPU, or parts. */
struct kernel_interference {
	u64 preempted_ns, wakeup_wait_ns;
	u64 longest_ns; /* of one slice */
	char comm[16];
	u32 tgid;    /* the process of the task that ran instead */
	u32 monitor; /* 1: that process is vaprod or its child */
	u32 slices;
	u32 pad;
};

/*
 * Where threads run in open computations: samples of a software clock while user space requests them. Samples of a
 * thread in KERNEL_INSIDE_BYTES of code are one entry.
 */
#define KERNEL_INSIDE_BYTES 16

struct kernel_inside_key {
	u64 block;  /* address / KERNEL_INSIDE_BYTES; 0: in the kernel */
	u32 tid;    /* task */
	u32 vertex; /* call after which the computation began */
};

struct kernel_inside {
	u64 samples;
	u64 address; /* of the first sample */
};

#include <vapro/bpf/hit_counters.h>

/* Parallel regions of a process, by its slot; the functions of some may not be seen. */
struct kernel_team {
	u32 regions; /* regions begun so far: the number of the last one */
	u32 joined;  /* last region whose function a thread entered without having begun it */
};

enum kernel_record_type {
	KERNEL_FRAGMENT = 1,
	KERNEL_UNKNOWN, /* an untracked process called a probed function */
	KERNEL_EXEC,
	KERNEL_EXIT,
	KERNEL_THREAD,	 /* a thread is seen for the first time */
	KERNEL_OUTLINED, /* a function is handed to a team for the first time in its process */
	KERNEL_STOPPED,	 /* a thread was stopped in a bin: made by user space, never in the ring */
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

/* A look at an account (bpf/accounts.h): its number, and times that no switch has added to it yet. */
struct kernel_account_look {
	u32 number; /* from 0 */
	u32 pad;
	u64 steal_ns;	  /* stolen from its thread so far */
	u64 throttled_ns; /* throttled in its present wait for a CPU */
	u64 running_ns;	  /* the wait was over that long ago: the switch to a CPU went unseen */
};

#endif
