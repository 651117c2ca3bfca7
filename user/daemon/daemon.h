/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live run wires the layers together and owns the loop. vaprod adds a command line;
 * `vapro run` adds a command to run.
 */
#ifndef VAPRO_DAEMON_H
#define VAPRO_DAEMON_H

#include <signal.h>
#include <vapro/config.h>
#include <vapro/version.h>

#include "base/exit_codes.h"
#include "report/outcome.h"
#include "report/summary.h"
#include "daemon/publishing.h"
#include "daemon/tracker.h"

/* Settings that may change while it runs. */
struct daemon_settings {
	int records; /* enum record_choice */
	uint64_t output_most;
};

struct daemon_options {
	struct vapro_config config;
	struct selection selection;
	const char *output;   /* file that lines are added to, or NULL */
	bool to_stdout;	      /* lines go to standard output (as well) */
	const char *metrics;  /* file for a collector of metrics, or NULL */
	const char *records;  /* which records are lines of the output: a word of RECORD_CHOICE_WORDS, or NULL: all */
	uint64_t output_most; /* bytes of the output file; 0: any */
	const char *capture;  /* file that the run's bundles are added to, or NULL */
	const char *profiles; /* directory of profiles of runs, or NULL */
	struct publishing_options publish;
	const char *job_reports;    /* directory of the reports that jobs leave their owners; NULL or "": none */
	double job_reports_age_s;   /* after which they are removed; 0: never */
	uint64_t job_reports_bytes; /* beyond which the oldest are removed; 0: no bound */
	const char *cpus;	 /* CPUs of the daemon, or NULL: housekeeping cores where the node has isolated ones */
	double duration_s;	 /* 0 = until a signal, or until the selected processes ended */
	bool dry_run;		 /* only prints what would be watched; no output is written */
	bool progress;		 /* a line of progress on a terminal on stderr */
	int sentences;		 /* what happens is said there, in sentences for people; -1: nowhere */
	unsigned width;		 /* columns of these sentences */
	struct summary *summary; /* or NULL */
	struct outcome_limit fail_on;
	const volatile sig_atomic_t *stop;
	volatile sig_atomic_t *reopen; /* nonzero: the output file is reopened by its path; or NULL */
	/*
	 * Reads the settings again when the output is reopened: returns 0, with the names in text of those that only a
	 * restart changes, or a negative errno after a message. NULL: they stay.
	 */
	int (*reload)(void *ctx, struct daemon_settings *settings, char *text, size_t size);
	void *reload_ctx;
	bool service;		  /* a service manager is notified (notify.h) */
	void (*ready)(void *ctx); /* called once targets may start; or NULL */
	void *ready_ctx;
};

/*
 * Runs until the end. Reports errors by the log (base/log.h), which the caller has set up. Returns an exit code
 * (base/exit_codes.h); where probing failed, EXIT_REFUSED means kernel or privileges, EXIT_FAILED any other cause.
 */
int daemon__run(const struct daemon_options *options);

#endif
