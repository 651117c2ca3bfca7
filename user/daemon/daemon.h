/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live run wires the layers together and owns the loop. vaprod adds a command line;
 * `vapro run` adds a command to run.
 */
#ifndef VAPRO_DAEMON_H
#define VAPRO_DAEMON_H

#include <signal.h>
#include <vapro/config.h>

#include "base/exit_codes.h"
#include "report/outcome.h"
#include "report/summary.h"
#include "daemon/publishing.h"
#include "daemon/tracker.h"

#define VAPRO_VERSION "0.1.0"

struct daemon_options {
	struct vapro_config config;
	struct selection selection;
	const char *output;   /* file that lines are added to, or NULL */
	bool to_stdout;	      /* lines go to standard output (as well) */
	const char *capture;  /* file that the run's bundles are added to, or NULL */
	const char *profiles; /* directory of profiles of runs, or NULL */
	struct publishing_options publish;
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
	bool service;		       /* a service manager is notified (notify.h) */
	void (*ready)(void *ctx);      /* called once targets may start; or NULL */
	void *ready_ctx;
};

/*
 * Runs until the end. Reports errors by the log (base/log.h), which the caller has set up. Returns an exit code
 * (base/exit_codes.h); where probing failed, EXIT_REFUSED means kernel or privileges, EXIT_FAILED any other cause.
 */
int daemon__run(const struct daemon_options *options);

#endif
