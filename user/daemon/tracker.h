/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processes that are watched: found, attached, accounted for, and let go. Every decision about
 * one is told as a `process` line with its reason.
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
	bool finds; /* watch__mapped is told of every mapping: nobody need be looked at twice */
	struct row_attacher *rows;
	enum vapro_io_mode threads;
	const unsigned int *user_rows; /* numbers of the rows that a site added */
	size_t user_row_count;
};

/* Parts and selection outlive the watch. NULL when out of memory. */
struct watch *watch__new(const struct watch_parts *parts, const struct selection *selection);
void watch__free(struct watch *watch);

/*
 * Attaches everything selected that runs now. A process asked for by number must be attachable: the
 * first that is not ends it with -errno and a sentence. Returns how many are watched.
 */
int watch__scan(struct watch *watch, uint64_t now_ns, char *err, size_t err_size);

/* The same without those asked for by number: what was mapped meanwhile could not be told. */
void watch__rescan(struct watch *watch, uint64_t now_ns);

/* A process mapped a file as code: an MPI makes it a target if it is selected; what is watched is read again. */
void watch__mapped(struct watch *watch, pid_t pid, const char *path, uint64_t now_ns);

/* A process was heard of: it is looked at, now and some times later (libraries come late). */
void watch__heard_of(struct watch *watch, pid_t pid, uint64_t now_ns);

/* A process became another program at exec_ns (CLOCK_MONOTONIC): what was known of it before is void. */
void watch__exec(struct watch *watch, pid_t pid, uint64_t exec_ns, uint64_t now_ns);

/* Looks at whom we heard of, notices ends, lets go of what ended. */
void watch__poll(struct watch *watch, uint64_t now_ns);

size_t watch__alive(const struct watch *watch);

/* Whether somebody is yet to be looked at. */
bool watch__expects(const struct watch *watch);
size_t watch__ever(const struct watch *watch);

/* Once a second: whether IO is worth tracing, learnt from the targets' own rates; threads counted. */
struct watch_second {
	bool io_worth;
	bool in_io;	/* somebody is inside a traced system call */
	uint64_t io_ns; /* the watched spent in such calls, since the last time */
	uint32_t threads;
};

void watch__second(struct watch *watch, uint64_t now_ns, struct watch_second *second);

/*
 * Charges everybody and keeps them to the budget: to be called in each turn. True while that needs to be
 * often, since somebody spends fast.
 */
bool watch__govern(struct watch *watch, uint64_t now_ns);

/* Whether probes are closed to keep the budget. */
bool watch__is_governed(const struct watch *watch);

/* A process handed a function to its threads that was not seen before: it becomes a row. */
void watch__outlined(struct watch *watch, pid_t pid, uint64_t address);

/* A thread of the process was stopped a moment ago: where a debugger or tracer is attached now, it is reported once. */
void watch__stopped(struct watch *watch, pid_t pid);

/* A thread of a process ended at this time (CLOCK_MONOTONIC). Its last bundles are under way. */
void watch__thread_ended(struct watch *watch, pid_t pid, pid_t tid, uint64_t time_ns);

/* Tells open fragments and facts for the window [begin_ns, end_ns), CLOCK_MONOTONIC. 0 or -errno of the sink. */
int watch__end_window(struct watch *watch, uint64_t begin_ns, uint64_t end_ns);

/* Lets go of everybody: links are closed by the caller. */
void watch__detach_all(struct watch *watch, uint64_t now_ns, const char *reason);

/* Probe entries so far, of all processes. */
uint64_t watch__hits(const struct watch *watch);

/* A warning line. pid 0: of no process. */
void watch__warn(struct watch *watch, const char *code, pid_t pid, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
