// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro noise`: the noise components of a run, as a table or as their records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit_codes.h"
#include "base/printable.h"
#include "cli/broker_rows.h"
#include "cli/commands.h"
#include "cli/shared_rows.h"
#include "page/report_input.h"
#include "page/run_report.h"
#include "report/noise_text.h"
#include "report/pager.h"
#include "report/record.h"

struct choice {
	bool json, no_pager;
	double min_share;
	const char *job;
	struct source_options source; /* a broker in place of files */
	int run;
	struct option_list files;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, json), .name = "json",
     .help = "print the records themselves, the latest of each component"},
    {.type = OPTION_SHARE, OPTION_AT(struct choice, min_share), .name = "min-share", .value = "SHARE", .max = 1,
     .help = "only components that took so much of the time of the ranks that they hit (0%)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, no_pager), .name = "no-pager",
     .help = "write to the terminal itself, also what is longer than it"},
    JOB_ROW(struct choice, job, "only this job, as records name it (all jobs)"),
    RUN_ROW(struct choice, run, "of a file that holds"),
    OPTIONS_HELP_ROW,
    FROM_ROWS(struct choice, source),
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
	"these, in stays too short to be slow regions. For each: number of stays, mean and longest one, how often a "
	"rank was hit (the time in which it was observed, divided by their number), the share of the ranks' time, the "
	"time of all ranks, the ranks and hosts that lost most. FILE is NDJSON output of vaprod, vapro run or vapro "
	"analyze (- is standard input), a capture, or fragments as NDJSON; several files are the hosts of one run. "
	"Components of less than noise-share (0.5 %) of a thread's time are not recorded.",
    .examples = "vapro noise run.ndjson\ta table, most time first\n"
		"vapro noise --json run.capture\tthe records of a capture's replay",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .operands = offsetof(struct choice, files),
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

	noise_text__task(record__text(record, KEY(noise, what)), record__text(record, KEY(noise, relation)),
			 record__uint(record, KEY(noise, pid)), task);
	name_hosts(record, hosts, sizeof(hosts));
	fprintf(out, "%10llu %9s %9s %10s %7.2f %% %10s  %s; rank%s %s; %s\n",
		(unsigned long long)record__uint(record, KEY(noise, n)),
		duration__text(record__number(record, KEY(noise, mean_us), 0) / 1e6, mean, sizeof(mean)),
		duration__text(record__number(record, KEY(noise, longest_us), 0) / 1e6, longest, sizeof(longest)),
		duration__text(record__number(record, KEY(noise, period_ms), 0) / 1e3, period, sizeof(period)),
		record__number(record, KEY(noise, time_pct_of_ranks), 0),
		duration__text(record__number(record, KEY(noise, lost_seconds), 0), lost, sizeof(lost)), task,
		ranks && strpbrk(ranks, ",-") ? "s" : "", ranks ? ranks : "?", hosts);
}

static bool is_wanted(const struct choice *choice, const cJSON *record)
{
	return record__number(record, KEY(noise, time_pct_of_ranks), 0) >= 100 * choice->min_share &&
	       (!choice->job || choice->source.broker.servers || !strcmp(choice->job, job_of(record)));
}

/* Prints the components. Returns 0 or an exit code. */
static int print(const struct choice *choice, const struct record_list *list, FILE *out)
{
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
		if (choice->json) {
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
	if (!printed && !choice->json)
		fprintf(out, "no noise was recorded%s\n",
			choice->min_share > 0 ? " that took so much of the ranks' time" : "");
	return EXIT_OK;
}

/* Reads the input and prints its components. Returns an exit code. */
static int show(const struct choice *choice)
{
	struct source_results results = {.file = NULL};
	const char *name;
	struct report_input input = {
	    .command = "noise", .files = choice->files.items, .count = choice->files.count, .run = choice->run};
	struct run_report report;
	char err[SOURCE_ERR];
	int code = EXIT_FAILED, ret;
	FILE *out;

	if (choice->source.broker.servers) {
		struct source_options source = choice->source;

		source.job = choice->job;
		ret = source__results(&source, &results, err, sizeof(err));
		if (ret) {
			fprintf(stderr, "vapro noise: %s\n", err);
			return broker_rows__code(ret);
		}
		name = results.job.job;
		input.files = &name;
		input.count = 1;
		input.live = results.file;
		input.bad_lines = results.bad;
	}
	if (report_input__read(&input, &report, err, sizeof(err))) {
		fprintf(stderr, "vapro noise: %s\n", err);
	} else {
		out = pager__open(!choice->no_pager);
		code = print(choice, &report.noise, out);
		pager__close(out);
	}
	if (!code && input.bad_lines) {
		fprintf(stderr, "vapro noise: %llu bad line%s refused\n", (unsigned long long)input.bad_lines,
			input.bad_lines == 1 ? " was" : "s were");
		code = EXIT_FAILED;
	}
	run_report__free(&report);
	if (results.file)
		fclose(results.file);
	return code || input.cut ? EXIT_FAILED : EXIT_OK;
}

static int noise__main(int argc, char **argv)
{
	struct choice choice = {.run = RUN_OPTION_LAST, .source.broker.name = "vapro noise"};
	int code = command__parse(&noise_command, &choice, argc, argv);
	char err[SOURCE_ERR];

	if (!code && broker_rows__check(&choice.source, err, sizeof(err)))
		code = command__fail(&noise_command, EXIT_USAGE, "%s", err);
	if (!code && !choice.files.count == !choice.source.broker.servers)
		code = command__fail(&noise_command, EXIT_USAGE, "files or --broker are needed, not both; see --help");
	if (!code)
		code = show(&choice);
	option_list__clear(&choice.files);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
