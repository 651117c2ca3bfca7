/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/file_kind.h"
#include "cli/broker_rows.h"
#include "cli/commands.h"
#include "cli/shared_rows.h"
#include "base/exit_codes.h"
#include "query/region_option.h"
#include "report/pager.h"
#include "report/view.h"

/* The options of the command line. */
struct choice {
	struct view_options view;
	struct outcome_limit limit;
	struct time_option time;
	struct source_options source;
	struct option_list files;
	enum { BY_RANK, BY_LOSS } sort;
	bool no_pager;
};

#define COUNT_MOST 1000000

/* clang-format off */
/* words are in the order of their enum */
static const struct option_row rows[] = {
    {.type = OPTION_WORD, OPTION_AT(struct choice, view.color), .name = "color", .words = "auto|always|never",
     .help = "colours; auto = on a terminal, unless NO_COLOR is set (auto)"},
    OPTION_ALIAS_ROW("colour", "color"),
    {.type = OPTION_INT, OPTION_AT(struct choice, view.width), .name = "width", .letter = 'w', .value = "COLUMNS",
     .min = 1, .max = COUNT_MOST, .help = "width of the maps (that of the terminal)"},
    {.type = OPTION_INT, OPTION_AT(struct choice, view.rows), .name = "rows", .value = "COUNT", .min = 1,
     .max = COUNT_MOST, .help = "most rows of a map; more ranks share rows (48)"},
    SINCE_ROW(struct choice, time, "only what is slow then, with its whole loss: " SINCE_HELP),
    UNTIL_ROW(struct choice, time),
    {.type = OPTION_WORD, OPTION_AT(struct choice, sort), .name = "sort", .letter = 's', .words = "rank|loss",
     .help = "order of a map's rows; loss = the ranks that lost most first (rank)"},
    {.type = OPTION_CHOICE, OPTION_AT(struct choice, view.class), .name = "class",
     .words = "computation|communication|io", .help = "only this class (computation and io)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, view.all), .name = "all", .letter = 'a',
     .help = "every cause and slow region, and the map of waiting"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, no_pager), .name = "no-pager",
     .help = "write to the terminal itself, also what is longer than it"},
    RUN_ROW(struct choice, view.run, "of a file that holds"),
    FAIL_ON_ROW(struct choice, limit),
    OPTIONS_HELP_ROW,
    FROM_ROWS(struct choice, source),
    JOB_ROW(struct choice, source.job, "with --broker: this job, as records name it (the only one there is)"),
};
/* clang-format on */

static int view_command__main(int argc, char **argv);

const struct command view_command = {
    .name = "view",
    .program = "vapro view",
    .summary = "show causes, heat maps and regions of NDJSON output in the terminal",
    .synopsis = "[option]... FILE|-\n[option]... --broker URL [--job JOB]",
    .about =
	"Prints the causes of lost time of a run, worst first, its job, heat maps (rows = ranks, columns = time) "
	"and the "
	"worst slow regions. FILE "
	"is NDJSON output of vaprod, vapro run or vapro analyze; - is standard input. With --broker it is what workers "
	"have published about a job of many nodes so far.",
    .examples = "vapro view run.ndjson\tmaps and regions\n"
		"vapro view --all --class communication run.ndjson\tall of it, and the waiting\n"
		"vapro view --broker nats://broker --job slurm:123.0\ta job of many nodes, also while it runs",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .operands = offsetof(struct choice, files),
    .main = view_command__main,
};

/* Reads the time to be shown. Returns 0, or -EINVAL with a sentence in err. */
static int choose_time(const struct time_option *time, struct view_options *view, char *err, size_t err_size)
{
	struct region_option region;
	char text[256];

	if (!time->since && !time->until)
		return 0;
	if (region_option__span(&region, NULL, time, text, sizeof(text), err, err_size))
		return -EINVAL;
	view->relative = region.relative;
	view->since_ns = region.begin_ns;
	view->until_ns = region.end_ns;
	return 0;
}

/* Checks that one input is named. Returns 0, or -EINVAL with a sentence in err. */
static int check(const struct choice *choice, char *err, size_t err_size)
{
	const char *servers = choice->source.broker.servers;

	if (broker_rows__check(&choice->source, err, err_size))
		return -EINVAL;
	if (choice->files.count > 1)
		snprintf(err, err_size, "one file is expected, not also '%s'", choice->files.items[1]);
	else if (servers && choice->files.count)
		snprintf(err, err_size, "a file or --broker is read, not both");
	else if (choice->source.job && !servers)
		snprintf(err, err_size, "--job needs --broker URL: the brokers from which the job is read");
	else if (!choice->files.count && !servers)
		snprintf(err, err_size, "a file of NDJSON output is needed (or -), or --broker; see --help");
	else
		return 0;
	return -EINVAL;
}

/* Shows what the command line names. Returns 0 or a negative errno with a sentence in err. */
static int show(const struct choice *choice, struct source_results *results, uint64_t *bad_lines, char *err,
		size_t err_size)
{
	FILE *out = pager__open(!choice->no_pager);
	int ret = results->file
		      ? view__stream(results->file, results->job.job, &choice->view, out, bad_lines, err, err_size)
		      : view__file(choice->files.items[0], &choice->view, out, bad_lines, err, err_size);

	pager__close(out);
	return ret;
}

/* Opens what is read, and shows it. Returns an exit code. */
static int view(struct choice *choice)
{
	struct outcome outcome = {.rank_seconds = 0};
	struct source_results results = {.file = NULL};
	bool file = choice->files.count;
	uint64_t bad_lines = 0;
	char err[SOURCE_ERR];
	int status, code;

	choice->view.outcome = &outcome;
	if (file && file_kind__expect(choice->files.items[0], FILE_KIND_RECORDS, err, sizeof(err))) {
		fprintf(stderr, "vapro view: %s\n", err);
		return EXIT_FAILED;
	}
	status = file ? 0 : source__results(&choice->source, &results, err, sizeof(err));
	if (status) {
		fprintf(stderr, "vapro view: %s\n", err);
		return broker_rows__code(status);
	}
	/* what the terminal is like counts, not the pipe to the pager */
	view__finalize(&choice->view, stdout);
	status = show(choice, &results, &bad_lines, err, sizeof(err));
	if (results.file)
		fclose(results.file);
	if (status)
		fprintf(stderr, "vapro view: %s\n", err);
	if (results.bad)
		fprintf(stderr, "vapro view: %llu lines of the stream are no records of a worker\n",
			(unsigned long long)results.bad);
	if (bad_lines || results.bad || (status && status != -ENODATA))
		return EXIT_FAILED;
	code = outcome__code(&outcome, &choice->limit, err, sizeof(err));
	if (code)
		fprintf(stderr, "vapro view: %s\n", err);
	return code ? code : status ? EXIT_FAILED : EXIT_OK;
}

static int view_command__main(int argc, char **argv)
{
	struct choice choice = {.source.broker.name = "vapro view"};
	char err[SOURCE_ERR];
	int code = command__parse(&view_command, &choice, argc, argv);

	choice.view.by_loss = choice.sort == BY_LOSS;
	if (!code && (check(&choice, err, sizeof(err)) || choose_time(&choice.time, &choice.view, err, sizeof(err))))
		code = command__fail(&view_command, EXIT_USAGE, "%s", err);
	if (!code)
		code = view(&choice);
	option_list__clear(&choice.files);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
