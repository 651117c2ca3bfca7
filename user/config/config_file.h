/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of `name = value` lines in [sections]. A line that begins with # or ; is a comment, and so is # behind a space;
 * ; inside of a value is a part of it (--function, --bands). Names before the first section are of any.
 */
#ifndef VAPRO_CONFIG_FILE_H
#define VAPRO_CONFIG_FILE_H

#include <stddef.h>

struct config_line {
	const char *section;	  /* "" before the first */
	const char *name, *value; /* value NULL: the line is the head of the section */
	const char *prefix;	  /* "FILE:LINE: ", for messages */
};

/* Returns 0, or a negative errno with a sentence in err, which ends the reading. */
typedef int (*config_file_line)(void *ctx, const struct config_line *line, char *err, size_t err_size);

/* Calls `line` for each line. Returns 0 or a negative errno with a sentence in err. */
int config_file__read(const char *path, config_file_line line, void *ctx, char *err, size_t err_size);

#endif
