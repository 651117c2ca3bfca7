/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subjects of bundles: jobs with their rows (ranks), threads, and the states of the
 * State Transition Graph (VAPRO (PPoPP'22) section 3.2). Threads and states are announced with numbers
 * that go up from 0 without gaps. Their numbers here, and those of jobs, are given again once they are over
 * (stg__forget): as long as none is, they are the announced ones. Equal texts become equal numbers. A `kind` is
 * what states of several ranks have in common: class, call-sites and the labels that count across ranks. The
 * object owns all texts, which live as long as something has them; pointers to its structs live until the next add.
 */
#ifndef VAPRO_STG_H
#define VAPRO_STG_H

#include "base/archive.h"

#include <vapro/bundle.h>

#include <stddef.h>

#define STG_NONE UINT32_MAX	    /* no number; also the job of a thread's number that is free */
enum { STG_WORLD = 0 };		    /* the waiting group of calls without `comm` label, or on communicator 0 */
#define STG_UNSEEN (UINT32_MAX - 1) /* the state of time known from the kernel's account alone */
#define STG_UNSEEN_TEXT "not known (its calls were not observed)" /* its call-site */
#define STG_PROCESS (UINT32_MAX - 1) /* the group of calls with `scope=process`: threads of a process */

struct stg_thread {
	struct vapro_thread about; /* its id is the announced number */
	uint32_t job, row;
	uint32_t next;			 /* next thread of the row, + 1 */
	bool watched;			 /* from_ns and to_ns were reported, not only inferred from bundles */
	bool used;			 /* has finished a fragment, unlike the helper threads of MPI libraries */
	uint64_t from_ns, to_ns;	 /* to_ns 0: still running; from_ns 0: nothing known yet */
	uint64_t work_from;		 /* first bin of its account, + 1; 0: it has none */
	uint64_t work_to;		 /* last bin of its account, + 2 */
	double on_cpu_ns, attributed_ns; /* by its account, since work_from */
	uint64_t last_ns;		 /* end of its latest finished fragment, UTC; 0: none yet */
	uint32_t last_state;		 /* the state of that fragment; valid where last_ns is not 0 */
	uint32_t stopped_by;		 /* enum vapro_stopped_by, of that stop */
	uint64_t busy_from, busy_to; /* the last bins on end in which it ran or waited for a CPU; to: + 1; 0: none */
	uint64_t stopped_to;	     /* last bin that is known to be one of a stop, + 1; 0: none */
	uint32_t processor;	     /* equal for threads on CPUs of one model and core type; 0: unknown */
	uint32_t sibling;	     /* next thread of the process in its job, + 1 */
};

struct stg_state {
	struct vapro_state about; /* its id is the announced number; to is NULL of a number that is free */
	uint32_t kind;		  /* equal for states that may be compared between ranks */
	uint32_t common;	  /* equal common labels and class, whatever the call-sites */
	uint32_t group;		  /* text id of the communicator, STG_WORLD or STG_PROCESS */
	bool peer;		  /* IO on a pipe, socket or terminal: the other end decides how long it takes */
	bool no_return;		  /* its time is from entry to entry: the end of the call is not recorded */
	bool together;		  /* a collective that no rank leaves before all have entered */
	bool one_sided;		  /* a call that needs no call of another rank */
	uint32_t gone;		  /* window after which nothing more comes of it, + 1; 0: it goes on */
	bool no_bytes;		  /* a completion of requests that were not followed: its transfer size is unknown */
};

/*
 * A row of the heat map: a rank, or a process of unknown rank, or a further thread of either that
 * crosses external functions itself.
 */
struct stg_row {
	int32_t rank;
	int32_t thread;	 /* number within the rank, 0 = its first row */
	uint32_t leader; /* row of thread 0 of the same rank */
	uint32_t pid, tid;
	uint32_t first; /* first of its threads, + 1 */
	const char *host;
	uint32_t host_number;	 /* dense within the job */
	int32_t socket;		 /* socket of its rank, as first reported; -1: unknown */
	uint32_t host_place;	 /* place of its host's first row */
	uint64_t from_ns, to_ns; /* alive; to_ns 0: still running */
	double computing_ns;	 /* time of computation in the current view */
	double calls;		 /* in the current view */
	float full_speed;	 /* see stg__set_speed */
};

struct stg_job {
	const char *name;   /* NULL of a number that is free */
	uint32_t announced; /* number of its first thread */
	uint32_t user;	    /* as in struct vapro_thread */
	uint32_t world_size;
	struct stg_row *rows;
	size_t row_count, row_capacity;
	uint32_t *order, *place; /* rows in the order of ranks and threads, and the place of each row in it */
	uint32_t *neighbours;	 /* rows grouped by host, and by socket, whatever their ranks */
	size_t order_capacity, place_capacity, neighbour_capacity;
	uint32_t host_count;
	bool unordered;					/* rows changed since the last stg__job */
	double typical_computing_ns, most_computing_ns; /* median and maximum of the rows */
	double typical_per_call_ns, most_per_call_ns;	/* of computation per call; 0: unknown */
};

struct stg;

struct stg *stg__new(void);
void stg__free(struct stg *stg);

/* Returns 0, -EINVAL for an id that was neither announced before nor is the next, or -ENOMEM. One of before stays as it
 * is. */
int stg__add_thread(struct stg *stg, const struct vapro_thread *thread);
int stg__add_state(struct stg *stg, const struct vapro_state *state);

/*
 * Notes the times of a tracked thread, from (0: its first fragment) .. to (0: not ended), UTC ns. All threads of a
 * process end with its main thread. Returns 0 or -EINVAL.
 */
int stg__thread_seen(struct stg *stg, uint32_t thread, uint64_t from_ns, uint64_t to_ns);

/*
 * Notes the start of a fragment of the thread: the known life of the thread may widen, and a thread beside
 * the first gets a row of its own. Call before adding its first bundle. Returns 0 or -ENOMEM.
 */
int stg__touch(struct stg *stg, uint32_t thread, uint64_t start_ns, bool finished);

/* Notes the end of a finished fragment of the thread, UTC ns. */
void stg__finished(struct stg *stg, uint32_t thread, uint32_t state, uint64_t end_ns);

/* Adds a bin of a thread's account: time on a CPU, and attributed time off it. */
void stg__add_work(struct stg *stg, uint32_t thread, uint64_t bin, double on_cpu_ns, double attributed_ns);

/* Notes whether a thread ran, wanted to run or was stopped in a bin, by its account. */
void stg__note_account(struct stg *stg, const struct vapro_account *account);

/*
 * The share of time on a CPU in the time that a thread could run, by its account: up to the end of a bin, or of a later
 * bin that the account has. 0 for a thread that is not the first of its process and could hardly run at all so far.
 */
double stg__work_share(const struct stg *stg, uint32_t thread, uint64_t bin);

/* The number of an announced thread or state; STG_NONE where it is not known, or is over. */
uint32_t stg__thread_number(const struct stg *stg, uint32_t announced);
uint32_t stg__state_number(const struct stg *stg, uint32_t announced);

/* Notes that nothing comes of a state after a window (a number of the caller), and how many such states there are. */
void stg__state_gone(struct stg *stg, uint32_t state, uint32_t window);
size_t stg__gone(const struct stg *stg);

/* Counts of numbers, those that are free included. */
size_t stg__threads(const struct stg *stg);
size_t stg__states(const struct stg *stg);
size_t stg__jobs(const struct stg *stg);
const struct stg_thread *stg__thread(const struct stg *stg, uint32_t id);
const struct stg_state *stg__state(const struct stg *stg, uint32_t id);

/* The job, with rows in order. */
const struct stg_job *stg__job(const struct stg *stg, uint32_t id);

/* Sets the computation time of each row in the view. Returns 0 or -ENOMEM. */
int stg__set_computing(struct stg *stg, uint32_t job, const double *computing_ns, const double *calls);

/*
 * Learns what frequency is usual, from the computation of each row in a view: its time on a CPU, and the time that the
 * highest frequency would have saved. full_speed of a row is the part that it would not have saved, the largest of all
 * views and of all rows on CPUs of its kind; 0: not known. Returns 0 or -ENOMEM.
 */
int stg__set_speed(struct stg *stg, uint32_t job, const double *on_cpu_ns, const double *saved_ns);

/*
 * How much less a row computed in the view than the row with most, or the typical one, ns; below 0: more. A row that
 * meets others in its calls makes as many of them as they do. A row with fewer calls goes its own way: what it computes
 * per call counts, and it does not wait for others because it makes fewer.
 */
double stg__computes_less(const struct stg_job *job, uint32_t row, bool than_most);

/* Sets the kind of CPU of a thread, and the socket of its row. Returns 0, -EINVAL or -ENOMEM. */
int stg__set_place(struct stg *stg, const struct vapro_place *place);

/* Copies the value of a label to buf; "" where it is absent. */
void stg__label(const char *labels, const char *key, char *buf, size_t size);

/* The thread that is a task of a host; NULL where it is not known. */
const struct stg_thread *stg__task(const struct stg *stg, const char *host, uint32_t pid, uint32_t tid);

/* Hosts of a job so far, and the number of a thread's host among them. */
uint32_t stg__hosts(const struct stg *stg, uint32_t job);
uint32_t stg__host_of(const struct stg *stg, uint32_t thread);

/* Moves the known lives of a host's threads in a job by so many ns: its clock was off. */
void stg__shift_host(struct stg *stg, uint32_t job, uint32_t host, int64_t ns);

/* Whether all rows of a job have ended, by a time. */
bool stg__job_over(const struct stg *stg, uint32_t id, uint64_t by_ns);

/* What is over, by number. */
struct stg_over {
	const bool *jobs, *states; /* all threads of the jobs are over, too */
	unsigned char *texts;	   /* stg__texts() marks: texts that others use; those of what is not over are added */
};

size_t stg__texts(const struct stg *stg);

/*
 * Frees the numbers of what is over, and the texts that nothing has any more; counts may become less. Returns 0, or
 * -ENOMEM, and then the object can only be freed.
 */
int stg__forget(struct stg *stg, const struct stg_over *over);

/* Whether a row of a job is known to go on after now_ns, as in a file of fragments that was read as a whole. */
bool stg__job_goes_on(const struct stg *stg, uint32_t id, uint64_t now_ns);

/* Writes or reads the whole graph; one to be read is new. */
void stg__archive(struct archive *archive, struct stg *stg);

/* Bytes held. */
size_t stg__bytes(const struct stg *stg);

/* The id of a user's job, or UINT32_MAX. */
uint32_t stg__find_job(const struct stg *stg, const char *name, uint32_t user);

#endif
