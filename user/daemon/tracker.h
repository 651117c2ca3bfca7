/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracker of processes: discovery, attach, accounting, detach. Every decision about a process is
 * emitted as a `process` line with its reason.
 */
#ifndef VAPRO_WATCH_H
#define VAPRO_WATCH_H

#include "collect/collector.h"
#include "collect/resolver.h"
#include "probe/attach/attacher.h"
#include "overhead/calibrate.h"
#include "overhead/governor.h"
#include "probe/attach/row_attacher.h"
#include "target/selection.h"

struct watch;

struct watch_parts {
	struct kernel_side *side;
	struct attacher *attacher;
	struct resolver *resolver;
	struct collector *collector;
	struct stream_sink *sink;
	const char *host;
	const struct costs *costs;
	struct governor governor;
	bool no_return, io;
	bool finds; /* watch__mapped() gets every mapping: no process needs a second inspection */
	struct row_attacher *rows;
	enum vapro_io_mode threads;
	const unsigned int *user_rows; /* numbers of the function entries that a site added */
	size_t user_row_count;
};

/* Parts and selection outlive the watch. NULL when out of memory. */
struct watch *watch__new(const struct watch_parts *parts, const struct selection *selection);
void watch__free(struct watch *watch);

/*
 * Attaches everything selected that runs now. A process requested by pid must be attachable: the first
 * that is not ends the scan with -errno and a sentence in err. Returns the number of tracked processes.
 */
int watch__scan(struct watch *watch, uint64_t now_ns, char *err, size_t err_size);

/* Scans again after mappings were lost, without the processes requested by pid. */
void watch__rescan(struct watch *watch, uint64_t now_ns);

/* Handles a file mapped as code: an MPI makes a selected process a target; a tracked process is read again. */
void watch__mapped(struct watch *watch, pid_t pid, const char *path, uint64_t now_ns);

/* Makes a process a candidate: it is inspected soon, and some times later (libraries come late). */
void watch__heard_of(struct watch *watch, pid_t pid, uint64_t now_ns);

/* Handles an exec at exec_ns (CLOCK_MONOTONIC): what was known of the process before is void. */
void watch__exec(struct watch *watch, pid_t pid, uint64_t exec_ns, uint64_t now_ns);

/* Inspects candidates, notices ends, detaches processes that ended. */
void watch__poll(struct watch *watch, uint64_t now_ns);

size_t watch__alive(const struct watch *watch);

/* Returns whether a candidate is yet to be inspected. */
bool watch__expects(const struct watch *watch);

/* Returns whether a process was attached at some time. */
bool watch__any(const struct watch *watch);

/* Prints the jobs of the tracked processes, one a line, with their number of processes. Returns 0 or -EIO. */
int watch__print_jobs(const struct watch *watch, FILE *out);

/* The result of watch__second(): whether IO is worth tracing, by the targets' own rates; threads counted. */
struct watch_second {
	bool io_worth;
	bool in_io;	/* a tracked process is inside a traced system call */
	uint64_t io_ns; /* time in traced system calls since the last second */
	uint32_t threads;
};

void watch__second(struct watch *watch, uint64_t now_ns, struct watch_second *second);

/*
 * Charges every tracked process and enforces the budget: to be called in each iteration of the loop.
 * Returns true while these must be frequent, since a process spends fast.
 */
bool watch__govern(struct watch *watch, uint64_t now_ns);

/* Returns whether probes are closed to keep the budget. */
bool watch__is_governed(const struct watch *watch);

/* Adds a function entry for a function that a process handed to its threads for the first time. */
void watch__outlined(struct watch *watch, pid_t pid, uint64_t address);

/* Handles a thread that was just stopped: reports a debugger or tracer that is attached now, once. */
void watch__stopped(struct watch *watch, pid_t pid);

/* Notes the end of a thread (CLOCK_MONOTONIC), whose last bundles are still to be drained. */
void watch__thread_ended(struct watch *watch, pid_t pid, pid_t tid, uint64_t time_ns);

/* Emits open fragments and facts of the window [begin_ns, end_ns), CLOCK_MONOTONIC. 0 or -errno of the sink. */
int watch__end_window(struct watch *watch, uint64_t begin_ns, uint64_t end_ns);

/* Reports every process as detached; the caller closes the links. */
void watch__detach_all(struct watch *watch, uint64_t now_ns, const char *reason);

/* Returns the probe entries of all processes so far. */
uint64_t watch__hits(const struct watch *watch);

/* Emits a warning line. pid 0: of no process. */
void watch__warn(struct watch *watch, const char *code, pid_t pid, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
