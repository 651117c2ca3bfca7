/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of a command as a table, which parsing, --help, man pages, completion and suggestions for misspelt names
 * share. An option is written --name VALUE, --name=VALUE, -l VALUE or -lVALUE, and letters without values may stand
 * together; `--` ends the options. --help and -h are options of all.
 */
#ifndef VAPRO_OPTIONS_H
#define VAPRO_OPTIONS_H

#include <vapro/config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/suggestion.h"

/* What options__next returns beside the ids of rows, which are positive. */
enum {
	OPTIONS_END = 0,
	OPTIONS_HELP = -1,    /* value: what of it, for command__help */
	OPTIONS_OPERAND = -2, /* in value */
	OPTIONS_TUNABLE = -3, /* in tunable and value; value is "true" where a switch stands alone */
	OPTIONS_ERROR = -4,   /* reported on standard error */
};

struct option_row {
	const char *name;  /* without its dashes; NULL: a heading */
	const char *value; /* what --help calls its value, "WORD|WORD" where it is one of these; NULL: it has none */
	const char *help;  /* NULL: not listed, an older name or one that another program has */
	int id;
	char letter; /* or 0 */
};

/* A heading of its own; the heading of a group, whose tunables follow the rows up to the next heading. */
#define OPTIONS_GROUP(heading)                                                                                         \
	{                                                                                                              \
		NULL, NULL, heading, 0, 0                                                                              \
	}
#define OPTIONS_SECTION(group)                                                                                         \
	{                                                                                                              \
		NULL, NULL, NULL, group, 0                                                                             \
	}

/* The rows of --help itself. */
#define OPTIONS_HELP_ROW                                                                                               \
	{                                                                                                              \
		"help", NULL, "print this text", OPTIONS_HELP, 'h'                                                     \
	}
#define OPTIONS_HELP_ALL_ROW                                                                                           \
	{                                                                                                              \
		"help", "all", "print this text; all: with the options for experts", OPTIONS_HELP, 'h'                 \
	}

/* A command, or vaprod: what its help, its man page and its completion are made of. */
struct command {
	const char *name;     /* "view", "vaprod" */
	const char *program;  /* "vapro view", as messages begin */
	const char *summary;  /* what it does, in one line */
	const char *synopsis; /* its forms without the program, one a line */
	const char *about;    /* paragraphs, one a line */
	const char *examples; /* "vapro view FILE\twhat it does", one a line */
	const struct option_row *rows;
	size_t row_count;
	bool tunables; /* every tunable of vapro_options is an option, too */
	int (*main)(int argc, char **argv);
};

struct options {
	const char *program; /* "vapro view" */
	const struct option_row *rows;
	size_t row_count;
	bool tunables; /* every tunable of vapro_options is an option, too */
	int argc;
	char **argv;
	int next; /* index in argv of what comes next; 0 at first */
	bool only_operands;
	const char *letters; /* letters that stand together, still to be read */
	const char *name, *value;
	const struct vapro_option *tunable;
};

/* Returns a parser of a command's arguments. */
struct options command__options(const struct command *command, int argc, char **argv);

/* Returns the next option's id, or one of the above. */
int options__next(struct options *options);

/* What a row or a tunable is, for those that list them. */
struct option_item {
	const char *name, *help, *initial; /* initial: default of a tunable, or NULL */
	char letter;
	char value[64];	   /* "" where it has none */
	bool may_be_alone; /* its value may be absent */
};

/* Calls heading and item for all that is listed, in order; expert: with the groups for experts. */
struct option_visitor {
	void (*heading)(void *ctx, const char *text);
	void (*item)(void *ctx, const struct option_item *item);
	void *ctx;
};
void options__visit(const struct options *options, bool expert, const struct option_visitor *visitor);

/*
 * Prints the help, wrapped to the terminal: what is NULL for the usual options, "all" with those for experts, "man" as
 * part of a man page. Returns 0, the exit code.
 */
int command__help(const struct command *command, const char *what, FILE *out);

/* Prints the options, as command__help does. */
void options__help(const struct options *options, const char *what, FILE *out);

#endif
