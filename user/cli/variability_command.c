// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro variability`: how the time of equal work varied over a run, as a table or as the records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "cli/broker_rows.h"
#include "cli/commands.h"
#include "cli/shared_rows.h"
#include "page/report_input.h"
#include "page/run_report.h"
#include "report/pager.h"
#include "report/record.h"
#include "report/variability_text.h"

enum { WIDTH_LEAST = 100 }; /* columns of the table */

struct choice {
	bool json, no_pager;
	const char *job;
	struct source_options source; /* a broker in place of files */
	int run;
	struct option_list files;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, json), .name = "json", .help = "print the records themselves"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, no_pager), .name = "no-pager",
     .help = "write to the terminal itself, also what is longer than it"},
    JOB_ROW(struct choice, job, "only this job, as records name it (all jobs)"),
    RUN_ROW(struct choice, run, "of a file that holds"),
    OPTIONS_HELP_ROW,
    FROM_ROWS(struct choice, source),
};
/* clang-format on */

static int variability__main(int argc, char **argv);

const struct command variability_command = {
    .name = "variability",
    .program = "vapro variability",
    .summary = "how the time of equal work varies: over ranks or in time, by software or hardware",
    .synopsis = "[option]... FILE...\n[option]... --broker URL [--job JOB]",
    .about =
	"Says of each workload of computation and IO, most time first, whether its time varied from rank to rank "
	"(spatial), from time to time on a rank (temporal), both, or by less than 10 % (none), and whether time that "
	"the "
	"kernel attributes (software) or counters and the CPU's frequency (hardware) explain that. The unit is a "
	"batch, "
	"the mean of at least 5 fragments of a rank. Columns: the time of all ranks; 5th to 95th percentile of the "
	"batches of a rank over their median, of the median rank (in time) and of the worst; by how much the slowest "
	"rank takes longer than the median rank; the share of the variance between ranks; varbench's RV, the kurtosis, "
	"with its error. FILE is NDJSON output of vaprod, vapro run or vapro analyze (- is standard input) that has "
	"the "
	"end of the run, a capture, or fragments as NDJSON; several files are the hosts of one run.",
    .examples = "vapro variability run.capture\ta table\n"
		"vapro variability --json run.ndjson\tthe records, with all figures",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .operands = offsetof(struct choice, files),
    .main = variability__main,
};

/* Takes the records of the chosen job out of a report, in order. Returns their number. */
static size_t choose(const struct choice *choice, const struct summary *summary, cJSON **chosen)
{
	size_t count = 0;

	for (size_t i = 0; i < summary->variability_count; i++) {
		const char *job = record__text(summary->variability[i], KEY(of_job, job));

		if (!choice->job || choice->source.broker.servers || (job && !strcmp(choice->job, job)))
			chosen[count++] = summary->variability[i];
	}
	return count;
}

/* Prints the workloads. Returns an exit code. */
static int print(const struct choice *choice, const struct run_report *report, FILE *out)
{
	const struct summary *summary = run_report__summary(report);
	cJSON **chosen = calloc(summary->variability_count + 1, sizeof(cJSON *));
	size_t count = chosen ? choose(choice, summary, chosen) : 0;
	unsigned width = terminal__width(fileno(stdout));
	int code = chosen ? EXIT_OK : EXIT_FAILED;

	if (chosen && !choice->json)
		variability_text__print(chosen, count, out, width > WIDTH_LEAST ? width : WIDTH_LEAST);
	if (chosen && !choice->json && !count)
		fputs("nothing is known of variability: no rank repeated computation or IO often enough, or the end of "
		      "the run "
		      "is not in the input\n",
		      out);
	for (size_t i = 0; !code && choice->json && i < count; i++) {
		char *line = cJSON_PrintUnformatted(chosen[i]);

		code = line ? EXIT_OK : EXIT_FAILED;
		if (line)
			fprintf(out, "%s\n", line);
		free(line);
	}
	free(chosen);
	return code;
}

/* Reads the input and prints it. Returns an exit code. */
static int show(const struct choice *choice)
{
	struct source_results results = {.file = NULL};
	const char *name;
	struct report_input input = {
	    .command = "variability", .files = choice->files.items, .count = choice->files.count, .run = choice->run};
	struct run_report report;
	char err[SOURCE_ERR];
	int code = EXIT_FAILED, ret;
	FILE *out;

	if (choice->source.broker.servers) {
		struct source_options source = choice->source;

		source.job = choice->job;
		ret = source__results(&source, &results, err, sizeof(err));
		if (ret) {
			fprintf(stderr, "vapro variability: %s\n", err);
			return broker_rows__code(ret);
		}
		name = results.job.job;
		input.files = &name;
		input.count = 1;
		input.live = results.file;
		input.bad_lines = results.bad;
	}
	if (report_input__read(&input, &report, err, sizeof(err))) {
		fprintf(stderr, "vapro variability: %s\n", err);
	} else {
		out = pager__open(!choice->no_pager);
		code = print(choice, &report, out);
		pager__close(out);
	}
	if (!code && input.bad_lines) {
		fprintf(stderr, "vapro variability: %llu bad line%s refused\n", (unsigned long long)input.bad_lines,
			input.bad_lines == 1 ? " was" : "s were");
		code = EXIT_FAILED;
	}
	run_report__free(&report);
	if (results.file)
		fclose(results.file);
	return code || input.cut ? EXIT_FAILED : EXIT_OK;
}

static int variability__main(int argc, char **argv)
{
	struct choice choice = {.run = RUN_OPTION_LAST, .source.broker.name = "vapro variability"};
	int code = command__parse(&variability_command, &choice, argc, argv);
	char err[SOURCE_ERR];

	if (!code && broker_rows__check(&choice.source, err, sizeof(err)))
		code = command__fail(&variability_command, EXIT_USAGE, "%s", err);
	if (!code && !choice.files.count == !choice.source.broker.servers)
		code = command__fail(&variability_command, EXIT_USAGE,
				     "files or --broker are needed, not both; see --help");
	if (!code)
		code = show(&choice);
	option_list__clear(&choice.files);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
