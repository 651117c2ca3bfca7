/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line that vaprod and `vapro run` share: selection, outputs, and every tunable. */
#ifndef VAPRO_COMMAND_LINE_H
#define VAPRO_COMMAND_LINE_H

#include <sys/types.h>

#include "cli/command.h"
#include "daemon/daemon.h"

struct pid_list {
	pid_t *items;
	size_t count, room;
};

struct command_line {
	struct daemon_options daemon;
	struct pid_list pids;
	struct option_list globs, outputs; /* an output is a file, or "-" */
	struct option_list operands;
	bool json;    /* as the output "-" */
	int log_most; /* enum log_level */
	const char *config_file;
	bool print_config, check_config;
	struct option_list texts; /* values of files, each malloc'ed, which outlive these */
};

/*
 * Fills line->daemon, of which the caller may have set what is no option, from the defaults, then the configuration
 * files (settings.h), then the command line, which replaces the selection and the outputs of files. Only vaprod takes
 * more than tunables from files. Returns 0, COMMAND_DONE after --help and other options that print something and end,
 * or EXIT_USAGE after reporting the error. Sets up the log. line must be freed after the options' use.
 */
int command_line__parse(struct command_line *line, const struct command *command, int argc, char **argv);
void command_line__free(struct command_line *line);

/* The `prepare` of a command; it reads the configuration files. */
int command_line__prepare(void *base, const struct command *command, int argc, char **argv);

#endif
