// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/options.h"

#include <string.h>

#define NAME_MOST 64

static int unknown(const struct options *options, const char *name, const char *text)
{
	struct suggestion suggestion = {.text = name};

	suggestion__offer(&suggestion, "help");
	for (size_t i = 0; i < options->row_count; i++)
		if (options->rows[i].name && options->rows[i].help)
			suggestion__offer(&suggestion, options->rows[i].name);
	for (size_t i = 0; options->tunables && i < vapro_option_count; i++)
		suggestion__offer(&suggestion, vapro_options[i].name);
	fprintf(stderr, "%s: unknown option '%s'", options->program, text);
	if (suggestion.best)
		fprintf(stderr, " (did you mean '--%s'?)", suggestion.best);
	fputs("; --help lists them\n", stderr);
	return OPTIONS_ERROR;
}

/* Takes the value of an option from behind its name or from the next argument. */
static bool find_value(struct options *options, const char *attached, const char *wanted)
{
	options->value = attached;
	if (!attached && options->next < options->argc)
		options->value = options->argv[options->next++];
	if (!options->value)
		fprintf(stderr, "%s: --%s needs a value: %s\n", options->program, options->name, wanted);
	return options->value;
}

static int help(struct options *options, const char *what)
{
	options->name = "help";
	options->value = what;
	if (!what || !strcmp(what, "all") || !strcmp(what, "man"))
		return OPTIONS_HELP;
	fprintf(stderr, "%s: --help: '%s' is unknown; expected all or man\n", options->program, what);
	return OPTIONS_ERROR;
}

static int option_of_row(struct options *options, const struct option_row *row, const char *attached)
{
	options->name = row->name;
	if (row->id == OPTIONS_HELP)
		return help(options, attached);
	if (row->value)
		return find_value(options, attached, row->value) ? row->id : OPTIONS_ERROR;
	options->value = NULL;
	if (!attached)
		return row->id;
	fprintf(stderr, "%s: --%s has no value\n", options->program, row->name);
	return OPTIONS_ERROR;
}

/* Reads the first of the letters; those behind one without a value are next. */
static int option_of_letter(struct options *options, const char *letters)
{
	const char flag[] = {'-', *letters, '\0'}, *after = letters[1] ? letters + 1 : NULL;

	options->letters = NULL;
	for (size_t i = 0; i < options->row_count; i++) {
		const struct option_row *row = &options->rows[i];

		if (!row->letter || row->letter != *letters)
			continue;
		if (row->value)
			return option_of_row(options, row, after);
		options->letters = after;
		return option_of_row(options, row, NULL);
	}
	if (*letters == 'h') {
		options->letters = after;
		return help(options, NULL);
	}
	return unknown(options, letters, flag);
}

static int option_of_name(struct options *options, const char *text)
{
	const char *equals = strchr(text, '='), *attached = equals ? equals + 1 : NULL;
	size_t length = equals ? (size_t)(equals - text - 2) : strlen(text + 2);
	char name[NAME_MOST + 1];

	if (length > NAME_MOST)
		return unknown(options, "", text);
	memcpy(name, text + 2, length);
	name[length] = '\0';
	for (size_t i = 0; i < options->row_count; i++)
		if (options->rows[i].name && !strcmp(options->rows[i].name, name))
			return option_of_row(options, &options->rows[i], attached);
	for (size_t i = 0; options->tunables && i < vapro_option_count; i++) {
		if (strcmp(vapro_options[i].name, name))
			continue;
		options->tunable = &vapro_options[i];
		options->name = options->tunable->name;
		if (options->tunable->type == VAPRO_OPT_BOOL && !attached)
			options->value = "true";
		else if (!find_value(options, attached, options->tunable->help))
			return OPTIONS_ERROR;
		return OPTIONS_TUNABLE;
	}
	if (!strcmp(name, "help"))
		return help(options, attached);
	return unknown(options, name, text);
}

struct options command__options(const struct command *command, int argc, char **argv)
{
	return (struct options){.program = command->program,
				.rows = command->rows,
				.row_count = command->row_count,
				.tunables = command->tunables,
				.argc = argc,
				.argv = argv};
}

int options__next(struct options *options)
{
	const char *text;

	if (options->letters)
		return option_of_letter(options, options->letters);
	if (!options->next)
		options->next = 1;
	if (options->next >= options->argc)
		return OPTIONS_END;
	text = options->argv[options->next++];
	if (!options->only_operands && !strcmp(text, "--")) {
		options->only_operands = true;
		return options__next(options);
	}
	if (options->only_operands || text[0] != '-' || !text[1]) {
		options->value = text;
		return OPTIONS_OPERAND;
	}
	return text[1] == '-' ? option_of_name(options, text) : option_of_letter(options, text + 1);
}
