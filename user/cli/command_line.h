/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that vaprod and `vapro run` share: selection, outputs, and every tunable of the table. */
#ifndef VAPRO_COMMAND_LINE_H
#define VAPRO_COMMAND_LINE_H

#include <sys/types.h>

#include "base/log.h"
#include "cli/options.h"
#include "daemon/daemon.h"

/* What command_line__parse returns where nothing is left to do: the program ends well. */
enum { COMMAND_LINE_DONE = 100 };

struct command_line {
	struct daemon_options *options; /* what is filled */
	pid_t *pids;
	size_t pid_count, pid_room;
	const char **globs;
	size_t glob_count, glob_room;
	char **texts; /* values of files, which outlive them */
	size_t text_count, text_room;
	bool in_file, selection_of_file, output_of_file; /* the command line replaces what files give */
	char **rest;					 /* arguments after the options, in argv */
	int rest_count;
	enum log_level log_most;
};

/*
 * Fills options from the defaults, then the configuration files (settings.h), then the other options, wherever they
 * stand; the first argument that is no option, or `--`, ends them. Only vaprod takes more than tunables from files.
 * Returns 0, COMMAND_LINE_DONE after --help and other options that print something and end, or EXIT_USAGE after
 * reporting the error. Sets up the log. line must be freed after the options' use.
 */
int command_line__parse(struct command_line *line, const struct command *command, int argc, char **argv,
			struct daemon_options *options);
void command_line__free(struct command_line *line);

#endif
