/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings of a daemon that runs, read again at SIGHUP. */
#ifndef VAPRO_RELOAD_H
#define VAPRO_RELOAD_H

#include "cli/command_line.h"

/* The command line of the start, and what it and the files of the configuration said then. */
struct reload {
	int argc;
	char **argv;
	const struct command_line *line;
};

/* Reads them again, as daemon_options.reload wants it; ctx: a struct reload. */
int reload__read(void *ctx, struct daemon_settings *settings, char *text, size_t size);

#endif
