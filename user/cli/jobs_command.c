// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro jobs`: the reports that jobs left. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/exit_codes.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/stored_reports.h"

#define LINE_SIZE 1024

struct choice {
	const char *directory;
	bool paths;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_STRING, OPTION_AT(struct choice, directory), .name = "directory", .letter = 'd', .value = "DIR",
     .help = "where vaprod leaves reports, as its --job-reports (" STORE_DIRECTORY ")"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, paths), .name = "paths",
     .help = "print the paths of the pages only, one a line"},
    OPTIONS_HELP_ROW,
};
/* clang-format on */

static int jobs_command__main(int argc, char **argv);

const struct command jobs_command = {
    .name = "jobs",
    .program = "vapro jobs",
    .summary = "list the reports that your jobs on this node have left",
    .synopsis = "[option]...",
    .about =
	"Lists the reports that vaprod left when jobs ended, the latest first: when, the job, and its verdict. Of "
	"each there is a page (.html), the records (.ndjson) and a text of ten lines (.txt) in DIR/jobs/UID, which "
	"only its owner can read. Users see their own, root sees all. `vapro report --job ID` makes a page, tables "
	"or a picture of one.",
    .examples = "vapro jobs\tyour jobs, the latest first\n"
		"vapro report --one-line --job slurm:123\tthe verdict on one of them",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = jobs_command__main,
};

/* Reads a line of a report's text, without its newline; empty where there is none. */
static void read_line(const struct stored_reports *reports, const struct store_report *report, int number,
		      char line[LINE_SIZE])
{
	FILE *file = stored_reports__open(reports, report, STORE_TEXT);

	line[0] = '\0';
	for (int i = 0; file && i < number; i++) {
		if (!fgets(line, LINE_SIZE, file))
			line[0] = '\0';
	}
	if (file)
		fclose(file);
	line[strcspn(line, "\n")] = '\0';
	printable(line);
}

static void print(const struct stored_reports *reports, const struct store_report *report, bool several)
{
	time_t time = (time_t)report->time_s;
	char job[LINE_SIZE], verdict[LINE_SIZE], when[32], name[STORE_NAME_SIZE];
	struct tm tm;

	localtime_r(&time, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
	read_line(reports, report, 1, job);
	read_line(reports, report, 2, verdict);
	snprintf(name, sizeof(name), "%s", report->name);
	printf("%s  %s", when, printable(name));
	if (several)
		printf("  uid %u", report->uid);
	printf("\n    %s\n    %s\n", job, verdict);
}

static int list(const struct choice *choice)
{
	char err[4300], path[4400];
	struct stored_reports *reports = stored_reports__list(choice->directory, err, sizeof(err));
	const struct store_report *items;
	size_t count;

	if (!reports) {
		fprintf(stderr, "vapro jobs: %s\n", err);
		return EXIT_FAILED;
	}
	items = stored_reports__items(reports, &count);
	if (!count && !choice->paths)
		printf("no job of yours has left a report in %s on this node%s\n", choice->directory,
		       access(choice->directory, F_OK) ? ": vaprod leaves none without --job-reports" : "");
	for (size_t i = 0; i < count; i++) {
		if (!choice->paths) {
			print(reports, &items[i], !geteuid());
			continue;
		}
		stored_reports__path(reports, &items[i], STORE_PAGE, path, sizeof(path));
		puts(printable(path));
	}
	stored_reports__free(reports);
	return fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

static int jobs_command__main(int argc, char **argv)
{
	struct choice choice = {.directory = STORE_DIRECTORY};
	int code = command__parse(&jobs_command, &choice, argc, argv);

	if (!code)
		code = list(&choice);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
