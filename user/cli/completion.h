/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completion for shells, written from the tables of the commands. */
#ifndef VAPRO_COMPLETION_H
#define VAPRO_COMPLETION_H

#include "cli/options.h"

#define COMPLETION_SHELLS "bash|zsh|fish"
#define COMPLETION_EXPECTED "bash, zsh or fish"

/*
 * Prints the completion of a program with these commands, of which a program without commands has one, named as
 * itself. Returns 0, or -EINVAL for a shell that is none of COMPLETION_SHELLS.
 */
int completion__print(const char *shell, const char *program, const struct command *const *commands, size_t count,
		      FILE *out);

#endif
