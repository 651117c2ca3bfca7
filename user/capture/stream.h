/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stream of events is the only way of data between collection and analysis. The daemon, a replayed
 * capture and the NDJSON reader are sources; the capture writer and the analyser are sinks. Since
 * every fact of a run is in the stream, a capture replays into the same lines as the live run.
 *
 * Times in events are CLOCK_MONOTONIC ns, a window's UTC; the latest STREAM_CLOCK converts them. Events own
 * nothing: pointers are valid during put() only. Threads and states are announced before use, with
 * dense ids from 0.
 */
#ifndef VAPRO_STREAM_H
#define VAPRO_STREAM_H

#include <vapro/bundle.h>
#include "records/record_table.h"

enum stream_type {
	STREAM_LINE = 1, /* a finished NDJSON line (hello, process, warning), emitted as it is */
	STREAM_CLOCK,
	STREAM_THREAD,
	STREAM_SEEN, /* a thread is observed from..to */
	STREAM_STATE,
	STREAM_BUNDLE,
	STREAM_INTERFERENCE,
	STREAM_FACTS, /* facts of one process, before each window */
	STREAM_WINDOW,
	STREAM_END, /* a capture that lacks it was cut short */
	STREAM_PLACE,
	STREAM_STAGE,
	STREAM_HOP,
	STREAM_ACCOUNT,
	STREAM_NAME,
	STREAM_INSIDE,
	STREAM_HOST_CLOCK,
	STREAM_GONE, /* added last: files hold the other numbers */
};

struct stream_clock {
	uint64_t mono_ns, utc_ns;
};

struct stream_seen {
	uint32_t thread;
	uint64_t from_ns, to_ns; /* from_ns 0: since its first fragment; to_ns 0: still running */
};

struct stream_window {
	uint64_t begin_ns, end_ns; /* the window's new part: UTC, on bin borders */
	bool last;
	double daemon_cpu_pct;
	double io_traced_pct; /* share of time with system calls traced; NAN unknown */
	double io_tax_pct;    /* share of the node's CPU time that is added to all system calls */
	/* hits of probes in processes that are not watched, or not yet, and what they cost; NAN unknown */
	double bystander_hits, bystander_pct; /* percent of one CPU */
};

/* Announces other counters from now on, or a refused request: the old counters then go on. */
struct stream_stage {
	uint64_t begin_ns, end_ns; /* in between nothing was counted */
	uint32_t stage;
	const char *expand;  /* the factor whose parts are (to be) counted; NULL at stage 1 */
	const char *job;     /* job of the stage; NULL at stage 1 */
	uint64_t variance;   /* 0 at stage 1 */
	const char *events;  /* names of counted events, joined by commas; NULL where refused */
	const char *refused; /* reason of a refusal; NULL: counted */
};

/* A call-site's calls are distinguished by their callers from now on, or no more: see struct vapro_hop_event. */
struct stream_hop {
	uint64_t begin_ns, end_ns; /* computation in between is no fragment */
	uint32_t hop;		   /* enum vapro_hop */
	const char *site, *symbol, *reason;
};

/*
 * A function of a place in code, from its symbols and debug information, which are read after the place was announced
 * in a state. depth 0 holds the call; where it is inlined, depth 1 holds its caller, and so on. Depths come in order,
 * and depth 0 replaces what is known of the place.
 */
struct stream_name {
	const char *site; /* call-site or caller, without those that follow SITE_CALLED_BY */
	uint32_t depth;
	const char *function; /* demangled; NULL unknown */
	uint64_t offset;      /* of the return address in the function; 0: the line is known */
	const char *file;     /* as the compiler had it; NULL unknown */
	uint32_t line;	      /* 0 unknown */
};

/* Samples of a thread's place in its open computations, of the window that ends next. */
struct stream_inside {
	uint32_t thread;
	uint32_t state;	  /* the call after which the computation began */
	const char *site; /* as in struct result_inside; NULL: places too rare to be listed */
	uint64_t samples;
};

/* A finished record, and its type: RECORD_OBJECTS for one of a type that this version does not know. */
struct stream_line {
	enum record_object type;
	const char *text; /* without its newline */
};

/* A state's number, which is not used any more from the next window on. */
struct stream_gone {
	uint32_t state;
};

struct stream_event {
	enum stream_type type;
	union {
		struct stream_line line;
		struct stream_clock clock;
		struct vapro_thread thread;
		struct stream_seen seen;
		struct vapro_state state;
		struct vapro_bundle bundle;
		struct vapro_interference interference; /* its bin counts from the clock's UTC */
		struct vapro_account account;		/* bin as above */
		struct vapro_process_facts facts;
		struct vapro_place place;
		struct stream_stage stage;
		struct stream_hop hop;
		struct stream_name name;
		struct stream_inside inside;
		struct stream_window window;
		struct vapro_host_clock host_clock;
		struct stream_gone gone;
	};
};

/* A receiver of events. put() returns 0 or a negative errno; close() flushes, frees, and returns the last error. */
struct stream_sink {
	int (*put)(struct stream_sink *sink, const struct stream_event *event);
	int (*close)(struct stream_sink *sink);
};

/* Makes the line of a record that comes from outside of the process. */
static inline struct stream_line stream__line(const char *text)
{
	return (struct stream_line){.type = text ? record_table__type_of(text) : RECORD_OBJECTS, .text = text};
}

static inline int stream__put(struct stream_sink *sink, const struct stream_event *event)
{
	return sink->put(sink, event);
}

static inline int stream__close(struct stream_sink *sink)
{
	return sink ? sink->close(sink) : 0;
}

#endif
