/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of a command as a table, which parsing, --help and suggestions for misspelt names share. An option is
 * written --name VALUE, --name=VALUE, -l VALUE or -lVALUE; `--` ends the options. --help and -h are options of all.
 */
#ifndef VAPRO_OPTIONS_H
#define VAPRO_OPTIONS_H

#include <vapro/config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What options__next returns beside the ids of rows, which are positive. */
enum {
	OPTIONS_END = 0,
	OPTIONS_HELP = -1,
	OPTIONS_OPERAND = -2, /* in value */
	OPTIONS_TUNABLE = -3, /* in tunable and value; value is "true" where a switch stands alone */
	OPTIONS_ERROR = -4,   /* reported on standard error */
};

struct option_row {
	const char *name;  /* without its dashes; NULL: `help` is the heading of a group */
	const char *value; /* what --help calls its value; NULL: it has none */
	const char *help;  /* NULL: not listed, an older name */
	int id;
	char letter; /* or 0 */
};

#define OPTIONS_GROUP(heading)                                                                                         \
	{                                                                                                              \
		NULL, NULL, heading, 0, 0                                                                              \
	}

struct options {
	const char *program; /* "vapro view" */
	const struct option_row *rows;
	size_t row_count;
	bool tunables; /* every tunable of vapro_options is an option, too */
	int argc;
	char **argv;
	int next; /* index in argv of what comes next; 0 at first */
	bool only_operands;
	const char *name, *value;
	const struct vapro_option *tunable;
};

/* Returns the next option's id, or one of the above. */
int options__next(struct options *options);

/* Prints the rows, and the tunables if they are options. */
void options__help(const struct options *options, FILE *out);

/* The name nearest to a misspelt one, of those that were offered. */
struct suggestion {
	const char *text, *best; /* best: NULL where nothing is near */
	size_t distance;
};

void suggestion__offer(struct suggestion *suggestion, const char *name);

#endif
