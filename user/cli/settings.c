// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/settings.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"

#define PAGE_WIDTH 100
#define PATH_BYTES 512

/* Reads a file. Returns 1, or a negative errno. */
static int read_one(struct vapro_config *config, const char *path, const struct config_others *others, FILE *report,
		    char *err, size_t err_size)
{
	int ret = config__read(config, path, others, err, err_size);

	if (!ret && report)
		fprintf(report, "%s\n", path);
	return ret ? ret : 1;
}

/* Reads the files of a pattern in the order of their names. Returns how many, or a negative errno. */
static int read_all(struct vapro_config *config, const char *pattern, const struct config_others *others, FILE *report,
		    char *err, size_t err_size)
{
	glob_t found;
	int count = 0, ret = 0;

	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; ret >= 0 && i < found.gl_pathc; i++, count++)
		ret = read_one(config, found.gl_pathv[i], others, report, err, err_size);
	globfree(&found);
	return ret < 0 ? ret : count;
}

int settings__read(struct vapro_config *config, const char *path, const char *root, const struct config_others *others,
		   FILE *report, char *err, size_t err_size)
{
	static const char *const places[] = {SETTINGS_FILE, SETTINGS_OLD_FILE};
	char name[PATH_BYTES];
	int first = 0, rest;

	if (path)
		return read_one(config, path, others, report, err, err_size);
	for (size_t i = 0; !first && i < sizeof(places) / sizeof(*places); i++) {
		snprintf(name, sizeof(name), "%s%s", root, places[i]);
		if (!access(name, F_OK))
			first = read_one(config, name, others, report, err, err_size);
	}
	if (first < 0)
		return first;
	snprintf(name, sizeof(name), "%s%s", root, SETTINGS_DROP_INS);
	rest = read_all(config, name, others, report, err, err_size);
	return rest < 0 ? rest : first + rest;
}

/* Returns the n-th row of vaprod that is a setting, and its group. */
static const struct option_row *setting(size_t n, enum vapro_group *group)
{
	enum vapro_group within = VAPRO_GROUPS;

	for (size_t i = 0; i < vaprod_command.row_count; i++) {
		const struct option_row *row = &vaprod_command.rows[i];

		if (row->type == OPTION_HEADING)
			within = row->group;
		else if (within != VAPRO_GROUPS && !config__find(row->name) && !n--) {
			*group = within;
			return row;
		}
	}
	return NULL;
}

static int ignore(void *ctx, const struct option_row *row, const char *value, const char *prefix, char *err,
		  size_t err_size)
{
	(void)ctx;
	(void)row;
	(void)value;
	(void)prefix;
	(void)err;
	(void)err_size;
	return 0;
}

const struct config_others settings_of_vaprod = {.row = setting, .set = ignore};

/* Prints a help text as comments of words. */
static void print_help(const char *text, const char *value, FILE *out)
{
	int used = fprintf(out, "\n#");

	for (bool first = true; *text; first = false) {
		int length = (int)strcspn(text, " ");

		if (!first && used + 1 + length > PAGE_WIDTH)
			used = fprintf(out, "\n#") - 1;
		used += fprintf(out, " %.*s", length, text);
		text += length;
		text += strspn(text, " ");
	}
	fprintf(out, "%s%s%s\n", *value ? " (" : "", value, *value ? ")" : "");
}

static void print_rows(enum vapro_group group, const struct command_line *line, const struct command_line *defaults,
		       FILE *out)
{
	const struct option_row *row;
	enum vapro_group of = VAPRO_GROUPS;
	char value[1024], initial[1024], kind[64];

	for (size_t n = 0; (row = setting(n, &of)); n++) {
		bool is_switch = !option__has_value(row), is_default;

		if (of != group || row->level == OPTION_HIDDEN)
			continue;
		option__value_name(row, kind, sizeof(kind));
		print_help(row->help, is_switch ? "yes|no" : kind, out);
		if (!option__format(row, line, 0, value, sizeof(value)))
			fprintf(out, "#%s =%s\n", row->name, is_switch ? " no" : "");
		is_default = option__format(row, defaults, 0, initial, sizeof(initial)) &&
			     option__format(row, line, 0, value, sizeof(value)) && !strcmp(initial, value);
		for (size_t i = 0; option__format(row, line, i, value, sizeof(value)); i++)
			fprintf(out, "%s%s = %s\n", is_default ? "#" : "", row->name, value);
	}
}

static void print_tunables(enum vapro_group group, const struct vapro_config *config,
			   const struct vapro_config *defaults, FILE *out)
{
	char value[VAPRO_FUNCTIONS_TEXT], initial[VAPRO_FUNCTIONS_TEXT], kind[64];

	for (size_t i = 0; i < vapro_tunable_count; i++) {
		const struct option_row *tunable = &vapro_tunables[i];
		bool changed;

		config__format(config, tunable, value, sizeof(value));
		config__format(defaults, tunable, initial, sizeof(initial));
		changed = strcmp(value, initial) != 0;
		if (tunable->group != group || (tunable->level == OPTION_HIDDEN && !changed))
			continue;
		option__value_name(tunable, kind, sizeof(kind));
		print_help(tunable->help, kind, out);
		fprintf(out, "%s%s =%s%s\n", changed ? "" : "#", tunable->name, *value ? " " : "", value);
	}
}

void settings__print(const struct vapro_config *config, const struct command_line *line,
		     const struct command_line *initial, FILE *out)
{
	struct vapro_config defaults;

	config__init(&defaults);
	fputs("# vaprod, vapro run and vapro check read " SETTINGS_FILE " (or " SETTINGS_OLD_FILE "), then\n"
	      "# " SETTINGS_DROP_INS ", or the file of --config alone. Options of the command line win.\n"
	      "# Lines with # are comments; those of settings show the defaults. `vaprod --check-config` checks.\n",
	      out);
	for (enum vapro_group group = 0; group < VAPRO_GROUPS; group++) {
		fprintf(out, "\n[%s]\n", vapro_groups[group].section);
		print_rows(group, line, initial, out);
		print_tunables(group, config, &defaults, out);
		if (group != VAPRO_GROUP_KERNEL)
			continue;
		print_help("how this machine counts an event that --workload or --bands name, or a stage counts",
			   "event NAME=pmu/terms/", out);
		if (!config->event_count)
			fputs("#event NAME=cpu/event=0xc0,umask=0x0/\n", out);
		for (uint32_t i = 0; i < config->event_count; i++)
			fprintf(out, "event %s=%s\n", config->events[i].name, config->events[i].spec);
	}
}
