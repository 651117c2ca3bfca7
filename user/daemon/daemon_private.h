/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon's parts, for the files that set it up and run it; nobody else includes it. */
#ifndef VAPRO_DAEMON_PRIVATE_H
#define VAPRO_DAEMON_PRIVATE_H

#include "daemon/daemon.h"

#include "query/server.h"
#include "base/clock.h"
#include "daemon/io_tracing.h"
#include "probe/pmu/counters.h"
#include "overhead/recalibrate.h"
#include "functions/user_rows.h"
#include "report/sink.h"
#include "target/finder.h"

#define SETTLE_NS 300000000ULL /* a window ends this much after its last bin: everything of it is drained by then */

/* Events go to the analysis and, while that works, to the capture. */
struct tee {
	struct stream_sink sink; /* first */
	struct stream_sink *pipeline, *capture;
	int capture_status;
};

#define HOP_REFUSALS 16

/* Why call-sites of images could not be hopped, as far as it was said. */
struct hop_refusals {
	const char *reason[HOP_REFUSALS]; /* static text */
	char image[HOP_REFUSALS][64];
	unsigned count;
};

struct daemon {
	const struct daemon_options *options;
	char host[256];
	struct tee tee;
	struct line_sink *lines;
	struct counters *counters;
	const char *expanded; /* the factor whose parts are counted; NULL: the time as a whole */
	bool counters_lost;   /* while changing them, to somebody else */
	struct kernel_side *side;
	struct attacher *attacher;
	struct row_attacher *rows;
	unsigned int user_rows[USER_ROWS_MAX];
	struct resolver *resolver;
	struct collector *collector;
	struct watch *watch;
	struct io_tracing io;
	struct finder *finder; /* or NULL: then whoever executes something is looked at for a while */
	struct costs costs;
	struct recheck recheck;
	struct hop_refusals refusals;
	struct stream_clock clock;
	struct ask_server *asks;	   /* or NULL */
	uint64_t begin_ns;		   /* of the run, CLOCK_MONOTONIC */
	uint64_t first_window;		   /* its begin, UTC */
	uint64_t window_begin, window_end; /* UTC, bin borders */
	uint64_t next_second;
	double cpu_at_window;
	uint64_t hits;
	uint64_t scanned_at;
	bool capture_failed, output_failed, output_warned, ring_warned, accounts_warned, mappings_lost, alert,
	    interrupts_failed;
};

/* Says what failed on stderr; the exit code for it. */
int daemon__fail(const char *format, const char *what);

/* What can be counted here; refused where counters were asked for that there are not. Returns an exit code. */
int daemon__look_for_counters(struct daemon *daemon);

/* Outputs first: they must not cost a probed process anything when they cannot be had. Returns an exit code. */
int daemon__open_outputs(struct daemon *daemon);

/* Loads and calibrates the kernel side and makes everything that stands on it, the analysis too, since what can be
 * counted is certain only then. Returns an exit code, with a sentence. */
int daemon__set_up(struct daemon *daemon, char *err, size_t err_size);

/* After a window: counts what the analysis asks for until the next one. */
void daemon__turn_stage(struct daemon *daemon);

/* Once a second: call-sites of wrappers are hopped to their callers, or no more, as the analysis asks. */
void daemon__hop(struct daemon *daemon);

/* Says what this daemon is and has learnt of the machine. */
void daemon__tell_hello(struct daemon *daemon);

/* Lets people ask (vapro diagnose); where it cannot, it warns. */
void daemon__hear(struct daemon *daemon);

/* Gives back what was set up, also where that failed half way. */
void daemon__tear_down(struct daemon *daemon);

#endif
