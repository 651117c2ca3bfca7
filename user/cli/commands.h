/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of vapro, each in a file of its own. Their main returns an exit code (daemon.h). */
#ifndef VAPRO_COMMANDS_H
#define VAPRO_COMMANDS_H

#include "cli/options.h"

extern const struct command vaprod_command; /* the daemon's command line; it has no main */
extern const struct command run_command, analyze_command, diagnose_command, diff_command, view_command, report_command,
    top_command, stg_command, check_command;

#endif
