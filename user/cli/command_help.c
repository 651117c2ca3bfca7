// SPDX-License-Identifier: GPL-2.0-or-later
/* Lists the options of a table: as --help in the width of a terminal, or as part of a man page. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/terminal.h"
#include "cli/command.h"

#define HELP_COLUMN 28
#define WIDTH_MOST 110 /* longer lines are hard to read */

/* A walk over what is listed. */
struct walk {
	const struct option_visitor *visitor;
	enum option_level least, most;
	const char *heading; /* which has not been printed yet; NULL: none */
};

static void visit_row(struct walk *walk, const struct option_row *row)
{
	if (row->level < walk->least || row->level > walk->most)
		return;
	if (walk->heading)
		walk->visitor->heading(walk->visitor->ctx, walk->heading);
	walk->heading = NULL;
	walk->visitor->item(walk->visitor->ctx, row);
}

static void visit_tunables(struct walk *walk, enum vapro_group group)
{
	for (size_t i = 0; i < vapro_tunable_count; i++)
		if (vapro_tunables[i].group == group)
			visit_row(walk, &vapro_tunables[i]);
}

static void visit(const struct command *command, struct walk *walk)
{
	enum vapro_group group = VAPRO_GROUPS;

	for (const struct option_row *row = command->rows; row < command->rows + command->row_count; row++) {
		if (row->type != OPTION_HEADING) {
			visit_row(walk, row);
			continue;
		}
		if (command->tunables)
			visit_tunables(walk, group);
		group = row->group;
		walk->heading = row->help ? row->help : vapro_groups[group].heading;
	}
	if (command->tunables)
		visit_tunables(walk, group);
}

void command__visit(const struct command *command, enum option_level most, const struct option_visitor *visitor)
{
	struct walk walk = {.visitor = visitor, .most = most};

	visit(command, &walk);
}

struct page {
	FILE *out;
	int width;
	bool man;
	bool brief; /* the first clause of a help is enough */
};

/* Prints text from a column on, in lines of words. */
static void print_words(const struct page *page, const char *text, int column)
{
	int used = column;

	while (*text) {
		int length = (int)strcspn(text, " ");

		if (used > column && used + 1 + length > page->width) {
			fprintf(page->out, "\n%*s", column, "");
			used = column;
		}
		used += fprintf(page->out, "%s%.*s", used > column ? " " : "", length, text);
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', page->out);
}

/* Prints text of a man page: roff reads a dash as a hyphen and a leading dot as a request. */
static void print_roff(const struct page *page, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", page->out);
	for (; *text; text++) {
		if (*text == '-')
			fputs("\\-", page->out);
		else if (*text == '\\')
			fputs("\\e", page->out);
		else
			fputc(*text, page->out);
	}
}

static void help_heading(void *ctx, const char *text)
{
	const struct page *page = ctx;

	fprintf(page->out, page->man ? ".SS %s\n" : "\n%s:\n", text);
}

static void no_heading(void *ctx, const char *text)
{
	(void)ctx;
	(void)text;
}

static void help_item(void *ctx, const struct option_row *row)
{
	const struct page *page = ctx;
	char flag[160], value[64], *text = NULL;
	size_t clause = page->brief ? strcspn(row->help, ";") : strlen(row->help);
	bool alone;
	int length;

	option__value_name(row, value, sizeof(value));
	if (!option__has_value(row))
		*value = '\0';
	alone = option__may_be_alone(row) && *value;
	length = snprintf(flag, sizeof(flag), "%s--%s%s%s%s", row->letter ? "-x, " : "", row->name,
			  alone	   ? "[="
			  : *value ? " "
				   : "",
			  value, alone ? "]" : "");
	if (row->letter)
		flag[1] = row->letter;
	if (row->level == OPTION_FILE)
		snprintf(flag, sizeof(flag), "%s = %s", row->name, value);
	if (asprintf(&text, "%.*s%s%s%s", (int)clause, row->help, row->initial ? " (" : "",
		     row->initial && !*row->initial ? "none"
		     : row->initial		    ? row->initial
						    : "",
		     row->initial ? ")" : "") < 0)
		return;
	if (page->man) {
		fputs(".TP\n.B ", page->out);
		print_roff(page, flag);
		fputc('\n', page->out);
		print_roff(page, text);
		fputc('\n', page->out);
	} else {
		fprintf(page->out, "  %s", flag);
		if (length + 2 >= HELP_COLUMN)
			fprintf(page->out, "\n%*s", HELP_COLUMN, "");
		else
			fprintf(page->out, "%*s", HELP_COLUMN - length - 2, "");
		print_words(page, text, HELP_COLUMN);
	}
	free(text);
}

static struct page page_of(const char *what, FILE *out)
{
	unsigned width = terminal__width(STDOUT_FILENO);

	return (struct page){
	    .out = out, .width = (int)(width < WIDTH_MOST ? width : WIDTH_MOST), .man = what && !strcmp(what, "man")};
}

/* Prints the options: the usual ones, all, or for the man page also the settings of the configuration file. */
static void print_options(const struct command *command, struct page *page, bool all)
{
	const struct option_visitor visitor = {help_heading, help_item, page}, of_files = {no_heading, help_item, page};
	struct walk walk = {
	    .visitor = &visitor, .most = all ? OPTION_EXPERT : OPTION_USUAL, .heading = page->man ? NULL : "Options"};

	if (command->like) {
		fprintf(page->out,
			page->man ? ".PP\nThe options are those of\n.BR %s (8).\n"
				  : "\nThe options are those of %s: `%s --help` lists them.\n",
			command->like->program, command->like->program);
		return;
	}
	page->brief = command->tunables && !all;
	visit(command, &walk);
	if (!page->man || !command->tunables)
		return;
	help_heading(page, "Only in the configuration file");
	walk = (struct walk){.visitor = &of_files, .least = OPTION_FILE, .most = OPTION_FILE};
	visit(command, &walk);
}

/* Calls print for each line of a text. */
static void each_line(const struct page *page, const char *text,
		      void (*print)(const struct page *, const char *, size_t))
{
	while (text && *text) {
		size_t length = strcspn(text, "\n");

		print(page, text, length);
		text += length + (text[length] == '\n');
	}
}

static void print_paragraph(const struct page *page, const char *text, size_t length)
{
	char *copy = strndup(text, length);

	if (copy)
		print_words(page, copy, 0);
	free(copy);
}

static void print_example(const struct page *page, const char *text, size_t length)
{
	size_t command = strcspn(text, "\t");

	if (command > length)
		command = length;
	if (command < length)
		fprintf(page->out, "  # %.*s\n", (int)(length - command - 1), text + command + 1);
	fprintf(page->out, "  %.*s\n", (int)command, text);
}

void command__help(const struct command *command, const char *what, FILE *out)
{
	struct page page = page_of(what, out);
	const char *before = "Usage: ";

	if (page.man) {
		print_options(command, &page, true);
		return;
	}
	for (const char *text = command->synopsis; *text; before = "       ") {
		size_t length = strcspn(text, "\n");

		fprintf(out, "%s%s %.*s\n", before, command->program, (int)length, text);
		text += length + (text[length] == '\n');
	}
	fputc('\n', out);
	each_line(&page, command->about, print_paragraph);
	print_options(command, &page, what != NULL);
	if (command->examples) {
		fputs("\nExamples:\n", out);
		each_line(&page, command->examples, print_example);
	}
}
