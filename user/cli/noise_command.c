// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro noise`: the noise components of a run, as a table or as their records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/job_names.h"
#include "base/exit_codes.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/shared_rows.h"
#include "cli/shown.h"
#include "page/run_report.h"
#include "report/noise_text.h"
#include "report/record.h"

struct choice {
	struct shown shown;
	double min_share;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, shown.json), .name = "json",
     .help = "print the records themselves, the latest of each component"},
    {.type = OPTION_SHARE, OPTION_AT(struct choice, min_share), .name = "min-share", .value = "SHARE", .max = 1,
     .help = "only components that took so much of the time of the ranks that they hit (0%)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, shown.no_pager), .name = "no-pager",
     .help = "write to the terminal itself, also what is longer than it"},
    JOB_ROW(struct choice, shown.job, "only this job, as records name it (all jobs)"),
    RUN_ROW(struct choice, shown.run, "of a file that holds"),
    OPTIONS_HELP_ROW,
    FROM_ROWS(struct choice, shown.source),
};
/* clang-format on */

static int noise__main(int argc, char **argv);

const struct command noise_command = {
    .name = "noise",
    .program = "vapro noise",
    .summary = "list what stalls ranks often and shortly: how long, how often, whom",
    .synopsis = "[option]... FILE...\n[option]... --broker URL [--job JOB]",
    .about =
	"Lists the noise components of a run: the tasks, by name, that ran on CPUs while the job's threads waited for "
	"these, in stays too short to be slow regions; and fragments that took about as much longer than usual, again "
	"and again, for no reason that the kernel states. For each: number of stalls, mean and longest one, how often "
	"a "
	"rank was hit (the time in which it was observed, divided by their number), the share of the ranks' time, the "
	"time of all ranks, the ranks and hosts that lost most. FILE is NDJSON output of vaprod, vapro run or vapro "
	"analyze (- is standard input), a capture, or fragments as NDJSON; several files are the hosts of one run. "
	"Components of less than noise-share (0.5 %) of a thread's time are not recorded.",
    .examples = "vapro noise run.ndjson\ta table, most time first\n"
		"vapro noise --json run.capture\tthe records of a capture's replay",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .operands = offsetof(struct choice, shown.files),
    .main = noise__main,
};

static const char *job_of(const cJSON *record)
{
	const char *job = record__text(record, KEY(of_job, job));

	return job ? job : "";
}

/* Orders records by job, in a job the most time first. */
static int compare(const void *a, const void *b)
{
	const cJSON *left = *(const cJSON *const *)a, *right = *(const cJSON *const *)b;
	double seconds = record__number(left, KEY(noise, lost_seconds), 0);
	double others = record__number(right, KEY(noise, lost_seconds), 0);
	int jobs = strcmp(job_of(left), job_of(right));

	if (jobs)
		return jobs;
	if (seconds != others)
		return seconds > others ? -1 : 1;
	return (record__uint(left, KEY(noise, id)) > record__uint(right, KEY(noise, id))) -
	       (record__uint(left, KEY(noise, id)) < record__uint(right, KEY(noise, id)));
}

/* Writes the names of the hosts, of many their number. */
static void name_hosts(const cJSON *record, char *text, size_t size)
{
	const cJSON *hosts = record__item(record, KEY(noise, hosts)), *host;
	uint64_t count = record__uint(record, KEY(noise, host_count));
	size_t used = 0;

	*text = '\0';
	if (count > 3) {
		snprintf(text, size, "%llu hosts", (unsigned long long)count);
		return;
	}
	cJSON_ArrayForEach(host, hosts)
	{
		const char *name = cJSON_GetStringValue(host);

		if (name && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", name);
	}
	printable(text);
}

static void print_component(FILE *out, const cJSON *record)
{
	char mean[32], longest[32], period[32], lost[32], task[NOISE_TASK_SIZE], hosts[256];
	const char *ranks = record__text(record, KEY(noise, ranks));
	uint64_t slices = record__uint(record, KEY(noise, n));
	double lost_s = record__number(record, KEY(noise, lost_seconds), 0);

	noise_text__task(record__text(record, KEY(noise, what)), record__text(record, KEY(noise, relation)),
			 record__uint(record, KEY(noise, pid)), task);
	name_hosts(record, hosts, sizeof(hosts));
	fprintf(out, "%10llu %9s %9s %10s %7.2f %% %10s  %s; rank%s %s; %s\n", (unsigned long long)slices,
		duration__text(slices ? lost_s / (double)slices : 0, mean, sizeof(mean)),
		duration__text(record__number(record, KEY(noise, longest_us), 0) / 1e6, longest, sizeof(longest)),
		duration__text(record__number(record, KEY(noise, period_ms), 0) / 1e3, period, sizeof(period)),
		record__number(record, KEY(noise, time_pct_of_ranks), 0), duration__text(lost_s, lost, sizeof(lost)),
		task, ranks && strpbrk(ranks, ",-") ? "s" : "", ranks ? ranks : "?", hosts);
}

static bool is_wanted(const struct choice *choice, const cJSON *record)
{
	return record__number(record, KEY(noise, time_pct_of_ranks), 0) >= 100 * choice->min_share &&
	       (!choice->shown.job || choice->shown.source.broker.servers ||
		job_names__match(choice->shown.job, job_of(record)));
}

/* Prints the components. Returns 0 or an exit code. */
static int print(const void *of, const struct run_report *report, FILE *out)
{
	const struct choice *choice = of;
	const struct record_list *list = &report->noise;
	const char *job = NULL;
	size_t printed = 0;

	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare);
	for (size_t i = 0; i < list->count; i++) {
		const cJSON *record = list->items[i];
		char *line;

		if (!is_wanted(choice, record))
			continue;
		printed++;
		if (choice->shown.json) {
			line = cJSON_PrintUnformatted(record);
			if (!line)
				return EXIT_FAILED;
			fprintf(out, "%s\n", line);
			free(line);
			continue;
		}
		if (!job || strcmp(job, job_of(record))) {
			char name[256];

			job = job_of(record);
			snprintf(name, sizeof(name), "%s", *job ? job : "(no name)");
			fprintf(out, "%sjob %s\n%10s %9s %9s %10s %9s %10s  %s\n", printed > 1 ? "\n" : "",
				printable(name), "stalls", "mean", "longest", "period", "time", "all ranks",
				"task; ranks; hosts");
		}
		print_component(out, record);
	}
	if (!printed && !choice->shown.json)
		fprintf(out, "no noise was recorded%s\n",
			choice->min_share > 0 ? " that took so much of the ranks' time" : "");
	return EXIT_OK;
}

static int noise__main(int argc, char **argv)
{
	struct choice choice = {0};

	return shown__main(&noise_command, &choice, &choice.shown, argc, argv, print);
}
