// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct writer {
	FILE *out;
	const char *program;
	const struct command *command; /* the one that is listed */
	bool alone;		       /* the program has no commands */
};

/* What completion needs of an option. */
struct listed {
	char value[64]; /* "" where it has none */
	bool may_be_alone;
};

static struct listed list(const struct option_row *row)
{
	struct listed listed = {.may_be_alone = option__may_be_alone(row)};

	if (option__has_value(row))
		option__value_name(row, listed.value, sizeof(listed.value));
	return listed;
}

static bool names_files(const char *value)
{
	return !strcmp(value, "FILE") || !strcmp(value, "FILE|-") || !strcmp(value, "PATH");
}

static bool names_words(const char *value)
{
	return strchr(value, '|') && !names_files(value);
}

/* Prints the words of "a|b|c" with a space between them. */
static void print_choice(FILE *out, const char *value)
{
	for (; *value; value++)
		fputc(*value == '|' ? ' ' : *value, out);
}

/* Prints the first clause of a help text; each character of special is printed as escape and itself. */
static void print_clause(FILE *out, const char *text, const char *special)
{
	for (; *text && *text != ';'; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr(special, *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void ignore_heading(void *ctx, const char *text)
{
	(void)ctx;
	(void)text;
}

/* Visits all options of a command. */
static void visit(struct writer *writer, const struct command *command,
		  void (*item)(void *ctx, const struct option_row *row))
{
	writer->command = command;
	command__visit(command, OPTION_EXPERT, &(struct option_visitor){ignore_heading, item, writer});
}

/* ---- bash */

static const char *prefix_of(const struct writer *writer)
{
	return writer->alone ? "" : writer->command->name;
}

static void bash_value(void *ctx, const struct option_row *row)
{
	const struct writer *writer = ctx;
	const struct listed item = list(row);

	if (!*item.value || (item.may_be_alone && !names_words(item.value)))
		return;
	fprintf(writer->out, "\t%s:--%s", prefix_of(writer), row->name);
	if (row->letter)
		fprintf(writer->out, " | %s:-%c", prefix_of(writer), row->letter);
	if (names_files(item.value)) {
		fputs(") __vapro_files; return ;;\n", writer->out);
	} else if (names_words(item.value)) {
		fputs(") __vapro_words '", writer->out);
		print_choice(writer->out, item.value);
		/* a value that may be absent does not follow its option */
		fprintf(writer->out, "'%s ;;\n", item.may_be_alone ? " \"$equals\" && return" : "; return");
	} else {
		fputs(") return ;;\n", writer->out);
	}
}

static void bash_name(void *ctx, const struct option_row *row)
{
	const struct writer *writer = ctx;

	fprintf(writer->out, " --%s", row->name);
}

static void print_bash(struct writer *writer, const struct command *const *commands, size_t count)
{
	FILE *out = writer->out;

	fprintf(out,
		"# completion of %s for bash, written by `%s --completion bash`\n"
		"_%s()\n"
		"{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= equals= i\n"
		"\t__vapro_words() { [[ $# -gt 1 && -z $2 ]] && return 1; mapfile -t COMPREPLY < <(compgen -W \"$1\" "
		"-- \"$cur\"); "
		"}\n"
		"\t__vapro_files() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "
		"\"$cur\"); }\n"
		"\tCOMPREPLY=()\n"
		"\tif [[ $cur == = ]]; then cur= equals=yes\n"
		"\telif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]} equals=yes; fi\n",
		writer->program, writer->program, writer->program);
	if (!writer->alone) {
		fputs("\tif [[ $COMP_CWORD == 1 ]]; then __vapro_words '", out);
		for (size_t i = 0; i < count; i++)
			fprintf(out, "%s%s", i ? " " : "", commands[i]->name);
		fputs("'; return; fi\n\tcommand=${COMP_WORDS[1]}\n", out);
	}
	fputs("\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then\n"
	      "\t\t\tif [[ $prev == -- ]]; then mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"); else __vapro_files; "
	      "fi\n"
	      "\t\t\treturn\n"
	      "\t\tfi\n"
	      "\tdone\n"
	      "\tcase $command:$prev in\n",
	      out);
	for (size_t i = 0; i < count; i++)
		visit(writer, commands[i], bash_value);
	fputs("\tesac\n\tcase $command:$cur in\n", out);
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "\t%s:-*) __vapro_words '", writer->alone ? "" : commands[i]->name);
		visit(writer, commands[i], bash_name);
		fputs("' ;;\n", out);
	}
	fprintf(out, "\t*) __vapro_files ;;\n\tesac\n}\ncomplete -F _%s %s\n", writer->program, writer->program);
}

/* ---- zsh */

static void zsh_item(void *ctx, const struct option_row *row)
{
	const struct writer *writer = ctx;
	const struct listed item = list(row);
	FILE *out = writer->out;

	fputs("\t\t", out);
	if (row->letter)
		fprintf(out, "'*'{-%c%s,--%s%s}'[", row->letter, *item.value && !item.may_be_alone ? "+" : "",
			row->name, *item.value ? "=" : "");
	else
		fprintf(out, "'*--%s%s[", row->name, !*item.value ? "" : item.may_be_alone ? "=-" : "=");
	print_clause(out, row->help, "[]:\\");
	fputs("]", out);
	if (*item.value && !(row->letter && item.may_be_alone)) {
		fputs(item.may_be_alone ? "::value:" : ":value:", out);
		if (names_words(item.value)) {
			fputc('(', out);
			print_choice(out, item.value);
			fputc(')', out);
		} else if (names_files(item.value)) {
			fputs("_files", out);
		}
	}
	fputs("' \\\n", out);
}

static void print_zsh(struct writer *writer, const struct command *const *commands, size_t count)
{
	FILE *out = writer->out;

	fprintf(out, "#compdef %s\n# written by `%s --completion zsh`\n_%s()\n{\n", writer->program, writer->program,
		writer->program);
	if (!writer->alone) {
		fputs("\tlocal -a commands=(\n", out);
		for (size_t i = 0; i < count; i++) {
			fprintf(out, "\t\t'%s:", commands[i]->name);
			print_clause(out, commands[i]->summary, ":\\");
			fputs("'\n", out);
		}
		fputs("\t)\n\tif ((CURRENT == 2)); then _describe command commands; return; fi\n"
		      "\tlocal command=$words[2]\n\tshift words; ((CURRENT--))\n\tcase $command in\n",
		      out);
	}
	for (size_t i = 0; i < count; i++) {
		if (!writer->alone)
			fprintf(out, "\t%s)\n", commands[i]->name);
		fputs("\t\t_arguments -s -S \\\n", out);
		visit(writer, commands[i], zsh_item);
		fputs(strstr(commands[i]->synopsis, "-- COMMAND") ? "\t\t'*::command:_normal'\n"
								  : "\t\t'*:file:_files'\n",
		      out);
		if (!writer->alone)
			fputs("\t\t;;\n", out);
	}
	fprintf(out, "%s}\n_%s \"$@\"\n", writer->alone ? "" : "\tesac\n", writer->program);
}

/* ---- fish */

static void fish_item(void *ctx, const struct option_row *row)
{
	const struct writer *writer = ctx;
	const struct listed item = list(row);
	FILE *out = writer->out;

	fprintf(out, "complete -c %s", writer->program);
	if (!writer->alone)
		fprintf(out, " -n '__fish_seen_subcommand_from %s'", writer->command->name);
	fprintf(out, " -l %s", row->name);
	if (row->letter)
		fprintf(out, " -s %c", row->letter);
	if (*item.value && !item.may_be_alone)
		fputs(names_files(item.value) ? " -r" : " -x", out);
	if (names_words(item.value)) {
		fputs(" -a '", out);
		print_choice(out, item.value);
		fputs("'", out);
	}
	fputs(" -d '", out);
	print_clause(out, row->help, "\\");
	fputs("'\n", out);
}

static void print_fish(struct writer *writer, const struct command *const *commands, size_t count)
{
	fprintf(writer->out, "# completion of %s for fish, written by `%s --completion fish`\n", writer->program,
		writer->program);
	for (size_t i = 0; i < count; i++) {
		if (!writer->alone) {
			fprintf(writer->out, "complete -c %s -f -n __fish_use_subcommand -a %s -d '", writer->program,
				commands[i]->name);
			print_clause(writer->out, commands[i]->summary, "\\");
			fputs("'\n", writer->out);
		}
		visit(writer, commands[i], fish_item);
	}
}

int command__print_completion(const char *shell, const char *program, const struct command *const *commands,
			      size_t count, FILE *out)
{
	static const struct {
		const char *shell;
		void (*print)(struct writer *writer, const struct command *const *commands, size_t count);
	} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
	struct writer writer = {
	    .out = out, .program = program, .alone = count == 1 && !strcmp(commands[0]->program, program)};

	for (size_t i = 0; i < sizeof(shells) / sizeof(*shells); i++) {
		if (strcmp(shell, shells[i].shell))
			continue;
		shells[i].print(&writer, commands, count);
		return 0;
	}
	return -EINVAL;
}
