/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that vaprod and `vapro run` share: selection, outputs, and every tunable of the table. */
#ifndef VAPRO_COMMAND_LINE_H
#define VAPRO_COMMAND_LINE_H

#include <sys/types.h>

#include "base/log.h"
#include "cli/options.h"
#include "daemon/daemon.h"

#define VAPRO_CONFIG_FILE "/etc/vapro.conf" /* read where no other is given, and it exists */

/* What command_line__parse returns where nothing is left to do: the program ends well. */
enum { COMMAND_LINE_DONE = 100 };

struct command_line {
	pid_t *pids;
	size_t pid_count, pid_room;
	const char **globs;
	size_t glob_count, glob_room;
	char **rest; /* arguments after the options, in argv */
	int rest_count;
	enum log_level log_most;
};

/*
 * Fills options from the defaults, then --config's file or VAPRO_CONFIG_FILE, then the other options, wherever they
 * stand; the first argument that is no option, or `--`, ends them. Returns 0, COMMAND_LINE_DONE after --help or
 * --version, or EXIT_USAGE after reporting the error. Sets up the log. line must be freed after the options' use.
 */
int command_line__parse(struct command_line *line, const struct command *command, int argc, char **argv,
			struct daemon_options *options);
void command_line__free(struct command_line *line);

#endif
