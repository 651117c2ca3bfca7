/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/file_kind.h"
#include "cli/broker_rows.h"
#include "cli/commands.h"
#include "base/exit_codes.h"
#include "query/region_option.h"
#include "report/pager.h"
#include "report/run_option.h"
#include "report/view.h"

enum {
	ROW_COLOR = 1,
	ROW_WIDTH,
	ROW_ROWS,
	ROW_CLASS,
	ROW_RUN,
	ROW_ALL,
	ROW_NO_PAGER,
	ROW_FAIL_ON,
	ROW_SORT,
	ROW_SINCE,
	ROW_UNTIL,
	ROW_JOB,
};

static const struct option_row rows[] = {
    {"color", "auto|always|never", "colours; auto = on a terminal, unless NO_COLOR is set (auto)", ROW_COLOR, 0},
    {"colour", "auto|always|never", NULL, ROW_COLOR, 0},
    {"width", "COLUMNS", "width of the maps (that of the terminal)", ROW_WIDTH, 'w'},
    {"rows", "COUNT", "most rows of a map; more ranks share rows (48)", ROW_ROWS, 0},
    {"since", "TIME", "only what is slow then, with its whole loss: " SINCE_HELP, ROW_SINCE, 'S'},
    {"until", "TIME", UNTIL_HELP, ROW_UNTIL, 'U'},
    {"sort", "rank|loss", "order of a map's rows; loss = the ranks that lost most first (rank)", ROW_SORT, 's'},
    {"class", "computation|communication|io", "only this class (computation and io)", ROW_CLASS, 0},
    {"all", NULL, "every cause and slow region, and the map of waiting", ROW_ALL, 'a'},
    {"no-pager", NULL, "write to the terminal itself, also what is longer than it", ROW_NO_PAGER, 0},
    {"run", "N", "of a file that holds several runs: 1 = the first, -1 = the last (-1)", ROW_RUN, 0},
    {"fail-on", OUTCOME_SEVERITIES, OUTCOME_HELP, ROW_FAIL_ON, 0},
    OPTIONS_HELP_ROW,
    FROM_ROWS,
    {"job", "JOB", "with --from: this job, as records name it (the only one there is)", ROW_JOB, 'j'},
};

static int view_command__main(int argc, char **argv);

const struct command view_command = {
    .name = "view",
    .program = "vapro view",
    .summary = "show causes, heat maps and regions of NDJSON output in the terminal",
    .synopsis = "[option]... FILE|-\n[option]... --from URL [--job JOB]",
    .about =
	"Prints the causes of lost time of a run, worst first, its job, heat maps (rows = ranks, columns = time) "
	"and the "
	"worst slow regions. FILE "
	"is NDJSON output of vaprod, vapro run or vapro analyze; - is standard input. With --from it is what workers "
	"have published about a job of many nodes so far.",
    .examples = "vapro view run.ndjson\tmaps and regions\n"
		"vapro view --all --class communication run.ndjson\tall of it, and the waiting\n"
		"vapro view --from nats://broker --job slurm:123.0\ta job of many nodes, also while it runs",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = view_command__main,
};

#define COUNT_MOST 1000000
#define COUNT_RANGE "1 to 1000000"

static bool parse_count(const char *text, unsigned *count)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || !number || number > COUNT_MOST)
		return false;
	*count = (unsigned)number;
	return true;
}

/* The options of the command line. */
struct choice {
	struct view_options view;
	struct outcome_limit limit;
	struct time_option time;
	struct source_options source;
	const char *file;
	bool pager;
};

/* Returns what is expected in place of an option's value, or NULL where the value is valid. */
static const char *set(struct choice *choice, int id, const char *value)
{
	struct view_options *view = &choice->view;

	if (from_rows__set(&choice->source, id, value))
		return NULL;
	switch (id) {
	case ROW_SINCE:
		choice->time.since = value;
		return NULL;
	case ROW_UNTIL:
		choice->time.until = value;
		return NULL;
	case ROW_ALL:
		view->all = true;
		return NULL;
	case ROW_NO_PAGER:
		choice->pager = false;
		return NULL;
	case ROW_JOB:
		choice->source.job = value;
		return *value ? NULL : "a job";
	case ROW_COLOR:
		return view__parse_color(value, &view->color) ? NULL : "auto, always or never";
	case ROW_WIDTH:
		return parse_count(value, &view->width) ? NULL : COUNT_RANGE;
	case ROW_ROWS:
		return parse_count(value, &view->rows) ? NULL : COUNT_RANGE;
	case ROW_SORT:
		view->by_loss = !strcmp(value, "loss");
		return view->by_loss || !strcmp(value, "rank") ? NULL : "rank or loss";
	case ROW_CLASS:
		view->class = value;
		return !strcmp(value, "computation") || !strcmp(value, "communication") || !strcmp(value, "io")
			   ? NULL
			   : "computation, communication or io";
	case ROW_FAIL_ON:
		return outcome__parse(value, &choice->limit) ? OUTCOME_EXPECTED : NULL;
	default:
		return run_option__parse(value, &view->run) ? NULL : RUN_OPTION_RANGE;
	}
}

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
	if (from_rows__check(&choice->source, err, err_size))
		return -EINVAL;
	if (choice->source.broker.servers && choice->file)
		snprintf(err, err_size, "a file or --from is read, not both");
	else if (choice->source.job && !choice->source.broker.servers)
		snprintf(err, err_size, "--job needs --from URL: the brokers from which the job is read");
	else if (!choice->file && !choice->source.broker.servers)
		snprintf(err, err_size, "a file of NDJSON output is needed (or -), or --from; see --help");
	else
		return 0;
	return -EINVAL;
}

/* Shows what the command line names. Returns 0 or a negative errno with a sentence in err. */
static int show(const struct choice *choice, struct source_results *results, uint64_t *bad_lines, char *err,
		size_t err_size)
{
	FILE *out = pager__open(choice->pager);
	int ret = results->file
		      ? view__stream(results->file, results->job.job, &choice->view, out, bad_lines, err, err_size)
		      : view__file(choice->file, &choice->view, out, bad_lines, err, err_size);

	pager__close(out);
	return ret;
}

/* Opens what is read, and shows it. Returns an exit code. */
static int view(struct choice *choice)
{
	struct outcome outcome = {.rank_seconds = 0};
	struct source_results results = {.file = NULL};
	uint64_t bad_lines = 0;
	char err[SOURCE_ERR];
	int status, code;

	choice->view.outcome = &outcome;
	if (choice->file && file_kind__expect(choice->file, FILE_KIND_RECORDS, err, sizeof(err))) {
		fprintf(stderr, "vapro view: %s\n", err);
		return EXIT_FAILED;
	}
	status = choice->file ? 0 : source__results(&choice->source, &results, err, sizeof(err));
	if (status) {
		fprintf(stderr, "vapro view: %s\n", err);
		return from_rows__code(status);
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
	struct options options = command__options(&view_command, argc, argv);
	struct choice choice = {.pager = true, .source.broker.name = "vapro view"};
	const char *expected;
	char err[SOURCE_ERR];
	int id;

	while ((id = options__next(&options)) != OPTIONS_END) {
		if (id == OPTIONS_HELP)
			return command__help(&view_command, options.value, stdout);
		if (id == OPTIONS_ERROR)
			return EXIT_USAGE;
		if (id == OPTIONS_OPERAND && choice.file) {
			fprintf(stderr, "vapro view: one file is expected, not also '%s'\n", options.value);
			return EXIT_USAGE;
		}
		if (id == OPTIONS_OPERAND) {
			choice.file = options.value;
			continue;
		}
		expected = set(&choice, id, options.value);
		if (expected) {
			fprintf(stderr, "vapro view: --%s: '%s' is invalid; expected %s\n", options.name, options.value,
				expected);
			return EXIT_USAGE;
		}
	}
	if (check(&choice, err, sizeof(err)) || choose_time(&choice.time, &choice.view, err, sizeof(err))) {
		fprintf(stderr, "vapro view: %s\n", err);
		return EXIT_USAGE;
	}
	return view(&choice);
}
