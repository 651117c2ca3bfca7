// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/command.h"

#include <stdarg.h>
#include <string.h>

#include "daemon/daemon.h"

int command__fail(const struct command *command, int code, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", command->program);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return code;
}

const struct option_row *command__row(const struct command *command, const char *name)
{
	for (size_t i = 0; i < command->row_count; i++)
		if (command->rows[i].name && !strcmp(command->rows[i].name, name))
			return &command->rows[i];
	return NULL;
}

static const struct option_row *tunable_row(const struct command *command, const char *name)
{
	for (size_t i = 0; command->tunables && i < vapro_tunable_count; i++)
		if (!strcmp(vapro_tunables[i].name, name))
			return &vapro_tunables[i];
	return NULL;
}

const struct option_row *command__resolve(const struct command *command, const struct option_row *row, bool *tunable)
{
	const struct option_row *own = row->type == OPTION_ALIAS ? command__row(command, row->words) : row;

	*tunable = !own;
	return own ? own : tunable_row(command, row->words);
}

static enum options_item unknown(const struct options *options, const char *name, const char *text)
{
	const struct command *command = options->command;
	struct suggestion suggestion = {.text = name};

	suggestion__offer(&suggestion, "help");
	for (size_t i = 0; i < command->row_count; i++)
		if (command->rows[i].name && command->rows[i].level != OPTION_HIDDEN)
			suggestion__offer(&suggestion, command->rows[i].name);
	for (size_t i = 0; command->tunables && i < vapro_tunable_count; i++)
		suggestion__offer(&suggestion, vapro_tunables[i].name);
	fprintf(stderr, "%s: unknown option '%s'", command->program, text);
	if (suggestion.best)
		fprintf(stderr, " (did you mean '--%s'?)", suggestion.best);
	fputs("; --help lists them\n", stderr);
	return OPTIONS_ERROR;
}

static bool is_help(const char *value)
{
	return !value || !strcmp(value, "all") || !strcmp(value, "man");
}

/* Takes an option's value, from behind its name or from the next argument. */
static enum options_item take_value(struct options *options, const struct option_row *row, bool tunable,
				    const char *attached)
{
	char wanted[64];

	options->row = row;
	options->tunable = tunable;
	options->value = attached;
	if (row->type == OPTION_HELP && !is_help(attached))
		command__fail(options->command, 0, "--help: invalid word '%s'; expected all or man", attached);
	else if (!option__has_value(row) && attached)
		command__fail(options->command, 0, "--%s has no value", options->name);
	else if (!option__has_value(row) || option__may_be_alone(row) || attached)
		return OPTIONS_OPTION;
	else if (options->next < options->argc)
		options->value = options->argv[options->next++];
	if (options->value && !attached)
		return OPTIONS_OPTION;
	if (!options->value) {
		option__value_name(row, wanted, sizeof(wanted));
		command__fail(options->command, 0, "--%s needs a value: %s", options->name, wanted);
	}
	return OPTIONS_ERROR;
}

static const struct option_row help_row = OPTIONS_HELP_ALL_ROW;

/* Reads the first of the letters; those behind one without a value are next. */
static enum options_item option_of_letter(struct options *options, const char *letters)
{
	const char flag[] = {'-', *letters, '\0'}, *after = letters[1] ? letters + 1 : NULL;
	const struct option_row *row = *letters == 'h' ? &help_row : NULL;
	bool tunable;

	options->letters = NULL;
	for (size_t i = 0; !row && i < options->command->row_count; i++)
		if (options->command->rows[i].letter == *letters)
			row = &options->command->rows[i];
	if (!row)
		return unknown(options, letters, flag);
	snprintf(options->name, sizeof(options->name), "%s", row->name);
	row = command__resolve(options->command, row, &tunable);
	if (option__has_value(row) && !option__may_be_alone(row))
		return take_value(options, row, tunable, after);
	options->letters = after;
	return take_value(options, row, tunable, NULL);
}

static enum options_item option_of_name(struct options *options, const char *text)
{
	const char *equals = strchr(text, '='), *attached = equals ? equals + 1 : NULL;
	size_t length = equals ? (size_t)(equals - text - 2) : strlen(text + 2);
	const struct option_row *row;
	bool tunable = false;

	if (length > OPTIONS_NAME_MOST)
		return unknown(options, "", text);
	snprintf(options->name, sizeof(options->name), "%.*s", (int)length, text + 2);
	row = command__row(options->command, options->name);
	if (row) {
		row = command__resolve(options->command, row, &tunable);
	} else {
		row = tunable_row(options->command, options->name);
		tunable = row;
	}
	if (!row && !strcmp(options->name, "help"))
		row = &help_row;
	return row ? take_value(options, row, tunable, attached) : unknown(options, options->name, text);
}

enum options_item command__next(struct options *options)
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
		return command__next(options);
	}
	if (options->only_operands || text[0] != '-' || !text[1]) {
		options->only_operands |= options->command->ends_at_operand;
		options->value = text;
		return OPTIONS_OPERAND;
	}
	return text[1] == '-' ? option_of_name(options, text) : option_of_letter(options, text + 1);
}

/* Does what an option requests at once. Returns 0, COMMAND_DONE or EXIT_USAGE. */
static int act(const struct command *command, const struct option_row *row, const char *value)
{
	/* that of "vapro run" is that of vapro */
	int length = (int)strcspn(command->program, " ");

	switch (row->type) {
	case OPTION_HELP:
		command__help(command, value, stdout);
		return COMMAND_DONE;
	case OPTION_VERSION:
		printf("%.*s %s\n", length, command->program, VAPRO_VERSION);
		return COMMAND_DONE;
	case OPTION_COMPLETION:
		if (!command__print_completion(value, command->program, &command, 1, stdout))
			return COMMAND_DONE;
		return command__fail(command, EXIT_USAGE,
				     "--completion: invalid shell '%s'; expected " OPTIONS_COMPLETION_EXPECTED, value);
	default:
		return 0;
	}
}

static int set(const struct options *options, void *base)
{
	const struct command *command = options->command;
	void *target = options->tunable ? (char *)base + command->config : base;
	char err[512];

	if (!option__set(options->row, target, options->value, false, "--", err, sizeof(err)))
		return 0;
	return command__fail(command, EXIT_USAGE, "%s", err);
}

static int take_operand(const struct command *command, void *base, const char *text)
{
	struct option_list *operands = (struct option_list *)((char *)base + command->operands);

	if (!command->operands)
		return command__fail(command, EXIT_USAGE, "unknown argument '%s'; --help lists the options", text);
	return option_list__add(operands, text) ? command__fail(command, EXIT_FAILED, "out of memory") : 0;
}

/* Returns the option that a word of a program without commands stands for, as in `vaprod version`, or NULL. */
static const struct option_row *option_of_word(const struct command *command, const char *word)
{
	if (command->operands || strchr(command->program, ' ') || (strcmp(word, "help") && strcmp(word, "version")))
		return NULL;
	return command__row(command, word);
}

/* Checks the syntax, does what is requested at once, and sets the early options. */
static int look_ahead(const struct command *command, void *base, int argc, char **argv)
{
	struct options options = {.command = command, .argc = argc, .argv = argv};
	enum options_item item;
	int code = 0;

	while (!code && (item = command__next(&options)) != OPTIONS_END) {
		if (item == OPTIONS_ERROR)
			return EXIT_USAGE;
		if (item == OPTIONS_OPERAND) {
			const struct option_row *row = option_of_word(command, options.value);

			code = row ? act(command, row, NULL) : 0;
			continue;
		}
		code = act(command, options.row, options.value);
		if (!code && options.row->early)
			code = set(&options, base);
	}
	return code;
}

int command__parse(const struct command *command, void *base, int argc, char **argv)
{
	struct options options = {.command = command, .argc = argc, .argv = argv};
	int code = look_ahead(command, base, argc, argv);
	enum options_item item;

	if (!code && command->prepare)
		code = command->prepare(base, command, argc, argv);
	while (!code && (item = command__next(&options)) != OPTIONS_END) {
		if (item == OPTIONS_OPERAND)
			code = take_operand(command, base, options.value);
		else if (!options.row->early)
			code = set(&options, base);
	}
	return code;
}
