// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro runs`: which of many runs of a program are outlying, and which hosts, ranks and states in them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit_codes.h"
#include "base/grow.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "cli/diff_run.h"
#include "compare/runs.h"
#include "export/svg_runs.h"
#include "report/run_option.h"
#include "report/runs_report.h"

enum { WIDTH_LEAST = 100 }; /* columns of the table */

struct choice {
	double threshold_pct;
	bool json, csv, svg;
	const char *program;
	struct option_list operands;
};

/* A run as it was read. */
struct item {
	char *name, *path;
	struct diff_run run;
};

struct items {
	struct item *list;
	size_t count, capacity;
	bool records, fragments;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_PERCENT, OPTION_AT(struct choice, threshold_pct), .name = "threshold", .min = 1e-6, .max = 1000,
     .expected = "more than 0%, up to 1000%", .help = "least deviation that is worth reporting (3%)"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, program), .name = "program", .value = "NAME",
     .help = "compare the runs of this program, by the name of its file (that of most runs)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, json), .name = "json", .help = "records of type runs, one a line"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, csv), .name = "csv",
     .help = "the distribution of the runs' times, as comma-separated values"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, svg), .name = "svg",
     .help = "the same as a picture (SVG): the share of the runs that took no longer, over the time"},
    OPTIONS_HELP_ROW,
};
/* clang-format on */

static int runs__main(int argc, char **argv);

const struct command runs_command = {
    .name = "runs",
    .program = "vapro runs",
    .summary = "which of many runs of a program are outlying, and their hosts, ranks and states",
    .synopsis = "[option]... DIR\n[option]... RUN RUN...",
    .about =
	"Compares many runs of a program: how long each lasted and how long equal work took in it, over the median "
	"run, "
	"and what is outlying: runs, hosts and ranks in them, states. Of five runs or more. What lies further from the "
	"median than the threshold, and further than the spread of the runs explains, is named. In DIR each file is a "
	"run, or several where it holds several, and each directory is a run of several hosts. A RUN is the same, or "
	"the files of a run joined by commas. All are captures (vaprod --capture), fragments as NDJSON, or the output "
	"of vaprod, which shows less.",
    .examples = "vapro runs nightly\tthe captures in a directory\n"
		"vapro runs --svg nightly > times.svg\tthe distribution of their times, drawn",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .operands = offsetof(struct choice, operands),
    .main = runs__main,
};

/* Reads run `number` of a path, of `count`. Returns 0, or a negative errno with a sentence in err. */
static int add_run(struct items *items, const char *path, size_t number, size_t count, char *err, size_t err_size)
{
	struct item *item;
	int error;

	snprintf(err, err_size, "out of memory");
	if (grow(&items->list, &items->capacity, items->count + 1, sizeof(*items->list)))
		return -ENOMEM;
	item = &items->list[items->count];
	*item = (struct item){.path = strdup(path)};
	if (count > 1 && asprintf(&item->name, "%s, run %zu", path, number) < 0)
		item->name = NULL;
	else if (count <= 1)
		item->name = strdup(path);
	items->count++;
	if (!item->path || !item->name)
		return -ENOMEM;
	error = diff_run__open(&item->run, "runs", item->path, DIFF_UNKNOWN, err, err_size);
	item->run.every = true;
	if (!error)
		error = diff_run__read(&item->run, count > 1 ? (int)number : RUN_OPTION_LAST, err, err_size);
	items->records |= !error && item->run.input == DIFF_RECORDS;
	items->fragments |= !error && item->run.input != DIFF_RECORDS;
	return error;
}

static void drop_last(struct items *items)
{
	struct item *item = &items->list[--items->count];

	diff_run__close(&item->run);
	free(item->name);
	free(item->path);
}

/* Adds the runs of a path. What cannot be read is said, and left out. Returns 0 or -ENOMEM. */
static int add_path(struct items *items, const char *path, unsigned *unread)
{
	struct diff_run run;
	char err[512];
	size_t count = 0;
	int error = diff_run__open(&run, "runs", path, DIFF_UNKNOWN, err, sizeof(err));

	if (!error)
		error = diff_run__count(&run, &count, err, sizeof(err));
	diff_run__close(&run);
	for (size_t i = 1; !error && i <= count; i++) {
		error = add_run(items, path, i, count, err, sizeof(err));
		if (error == -ENOMEM || !error)
			continue;
		drop_last(items);
		fprintf(stderr, "vapro runs: left out: %s\n", err);
		(*unread)++;
		error = 0;
	}
	if (error && error != -ENOMEM) {
		fprintf(stderr, "vapro runs: left out: %s\n", err);
		(*unread)++;
		error = 0;
	}
	return error;
}

static int by_version(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Adds each file and directory of a directory, by name. Returns 0 or a negative errno. */
static int add_directory(struct items *items, const char *directory, unsigned *unread)
{
	struct dirent **entries = NULL;
	int count = scandir(directory, &entries, is_shown, by_version), error = count < 0 ? -errno : 0;

	for (int i = 0; i < count; i++) {
		char *path = NULL;

		if (!error && asprintf(&path, "%s/%s", directory, entries[i]->d_name) < 0) {
			path = NULL;
			error = -ENOMEM;
		}
		if (!error)
			error = add_path(items, path, unread);
		free(path);
		free(entries[i]);
	}
	free(entries);
	return error;
}

/* Compares and prints. Returns an exit code. */
static int compare(const struct choice *choice, const struct items *items)
{
	struct runs_input *inputs = calloc(items->count + 1, sizeof(*inputs));
	unsigned width = terminal__width(STDOUT_FILENO);
	struct runs found = {0};
	char err[512] = "out of memory";
	int error = inputs ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < items->count; i++)
		inputs[i] = (struct runs_input){.name = items->list[i].name, .profile = items->list[i].run.profile};
	if (!error)
		error = runs__compare(&found, inputs, (uint32_t)items->count, choice->threshold_pct / 100,
				      choice->program, err, sizeof(err));
	if (!error && choice->csv)
		error = runs_report__csv(&found, stdout);
	else if (!error && choice->json)
		error = runs_report__json(&found, items->records, stdout);
	else if (!error && choice->svg)
		error = svg_runs__write(&found, stdout);
	else if (!error)
		runs_report__text(&found, items->records, width > WIDTH_LEAST ? width : WIDTH_LEAST, stdout);
	if (!error && (fflush(stdout) || ferror(stdout))) {
		error = -errno;
		snprintf(err, sizeof(err), "the result could not be written: %s", strerror(errno));
	}
	if (error)
		fprintf(stderr, "vapro runs: %s\n", err);
	runs__clear(&found);
	free(inputs);
	return error ? EXIT_FAILED : EXIT_OK;
}

/* Reads all operands and compares them. Returns an exit code. */
static int read_and_compare(const struct choice *choice)
{
	const struct option_list *operands = &choice->operands;
	struct items items = {0};
	struct stat status;
	unsigned unread = 0;
	int error = 0, code = EXIT_FAILED;

	if (operands->count == 1 && !stat(operands->items[0], &status) && S_ISDIR(status.st_mode))
		error = add_directory(&items, operands->items[0], &unread);
	else
		for (size_t i = 0; !error && i < operands->count; i++)
			error = add_path(&items, operands->items[i], &unread);
	if (error)
		fprintf(stderr, "vapro runs: %s: %s\n", operands->items[0], strerror(-error));
	else if (items.records && items.fragments)
		fprintf(stderr, "vapro runs: some files are the output of vaprod, and others hold fragments: give "
				"captures only, or outputs only\n");
	else if (items.count < 2)
		fprintf(stderr, "vapro runs: two runs or more are needed, and %zu could be read%s\n", items.count,
			unread ? "" : "; a directory has a file or a directory for each run");
	else
		code = compare(choice, &items);
	while (items.count)
		drop_last(&items);
	free(items.list);
	return code;
}

static int runs__main(int argc, char **argv)
{
	struct choice choice = {.threshold_pct = 3};
	int code = command__parse(&runs_command, &choice, argc, argv);

	if (!code && choice.json + choice.csv + choice.svg > 1)
		code = command__fail(&runs_command, EXIT_USAGE, "--json, --csv and --svg are outputs: choose one");
	if (!code && !choice.operands.count)
		code = command__fail(&runs_command, EXIT_USAGE, "a directory of runs is needed, or two runs or more");
	if (!code)
		code = read_and_compare(&choice);
	option_list__clear(&choice.operands);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
