/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who and what the bundles are about: jobs with their rows (ranks), threads, and the states of the
 * State Transition Graph (papers/000 section 3.2). Ids of threads and states are the caller's,
 * dense from 0; here equal texts become equal numbers. A `kind` is what states of several ranks
 * have in common: class, call-sites and the labels that count across ranks. The object owns all
 * texts; pointers into it live as long as it does, pointers to its structs until the next add.
 */
#ifndef VAPRO_STG_H
#define VAPRO_STG_H

#include <vapro/bundle.h>

#include <stddef.h>

#define STG_WORLD 0		     /* the waiting group of calls without `comm` label, or on communicator 0 */
#define STG_UNSEEN (UINT32_MAX - 1)  /* the state of what is known from the kernel's account alone */
#define STG_PROCESS (UINT32_MAX - 1) /* that of calls with `scope=process`: threads waiting for each other */

struct stg_thread {
	struct vapro_thread about;
	uint32_t job, row;
	uint32_t next;			 /* thread of the same row, + 1 */
	bool watched;			 /* from_ns and to_ns were reported, not only inferred from bundles */
	bool used;			 /* has finished a fragment, unlike the helper threads of MPI libraries */
	uint64_t from_ns, to_ns;	 /* to_ns 0: still running; from_ns 0: nothing known yet */
	uint64_t work_from;		 /* bin in which its account began, + 1; 0: it has none */
	double on_cpu_ns, attributed_ns; /* by its account, since then */
	uint32_t processor;		 /* equal for threads on CPUs of one model and core type; 0: unknown */
};

struct stg_state {
	struct vapro_state about;
	uint32_t kind;	 /* equal for states that may be compared between ranks */
	uint32_t common; /* equal common labels and class, whatever the call-sites */
	uint32_t group;	 /* text id of the communicator, STG_WORLD or STG_PROCESS */
	bool peer;	 /* IO on a pipe, socket or terminal: how long it takes is up to somebody else */
	bool no_return;	 /* its time is from entry to entry: the end of the call is not recorded */
	bool no_bytes;	 /* a completion of requests that were not followed: how much it transfers is unknown */
};

/*
 * A line of the heat map: a rank, or a process where the rank is unknown; and each further thread of
 * it that crosses external functions itself.
 */
struct stg_row {
	int32_t rank;
	int32_t thread;	 /* number within the rank, 0 = its first row */
	uint32_t leader; /* row of thread 0 of the same rank */
	uint32_t pid, tid;
	uint32_t first; /* of its threads, + 1 */
	const char *host;
	uint32_t host_number;	 /* dense within the job */
	int32_t socket;		 /* of its rank, as first reported; -1: unknown */
	uint32_t host_place;	 /* of the first row of its host */
	uint64_t from_ns, to_ns; /* alive; to_ns 0: still running */
	double computing_ns;	 /* time of computation in the current view */
};

struct stg_job {
	const char *name;
	uint32_t user; /* as in struct vapro_thread */
	uint32_t world_size;
	struct stg_row *rows;
	size_t row_count, row_capacity;
	uint32_t *order, *place; /* rows in the order of ranks and threads, and the place of each row in it */
	uint32_t *neighbours;	 /* rows with those of one host together, and of one socket, whatever their ranks */
	size_t order_capacity, place_capacity, neighbour_capacity;
	uint32_t host_count;
	bool unordered;					/* since stg__job was asked last */
	double typical_computing_ns, most_computing_ns; /* the median and the most of the rows' */
};

struct stg;

struct stg *stg__new(void);
void stg__free(struct stg *stg);

/* Returns 0, -EINVAL for an id that is neither known nor the next, or -ENOMEM. A known id is left as it is. */
int stg__add_thread(struct stg *stg, const struct vapro_thread *thread);
int stg__add_state(struct stg *stg, const struct vapro_state *state);

/*
 * A thread was watched from (0: since its first fragment) .. to (0: still is), UTC ns. With the main thread of a
 * process all its others end. Returns 0 or -EINVAL.
 */
int stg__thread_seen(struct stg *stg, uint32_t thread, uint64_t from_ns, uint64_t to_ns);

/*
 * A fragment of the thread began at start: what is known of its life may widen, and a thread beside
 * the first gets a row of its own. To be called before its first bundle is added. 0 or -ENOMEM.
 */
int stg__touch(struct stg *stg, uint32_t thread, uint64_t start_ns, bool finished);

/* A bin of a thread's account: time on a CPU, and time in which it was kept from one. */
void stg__add_work(struct stg *stg, uint32_t thread, uint64_t bin, double on_cpu_ns, double attributed_ns);

/* Of the time up to the end of a bin in which a thread could have run the share that it did, by its account. */
double stg__work_share(const struct stg *stg, uint32_t thread, uint64_t bin);

size_t stg__threads(const struct stg *stg);
size_t stg__states(const struct stg *stg);
size_t stg__jobs(const struct stg *stg);
const struct stg_thread *stg__thread(const struct stg *stg, uint32_t id);
const struct stg_state *stg__state(const struct stg *stg, uint32_t id);

/* With its rows in order. */
const struct stg_job *stg__job(const struct stg *stg, uint32_t id);

/* How long the rows of a job computed in the view; by row. Returns 0 or -ENOMEM. */
int stg__set_computing(struct stg *stg, uint32_t job, const double *computing_ns);

/* Where a thread runs: on what kind of CPU, and the socket of its row. Returns 0, -EINVAL or -ENOMEM. */
int stg__set_place(struct stg *stg, const struct vapro_place *place);

/* The thread that is a task of a host; NULL where it is not known. */
const struct stg_thread *stg__task(const struct stg *stg, const char *host, uint32_t pid, uint32_t tid);

/* Whether all rows of a job were watched to their end. */
bool stg__job_over(const struct stg *stg, uint32_t id);

/* What it holds. */
size_t stg__bytes(const struct stg *stg);

/* The id of a user's job, or UINT32_MAX. */
uint32_t stg__find_job(const struct stg *stg, const char *name, uint32_t user);

#endif
