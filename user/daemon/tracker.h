/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracker of processes: discovery, attach, accounting, detach. Every decision about a process is
 * emitted as a `process` line with its reason.
 */
#ifndef VAPRO_TRACKER_H
#define VAPRO_TRACKER_H

#include "collect/collector.h"
#include "collect/resolver.h"
#include "probe/attach/attacher.h"
#include "overhead/calibrate.h"
#include "overhead/governor.h"
#include "probe/attach/row_attacher.h"
#include "report/board.h"
#include "target/selection.h"
#include "wire/request.h"
#include <vapro/analysis.h>

struct tracker;

struct tracker_parts {
	struct kernel_side *side;
	struct attacher *attacher;
	struct resolver *resolver;
	struct collector *collector;
	struct stream_sink *sink;
	const char *host;
	const struct costs *costs;
	struct governor governor;
	bool no_return, io;
	bool finds; /* tracker__mapped() gets every mapping: no process needs a second inspection */
	struct row_attacher *rows;
	enum vapro_tristate threads;
	const unsigned int *user_rows; /* numbers of the function entries that a site added */
	size_t user_row_count;
};

/* Parts and selection outlive the watch. NULL when out of memory. */
struct tracker *tracker__new(const struct tracker_parts *parts, const struct selection *selection);
void tracker__free(struct tracker *tracker);

/*
 * Attaches everything selected that runs now. A process requested by pid must be attachable: the first
 * that is not ends the scan with -errno and a sentence in err. Returns the number of tracked processes.
 */
int tracker__scan(struct tracker *tracker, uint64_t now_ns, char *err, size_t err_size);

/* Prints what would be attached of everything selected that runs now, and attaches nothing. Returns 0 or -EIO. */
int tracker__preview(struct tracker *tracker, uint64_t now_ns, FILE *out);

/* Makes what runs a candidate again after mappings were lost, without the processes requested by pid. */
void tracker__rescan(struct tracker *tracker, uint64_t now_ns);

/* Returns whether candidates were left for the next pass of the loop, since many were attached in this one. */
bool tracker__is_behind(const struct tracker *tracker);

/* Handles a file mapped as code: an MPI makes a selected process a target; a tracked process is read again. */
void tracker__mapped(struct tracker *tracker, pid_t pid, const char *path, uint64_t now_ns);

/* Makes a process a candidate: it is inspected soon, and some times later (libraries come late). */
void tracker__is_candidate(struct tracker *tracker, pid_t pid, uint64_t now_ns);

/* Handles an exec at exec_ns (CLOCK_MONOTONIC): what was known of the process before is void. */
void tracker__exec(struct tracker *tracker, pid_t pid, uint64_t exec_ns, uint64_t now_ns);

/* Inspects candidates, notices ends, detaches processes that ended. */
void tracker__poll(struct tracker *tracker, uint64_t now_ns);

size_t tracker__alive(const struct tracker *tracker);

/* Returns whether a candidate is yet to be inspected. */
bool tracker__expects(const struct tracker *tracker);

/* Returns whether a process was attached at some time. */
bool tracker__any(const struct tracker *tracker);

/* Returns which process was refused last and why, or which translator was found; NULL: none. Children of ranks aside.
 */
const char *tracker__refusal_seen(const struct tracker *tracker);

/* Prints the jobs of the tracked processes, one a line, with their number of processes. Returns 0 or -EIO. */
int tracker__print_jobs(const struct tracker *tracker, FILE *out);

/* Gets what is known of the processes now, at most room; returns how many. Texts live until the next change. */
size_t tracker__status(const struct tracker *tracker, struct board_process *processes, size_t room);

/* Returns whether a process is tracked. */
bool tracker__tracks(const struct tracker *tracker, pid_t pid);

/* Returns the executable of a running process of a user's job (as in struct vapro_thread), or NULL. ctx: the tracker.
 */
const char *tracker__program(const void *ctx, const char *job, uint32_t user);

#define WATCH_CPUS 256

/*
 * The result of tracker__second(): whether IO is worth tracing, by the targets' own rates; threads counted; CPUs on
 * which first threads run, of at most so many processes.
 */
struct watch_second {
	bool io_worth;
	bool in_io;	/* a tracked process is inside a traced system call */
	uint64_t io_ns; /* time in traced system calls since the last second */
	uint32_t threads;
	uint32_t cpus[WATCH_CPUS], cpu_count;
};

void tracker__second(struct tracker *tracker, uint64_t now_ns, struct watch_second *second);

/*
 * Charges every tracked process and enforces the budget: to be called in each iteration of the loop. Returns after what
 * time again (enforcer__pass()).
 */
uint64_t tracker__govern(struct tracker *tracker, uint64_t now_ns);

/*
 * Leaves units of functions that never wait out of an image of a user's job, until that time (enforcer__follow()).
 * Returns whether a process maps the image.
 */
bool tracker__follow(struct tracker *tracker, const struct wire_request *request, uint32_t units, uint64_t until_ns,
		     const char *why);

/* Returns whether probes are closed to keep the budget. */
bool tracker__is_governed(const struct tracker *tracker);

/* Adds a function entry for a function that a process handed to its threads for the first time. */
void tracker__outlined(struct tracker *tracker, pid_t pid, uint64_t address);

/* Handles a thread that was just stopped: reports a debugger or tracer that is attached now, once. */
void tracker__stopped(struct tracker *tracker, pid_t pid);

/* Notes the end of a thread (CLOCK_MONOTONIC), whose last bundles are still to be drained. */
void tracker__thread_ended(struct tracker *tracker, pid_t pid, pid_t tid, uint64_t time_ns);

/*
 * Emits open fragments and facts of the window [begin_ns, end_ns), CLOCK_MONOTONIC. part: of what was counted since its
 * begin, less than 1 where its end is late. 0 or -errno of the sink.
 */
int tracker__end_window(struct tracker *tracker, uint64_t begin_ns, uint64_t end_ns, double part);

/* Gives what processes that are not watched paid for hits since the last window's end. */
void tracker__bystanders_of_window(struct tracker *tracker, double seconds, double *hits, double *pct);

/* Enters which share of the time of a user's job in a window (CLOCK_MONOTONIC) could be judged: enforcer__judged(). */
void tracker__judged(struct tracker *tracker, const struct job_result *result, uint64_t begin_ns, uint64_t end_ns);

/* Notes that the analysis of that window is done: it has cost vaprod what was run since. */
void tracker__analysed(struct tracker *tracker);

/* Reports every process as detached; the caller closes the links. */
void tracker__detach_all(struct tracker *tracker, uint64_t now_ns, const char *reason);

/* Returns the probe entries of all processes so far. */
uint64_t tracker__hits(const struct tracker *tracker);

/* Emits a warning line. pid 0: of no process. */
void tracker__warn(struct tracker *tracker, const char *code, pid_t pid, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
