// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro variability`: how the time of equal work varied over a run, as a table or as the records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job_names.h"
#include "base/exit_codes.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "cli/shared_rows.h"
#include "cli/shown.h"
#include "page/run_report.h"
#include "report/record.h"
#include "report/variability_text.h"

enum { WIDTH_LEAST = 100 }; /* columns of the table */

struct choice {
	struct shown shown;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, shown.json), .name = "json", .help = "print the records themselves"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, shown.no_pager), .name = "no-pager",
     .help = "write to the terminal itself, also what is longer than it"},
    JOB_ROW(struct choice, shown.job, "only this job, as records name it (all jobs)"),
    RUN_ROW(struct choice, shown.run, "of a file that holds"),
    OPTIONS_HELP_ROW,
    FROM_ROWS(struct choice, shown.source),
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
    .operands = offsetof(struct choice, shown.files),
    .main = variability__main,
};

/* Takes the records of the chosen job out of a report, in order. Returns their number. */
static size_t choose(const struct choice *choice, const struct summary *summary, cJSON **chosen)
{
	size_t count = 0;

	for (size_t i = 0; i < summary->variability_count; i++) {
		const char *job = record__text(summary->variability[i], KEY(of_job, job));

		if (choice->shown.source.broker.servers || job_names__match(choice->shown.job, job))
			chosen[count++] = summary->variability[i];
	}
	return count;
}

/* Prints the workloads. Returns an exit code. */
static int print(const void *of, const struct run_report *report, FILE *out)
{
	const struct choice *choice = of;
	const struct summary *summary = run_report__summary(report);
	cJSON **chosen = calloc(summary->variability_count + 1, sizeof(cJSON *));
	size_t count = chosen ? choose(choice, summary, chosen) : 0;
	unsigned width = terminal__width(fileno(stdout));
	int code = chosen ? EXIT_OK : EXIT_FAILED;

	if (chosen && !choice->shown.json)
		variability_text__print(chosen, count, out, width > WIDTH_LEAST ? width : WIDTH_LEAST);
	if (chosen && !choice->shown.json && !count)
		fputs("nothing is known of variability: no rank repeated computation or IO often enough, or the end of "
		      "the run "
		      "is not in the input\n",
		      out);
	for (size_t i = 0; !code && choice->shown.json && i < count; i++) {
		char *line = cJSON_PrintUnformatted(chosen[i]);

		code = line ? EXIT_OK : EXIT_FAILED;
		if (line)
			fprintf(out, "%s\n", line);
		free(line);
	}
	free(chosen);
	return code;
}

static int variability__main(int argc, char **argv)
{
	struct choice choice = {0};

	return shown__main(&variability_command, &choice, &choice.shown, argc, argv, print);
}
