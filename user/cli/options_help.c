// SPDX-License-Identifier: GPL-2.0-or-later
/* Lists the options of a table: as --help in the width of a terminal, or as part of a man page. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/terminal.h"
#include "cli/options.h"

#define HELP_COLUMN 28
#define WIDTH_MOST 110 /* longer lines are hard to read */

static void visit_tunables(enum vapro_group group, const struct option_visitor *visitor)
{
	for (size_t i = 0; i < vapro_option_count; i++) {
		const struct vapro_option *option = &vapro_options[i];
		struct option_item item = {.name = option->name,
					   .help = option->help,
					   .initial = option->initial,
					   .may_be_alone = option->type == VAPRO_OPT_BOOL};

		if (option->group != group)
			continue;
		config__value_name(option, item.value, sizeof(item.value));
		visitor->item(visitor->ctx, &item);
	}
}

void options__visit(const struct options *options, bool expert, const struct option_visitor *visitor)
{
	enum vapro_group group = VAPRO_GROUPS;
	bool listed = true;

	for (const struct option_row *row = options->rows; row < options->rows + options->row_count; row++) {
		struct option_item item = {.name = row->name,
					   .help = row->help,
					   .letter = row->letter,
					   .may_be_alone = row->id == OPTIONS_HELP};

		if (row->name && row->help && listed) {
			snprintf(item.value, sizeof(item.value), "%s", row->value ? row->value : "");
			visitor->item(visitor->ctx, &item);
		}
		if (row->name)
			continue;
		if (listed && options->tunables)
			visit_tunables(group, visitor);
		group = row->help ? VAPRO_GROUPS : (enum vapro_group)row->id;
		listed = group == VAPRO_GROUPS || expert || !vapro_groups[group].expert;
		if (listed)
			visitor->heading(visitor->ctx, row->help ? row->help : vapro_groups[group].heading);
	}
	if (listed && options->tunables)
		visit_tunables(group, visitor);
}

struct page {
	FILE *out;
	int width;
	bool man;
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

static void help_item(void *ctx, const struct option_item *item)
{
	const struct page *page = ctx;
	char flag[128], *text = NULL;
	int length;

	bool alone = item->may_be_alone && *item->value;

	length = snprintf(flag, sizeof(flag), "%s--%s%s%s%s", item->letter ? "-x, " : "", item->name,
			  alone		 ? "[="
			  : *item->value ? " "
					 : "",
			  item->value, alone ? "]" : "");
	if (item->letter)
		flag[1] = item->letter;
	if (asprintf(&text, "%s%s%s%s", item->help, item->initial ? " (" : "",
		     item->initial && !*item->initial ? "none"
		     : item->initial		      ? item->initial
						      : "",
		     item->initial ? ")" : "") < 0)
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

void options__help(const struct options *options, const char *what, FILE *out)
{
	struct page page = page_of(what, out);
	const struct option_visitor visitor = {help_heading, help_item, &page};

	if (options->row_count && options->rows[0].name && !page.man)
		help_heading(&page, "Options");
	options__visit(options, what != NULL, &visitor);
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

int command__help(const struct command *command, const char *what, FILE *out)
{
	const struct options options = command__options(command, 0, NULL);
	struct page page = page_of(what, out);
	const char *before = "Usage: ";

	if (page.man) {
		options__help(&options, what, out);
		return 0;
	}
	for (const char *text = command->synopsis; *text; before = "       ") {
		size_t length = strcspn(text, "\n");

		fprintf(out, "%s%s %.*s\n", before, command->program, (int)length, text);
		text += length + (text[length] == '\n');
	}
	fputc('\n', out);
	each_line(&page, command->about, print_paragraph);
	options__help(&options, what, out);
	if (command->examples) {
		fputs("\nExamples:\n", out);
		each_line(&page, command->examples, print_example);
	}
	return 0;
}
