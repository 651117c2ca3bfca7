/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An option is one row: its names, the type of its value, and where that goes in the struct of its command. Parsing,
 * --help, man pages, completion, configuration files and the hello record are made of rows.
 */
#ifndef VAPRO_OPTION_H
#define VAPRO_OPTION_H

#include <stdbool.h>
#include <stddef.h>

enum option_type {
	OPTION_HEADING,	   /* no option: `help`, or the heading of `group`, whose tunables follow up to the next one */
	OPTION_SWITCH,	   /* bool; it has no value, but yes or no in a file */
	OPTION_LEVEL,	   /* int, which becomes `min`: one of several switches, the last of which counts */
	OPTION_BOOL,	   /* bool; yes or no, yes where it stands alone */
	OPTION_WORD,	   /* an enum: the index of one of `words` */
	OPTION_CHOICE,	   /* const char *: one of `words` */
	OPTION_STRING,	   /* const char *: a text of 1 to `max` bytes (0: no bound), which outlives the struct */
	OPTION_TEXT,	   /* char[max + 1]: a copy of a text, which may be empty */
	OPTION_LIST,	   /* struct option_list: one more text each time */
	OPTION_INT,	   /* int or unsigned: a whole number */
	OPTION_UINT,	   /* uint64_t: a whole number */
	OPTION_NUMBER,	   /* double */
	OPTION_SHARE,	   /* double: 0.05 or 5% */
	OPTION_PERCENT,	   /* double: 5 or 5% */
	OPTION_SECONDS,	   /* double */
	OPTION_NS,	   /* uint64_t: nanoseconds, read as a time */
	OPTION_SIZE,	   /* uint64_t: bytes */
	OPTION_POWER,	   /* the same, a power of two */
	OPTION_CUSTOM,	   /* what `read` makes of it */
	OPTION_ALIAS,	   /* an older name of the option `words` */
	OPTION_HELP,	   /* prints the help and ends */
	OPTION_VERSION,	   /* prints the version and ends */
	OPTION_COMPLETION, /* prints the completion for a shell and ends */
};

/* Where an option is listed. */
enum option_level {
	OPTION_USUAL,  /* in --help */
	OPTION_EXPERT, /* in --help=all */
	OPTION_FILE,   /* in the configuration file and the man page */
	OPTION_HIDDEN, /* nowhere */
};

/* What settings are about: their headings in --help, and the sections of the configuration file. */
enum vapro_group {
	VAPRO_GROUP_SELECTION,
	VAPRO_GROUP_OUTPUT,
	VAPRO_GROUP_PUBLISHING,
	VAPRO_GROUP_OVERHEAD,
	VAPRO_GROUP_ANALYSIS,
	VAPRO_GROUP_KERNEL,
	VAPRO_GROUPS, /* of none: it is no setting */
};

struct option_row {
	const char *name;     /* without its dashes; as in `name = value` of the configuration file */
	const char *value;    /* what --help calls its value; NULL: as its words or its type say */
	const char *help;     /* up to the first semicolon in the short help */
	const char *initial;  /* text of its default, for tunables; NULL: help says it */
	const char *words;    /* "off|on|auto"; of an alias the name that it stands for */
	const char *noun;     /* what messages call its value; NULL: as its type says */
	const char *expected; /* what is expected of it, for messages; NULL: as its words or its range say */
	/* How a custom value is read. Returns 0, or -EINVAL, with a sentence in why where it says more than that. */
	int (*read)(void *member, const char *value, char *why, size_t why_size);
	/* Writes the n-th value as text. Returns false behind the last one. NULL: as the type does. */
	bool (*write)(const void *member, size_t n, char *text, size_t size);
	size_t offset; /* of the member in the struct of the command */
	double min, max;
	enum option_type type;
	enum option_level level;
	enum vapro_group group; /* of a heading, and of a tunable */
	char letter;		/* or 0 */
	bool early;		/* it is needed before the configuration files are read */
};

/* The member of a row, in positional and designated initialisers. */
#define OPTION_AT(structure, member) .offset = offsetof(structure, member)

/* A heading of its own; the heading of a group, whose tunables follow the rows up to the next heading. */
#define OPTION_HEADING_ROW(text)                                                                                       \
	{                                                                                                              \
		.type = OPTION_HEADING, .help = (text), .group = VAPRO_GROUPS                                          \
	}
#define OPTION_GROUP_ROW(of)                                                                                           \
	{                                                                                                              \
		.type = OPTION_HEADING, .group = (of)                                                                  \
	}

/* An older name of an option. */
#define OPTION_ALIAS_ROW(old, now)                                                                                     \
	{                                                                                                              \
		.type = OPTION_ALIAS, .name = (old), .words = (now), .level = OPTION_HIDDEN                            \
	}

/* Texts of options that may be given more than once; the texts themselves belong to others. */
struct option_list {
	const char **items;
	size_t count, room;
};

int option_list__add(struct option_list *list, const char *text); /* returns 0 or -ENOMEM */
void option_list__clear(struct option_list *list);

/* Whether an option has a value on the command line, and whether that may be absent. */
bool option__has_value(const struct option_row *row);
bool option__may_be_alone(const struct option_row *row);

/*
 * Sets the member of a row in base. value: NULL where the option stands alone. prefix: how messages begin, "--" or
 * "FILE:LINE: ". in_file: a switch has a value, yes or no. Returns 0, or -EINVAL with a sentence in err: "--window:
 * invalid duration '5x'; expected 1s to 1h, such as 30, 500ms, 5m or 1h". base is unchanged then.
 */
int option__set(const struct option_row *row, void *base, const char *value, bool in_file, const char *prefix,
		char *err, size_t err_size);

/* Writes the n-th value of a row as text that reads as the same. Returns false where there is none. */
bool option__format(const struct option_row *row, const void *base, size_t n, char *text, size_t size);

/* Writes what --help calls the value of a row: "TIME", or "off|on|auto"; "" where it has none. */
void option__value_name(const struct option_row *row, char *text, size_t size);

/* Whether a name is that of a row, with - or _. */
bool option__is_named(const struct option_row *row, const char *name);

#endif
