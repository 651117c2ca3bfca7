/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line of a command as a table of rows (config/option.h), of which parsing, --help, man pages, completion
 * and suggestions for misspelt names are made. An option is written --name VALUE, --name=VALUE, -l VALUE or -lVALUE,
 * and letters without values may stand together; `--` ends the options. --help and -h are options of all.
 */
#ifndef VAPRO_COMMAND_H
#define VAPRO_COMMAND_H

#include <vapro/config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/exit_codes.h"
#include "base/suggestion.h"
#include "config/tunables.h"

/* The rows of what all commands have. */
#define OPTIONS_HELP_ROW                                                                                               \
	{                                                                                                              \
		.type = OPTION_HELP, .name = "help", .value = "", .letter = 'h', .help = "print this text"             \
	}
#define OPTIONS_HELP_ALL_ROW                                                                                           \
	{                                                                                                              \
		.type = OPTION_HELP, .name = "help", .letter = 'h',                                                    \
		.help = "print this text, with =all the rarer options, too"                                            \
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
	bool tunables;		    /* every tunable is an option, too */
	size_t config;		    /* with tunables: offset of the struct vapro_config that they set */
	size_t operands;	    /* offset of the struct option_list of what is no option; 0: there is no operand */
	bool ends_at_operand;	    /* the first operand ends the options */
	const struct command *like; /* its help names this command instead of repeating the options */
	int (*main)(int argc, char **argv);
	/* Is called with the early options set, and sets what others may replace; or NULL. Returns 0 or an exit code.
	 */
	int (*prepare)(void *base, const struct command *command, int argc, char **argv);
};

/* What command__parse returns where nothing is left to do: the program ends well. */
enum { COMMAND_DONE = 100 };

/*
 * Sets the members of base, the command's struct, from its arguments. Syntax is checked, and what --help and the like
 * request is printed, before any value is read. Operands are added to their list, which the caller clears in any case.
 * Returns 0, COMMAND_DONE, or EXIT_USAGE after reporting the error.
 */
int command__parse(const struct command *command, void *base, int argc, char **argv);

/* Prints an error as the command's. Returns code. */
__attribute__((format(printf, 3, 4))) int command__fail(const struct command *command, int code, const char *format,
							...);

/* What command__next returns. */
enum options_item { OPTIONS_END, OPTIONS_OPTION, OPTIONS_OPERAND, OPTIONS_ERROR };

#define OPTIONS_NAME_MOST 64

struct options {
	const struct command *command;
	int argc;
	char **argv;
	int next; /* index in argv of what comes next; 0 at first */
	bool only_operands;
	const char *letters;		  /* letters that stand together, still to be read */
	char name[OPTIONS_NAME_MOST + 1]; /* of the option, as it was given */
	const struct option_row *row;	  /* of the option; an older name has the row that it stands for */
	bool tunable;			  /* the row's offset is that in the command's struct vapro_config */
	const char *value;		  /* of the option, NULL where it stands alone; or the operand */
};

/* Returns the next argument; an error was reported. For those that need more than command__parse(). */
enum options_item command__next(struct options *options);

/* Returns the row of a name, which is an alias where the name is an older one; NULL: there is none. */
const struct option_row *command__row(const struct command *command, const char *name);

/* Returns the row that a row stands for: itself, or that of an alias. *tunable: it is one. */
const struct option_row *command__resolve(const struct command *command, const struct option_row *row, bool *tunable);

/* Calls heading and item for all options up to a level, in order; a heading comes before its first option. */
struct option_visitor {
	void (*heading)(void *ctx, const char *text);
	void (*item)(void *ctx, const struct option_row *row);
	void *ctx;
};
void command__visit(const struct command *command, enum option_level most, const struct option_visitor *visitor);

/*
 * Prints the help, wrapped to the terminal: what is NULL for the usual options, "all" with the others, "man" as part of
 * a man page.
 */
void command__help(const struct command *command, const char *what, FILE *out);

/* command_completion.c: completion for shells, written from the tables of the commands. */
#define OPTIONS_COMPLETION_SHELLS "bash|zsh|fish"
#define OPTIONS_COMPLETION_EXPECTED "bash, zsh or fish"

/*
 * Prints the completion of a program with these commands, of which a program without commands has one, named as
 * itself. Returns 0, or -EINVAL for a shell that is none of OPTIONS_COMPLETION_SHELLS.
 */
int command__print_completion(const char *shell, const char *program, const struct command *const *commands,
			      size_t count, FILE *out);

#endif
