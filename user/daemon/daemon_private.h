/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon's parts, private to the files that set it up and run it. */
#ifndef VAPRO_DAEMON_PRIVATE_H
#define VAPRO_DAEMON_PRIVATE_H

#include "daemon/daemon.h"

#include "query/server.h"
#include "query/status_server.h"
#include "report/board.h"
#include "base/clock.h"
#include "target/host_clock.h"
#include "daemon/interrupt_timing.h"
#include "daemon/io_tracing.h"
#include "daemon/run_store.h"
#include "daemon/sleeper.h"
#include "probe/pmu/counters.h"
#include "overhead/recalibrate.h"
#include "functions/user_rows.h"
#include "report/narrator.h"
#include "pipeline/line_sink.h"
#include "reports/reporter.h"
#include "target/finder.h"

/* Delay after a window's last bin until all its records are drained: when the next bin can be read out. */
#define SETTLE_NS 260000000ULL

/* Events go to the analysis and, until its first error each, to the capture and the publisher. */
struct tee {
	struct stream_sink sink; /* first */
	struct pipeline *pipeline;
	struct stream_sink *capture;
	int capture_status;
	struct publishing *publishing; /* or NULL */
	int publishing_status;
	struct run_store *store; /* or NULL; after an error it gets no more events */
	bool store_failed;
	bool no_analysis; /* events are only published and captured */
};

#define HOP_REFUSALS 16

/* The reported reasons why call-sites of images cannot be hopped. */
struct hop_refusals {
	const char *reason[HOP_REFUSALS]; /* static text */
	char image[HOP_REFUSALS][64];
	unsigned count;
};

#define REFUSALS_REPORTED 16

/* What workers request of this node for its jobs (requesting.c); it holds for a while, and is given up without them. */
struct remote {
	struct vapro_stage_request stage; /* job points to stage_job, expand lasts */
	char stage_job[WIRE_TEXT_MAX];
	struct vapro_inside_request inside;
	uint64_t stage_until_ns, inside_until_ns; /* CLOCK_MONOTONIC; 0: nothing is requested */
	uint64_t hops;				  /* call-sites so far */
	uint64_t accepted, refused, dropped;	  /* requests; dropped: of the latest warning */
	uint32_t reasons[REFUSALS_REPORTED];	  /* digests of the reasons that were reported */
	unsigned reason_count;
};

struct daemon {
	const struct daemon_options *options;
	char host[256];
	struct tee tee;
	struct line_sink *lines;
	struct narrator *narrator; /* NULL: none */
	struct metrics *metrics;   /* NULL: none */
	struct counters *counters;
	const char *expanded; /* the factor whose parts are counted; NULL: the time as a whole */
	bool counters_lost;   /* to another user of the counters, during a switch */
	struct kernel_side *side;
	struct attacher *attacher;
	struct row_attacher *rows;
	unsigned int user_rows[USER_ROWS_MAX];
	struct resolver *resolver;
	struct collector *collector;
	struct tracker *tracker;
	struct io_tracing io;
	struct interrupt_timing interrupts;
	struct sampler *sampler; /* or NULL: slow computation is not sampled */
	struct finder *finder;	 /* or NULL: every process is then inspected for a while after its exec */
	struct sleeper *sleeper;
	struct costs costs;
	struct recalibration recalibration;
	struct hop_refusals refusals;
	struct remote remote;
	struct stream_clock clock;
	struct vapro_host_clock host_clock; /* as announced last */
	struct query_server *queries;	    /* or NULL */
	struct status_server *status;	    /* or NULL */
	struct board *board;		    /* what it shows; or NULL */
	struct reporter *reporter;	    /* of reports that jobs leave; or NULL */
	struct reporter_options reports;    /* its options */
	double window_cpu_pct;		    /* CPU time of the daemon in the last window; NAN: there was none */
	uint64_t begin_ns;		    /* begin of the run, CLOCK_MONOTONIC */
	uint64_t first_window;		    /* begin of the first window, UTC */
	uint64_t window_begin, window_end;  /* UTC, bin borders */
	uint64_t next_second;
	uint64_t watchdog_ns, alive_ns; /* time between signs of life; 0: none. The last one */
	double cpu_at_window;
	struct outcome outcome; /* at the end */
	uint64_t scanned_at;
	uint64_t inside_due_ns, trim_due_ns;
	bool capture_failed, publishing_failed, output_failed, output_warned, ring_warned, accounts_warned,
	    mappings_lost, alert, inside_warned, metrics_failed;
};

/* Finds the counters of this machine; refuses where requested ones are missing. Returns an exit code. */
int daemon__look_for_counters(struct daemon *daemon);

/* Opens the outputs before any probe, so that their failure costs no probed process. Returns an exit code. */
int daemon__open_outputs(struct daemon *daemon);

/* Makes the metrics, where they are wanted. Returns an exit code. */
int daemon__open_metrics(struct daemon *daemon);

/* Adds a job's window to the metrics; writes them, up: false at the end of the run. */
void daemon__meter_result(struct daemon *daemon, const struct job_result *result);
void daemon__meter(struct daemon *daemon, bool up);

/* Reopens the output after a rotation of logs, and reads the settings again that may change meanwhile. */
void daemon__reopen_output(struct daemon *daemon);

/* Loads and calibrates the kernel side and makes all that depends on it; the analysis too, since the countable events
 * are certain only then. Returns an exit code, with a sentence in err. */
int daemon__set_up(struct daemon *daemon, char *err, size_t err_size);

/* Switches the counters after a window to what the analysis requests until the next window. */
void daemon__switch_stage(struct daemon *daemon);

/* Opens the clocks that sample slow computation, where the kernel can and --inside allows it. */
void daemon__open_inside(struct daemon *daemon);

/*
 * Puts the samples of slow computation into the stream, before their window ends; in between too, so that the places
 * have names by then.
 */
void daemon__drain_inside(struct daemon *daemon);

/* Samples after a window the threads that the analysis requests until the next window. */
void daemon__select_inside(struct daemon *daemon);

/* Hops call-sites of wrappers to their callers, or back, once a second, as the analysis requests. */
void daemon__hop(struct daemon *daemon);

/* Takes what workers have requested since the last call, once a second. */
void daemon__take_requests(struct daemon *daemon);

/* Returns whether a worker requests at present that interrupts are timed. */
bool daemon__remote_interrupts(const struct daemon *daemon);

/* Emits the hello line: the daemon and what it has learnt of the machine. */
void daemon__emit_hello(struct daemon *daemon);

/* Starts the query server (vapro diagnose); warns where that fails. */
void daemon__serve(struct daemon *daemon);

/* Makes the board of the live state, before the first record; without one there is no status server. */
void daemon__make_board(struct daemon *daemon);

/* Starts the status server (vapro top, vapro report) beside the query server; warns where that fails. */
void daemon__show(struct daemon *daemon);

/*
 * Starts the process that writes what jobs leave their owners, before any probe, where --job-reports asks for it; where
 * that fails a warning is logged. Without it the functions below do nothing.
 */
void daemon__start_reports(struct daemon *daemon);

/* Has the board hand over records. To be called when the board is there. */
void daemon__feed_reports(struct daemon *daemon);

/* Looks which jobs have ended, once a second. */
void daemon__see_jobs(struct daemon *daemon, uint64_t now_ns);

/* Sends what is waiting; never waits. */
void daemon__step_reports(struct daemon *daemon, uint64_t now_ns);

/* Warns of what went wrong with reports. */
void daemon__warn_of_reports(struct daemon *daemon);

/* Ends the process when it has written the reports of all jobs. */
void daemon__finish_reports(struct daemon *daemon);

/* Frees what was set up, also after a set-up that failed half way. */
void daemon__tear_down(struct daemon *daemon);

#endif
