/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of vapro, each in a file of its own. Their main returns an exit code (daemon.h). */
#ifndef VAPRO_COMMANDS_H
#define VAPRO_COMMANDS_H

#include <signal.h>
#include "cli/command.h"

extern const struct command vaprod_command; /* the daemon's command line; it has no main */
extern const struct command worker_command; /* of vapro-worker; it has no main of this form */
extern const struct command run_command, analyze_command, diagnose_command, diff_command, runs_command, view_command,
    report_command, jobs_command, top_command, stg_command, noise_command, variability_command, publish_command,
    check_command;

/* All of vapro-worker but its signals: *stop ends it. Returns an exit code. */
int commands__run_worker(int argc, char **argv, const volatile sig_atomic_t *stop);

#endif
