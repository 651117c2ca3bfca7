// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro diff`: what became slower from one run to another. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/exit_codes.h"
#include "cli/commands.h"
#include "cli/diff_run.h"
#include "cli/report_output.h"
#include "cli/shared_rows.h"
#include "compare/compare.h"
#include "report/diff_page.h"

#define WIDTH 100

struct choice {
	double threshold_pct;
	bool json, all;
	const char *html;
	FILE *page; /* NULL: none is written */
	enum { FAIL_NEVER, FAIL_SLOWER } fail_on;
	int rank, run[2];
	enum diff_input input;
	struct option_list operands;
};

/* Reads N, or N of A and M of B. */
static int read_runs(void *member, const char *value, char *why, size_t why_size)
{
	const char *comma = strchr(value, ',');
	char first[32];
	int *runs = member;

	(void)why;
	(void)why_size;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(value, ","), value);
	return run_option__parse(first, &runs[0]) && run_option__parse(comma ? comma + 1 : first, &runs[1]) ? 0
													    : -EINVAL;
}

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_PERCENT, OPTION_AT(struct choice, threshold_pct), .name = "threshold", .min = 1e-6, .max = 1000,
     .expected = "more than 0%, up to 1000%", .help = "least change that is worth reporting (3%)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, all), .name = "all",
     .help = "also what did not change, and all rows of long tables"},
    RANK_ROW(struct choice, rank, "of one rank only, and of the job"),
    {.type = OPTION_CUSTOM, OPTION_AT(struct choice, run), .name = "run", .value = "N[,M]", .noun = "run",
     .expected = RUN_OPTION_RANGE, .read = read_runs,
     .help = "of files that hold several runs: 1 = the first, -1 = the last; N of A and M of the others (-1)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, json), .name = "json", .help = "records of type diff, one a line"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, html), .name = "html", .value = "FILE|-",
     .help = "write a page for people in place of the text; - is standard output"},
    {.type = OPTION_WORD, OPTION_AT(struct choice, fail_on), .name = "fail-on", .words = "never|slower",
     .help = "slower: exit with 7 where something became slower (never)"},
    {.type = OPTION_WORD, OPTION_AT(struct choice, input), .name = "format", .words = "capture|ndjson",
     .help = "what the files are: ndjson: fragments, as vapro analyze reads them (as the first file begins)"},
    OPTIONS_HELP_ROW,
};
/* clang-format on */

static int diff__main(int argc, char **argv);

const struct command diff_command = {
    .name = "diff",
    .program = "vapro diff",
    .summary = "compare two runs: which ranks, hosts and states became slower",
    .synopsis = "[option]... A B...",
    .about =
	"Compares two runs of a program: which ranks, hosts and states became slower or faster from A to B, by how "
	"much, and how sure that is; of more than two runs each further one with A (vapro runs says which of many is "
	"outlying). A and B are captures (vaprod --capture), fragments as NDJSON, or the output of "
	"vaprod, which shows less. Of several hosts: a directory with their files, or the files joined by commas.",
    .examples = "vapro diff monday.capture tuesday.capture\twhat became slower since\n"
		"vapro diff --run 1,2 nightly.capture nightly.capture\ttwo runs in one file\n"
		"vapro diff --html diff.html monday.capture tuesday.capture\tas a page\n"
		"vapro diff --fail-on slower --threshold 5% good.capture new.capture\tin a script: exit code 7",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .operands = offsetof(struct choice, operands),
    .main = diff__main,
};

static unsigned width_of(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	unsigned width = columns ? (unsigned)strtoul(columns, NULL, 10) : 0;
	struct winsize size;

	if (!width && isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size))
		width = size.ws_col;
	return !width ? WIDTH : width < 40 ? 40 : width;
}

static int print(const struct choice *choice, const struct diff_run *a, const struct diff_run *b,
		 const struct comparison *found)
{
	const struct diff_report report = {
	    .found = found,
	    .name = {a->operand, b->operand},
	    .host = {a->host, b->host},
	    .records = {a->input == DIFF_RECORDS ? &a->records : NULL, b->input == DIFF_RECORDS ? &b->records : NULL},
	    .threshold = choice->threshold_pct / 100,
	    .rank = choice->rank,
	    .all = choice->all,
	    .width = width_of(stdout),
	};
	bool known = choice->rank == COMPARE_ALL;

	for (uint32_t i = 0; !known && i < found->unit_count; i++)
		known = found->units[i].number == choice->rank;
	if (!known) {
		fprintf(stderr, "vapro diff: --rank %d: the runs have no such %s in common\n", choice->rank,
			diff_report__unit_word(found));
		return EXIT_FAILED;
	}
	if (choice->page) {
		if (diff_page__add(&report, choice->page)) {
			fprintf(stderr, "vapro diff: out of memory\n");
			return EXIT_FAILED;
		}
	} else if (!choice->json) {
		diff_report__text(&report, stdout);
	} else if (diff_report__json(&report, stdout)) {
		return EXIT_FAILED;
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "vapro diff: the result could not be written: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return choice->fail_on == FAIL_SLOWER && diff_report__slower(&report) ? EXIT_SLOWER : EXIT_OK;
}

/* Reads a run. Returns 0 or a negative errno with a sentence in err. */
static int read_run(const struct choice *choice, size_t operand, struct diff_run *run, char *err, size_t err_size)
{
	int error = diff_run__open(run, "diff", choice->operands.items[operand], choice->input, err, err_size);

	return error ? error : diff_run__read(run, choice->run[operand > 0], err, err_size);
}

/* Reads a run B, compares A with it and prints. Returns an exit code. */
static int diff_with(const struct choice *choice, const struct diff_run *a, size_t operand)
{
	const struct compare_options options = {.threshold = choice->threshold_pct / 100};
	struct diff_run b = {0};
	struct comparison found = {0};
	char err[512] = "";
	int status = EXIT_FAILED, error = read_run(choice, operand, &b, err, sizeof(err));

	if (!error && (a->input == DIFF_RECORDS) != (b.input == DIFF_RECORDS)) {
		snprintf(err, sizeof(err),
			 "%s is the output of vaprod, and %s holds fragments: give captures only, or outputs only",
			 a->input == DIFF_RECORDS ? a->operand : b.operand,
			 a->input == DIFF_RECORDS ? b.operand : a->operand);
		error = -EINVAL;
	}
	if (!error)
		error = compare__runs(&found, a->profile, b.profile, &options, err, sizeof(err));
	if (error)
		fprintf(stderr, "vapro diff: %s%s%s\n",
			choice->operands.count > 2 ? choice->operands.items[operand] : "",
			choice->operands.count > 2 ? ": " : "", err);
	else
		status = print(choice, a, &b, &found);
	compare__clear(&found);
	diff_run__close(&b);
	return status;
}

/* Compares the first run with each of the others. Returns an exit code: that of a failure before others. */
static int diff(const struct choice *choice)
{
	struct diff_run a = {0};
	char err[512] = "";
	int status = EXIT_OK;

	if (read_run(choice, 0, &a, err, sizeof(err))) {
		fprintf(stderr, "vapro diff: %s\n", err);
		diff_run__close(&a);
		return EXIT_FAILED;
	}
	for (size_t i = 1; i < choice->operands.count; i++) {
		int code;

		if (i > 1 && !choice->json && !choice->page)
			putchar('\n');
		code = diff_with(choice, &a, i);
		if (code == EXIT_FAILED || status == EXIT_OK)
			status = code;
	}
	diff_run__close(&a);
	return status;
}

/* The same, into the file of a page where one is wanted. */
static int write_diff(struct choice *choice)
{
	int code;

	if (!choice->html)
		return diff(choice);
	choice->page = report_output__open("diff", choice->html, DIFF_PAGE_BEGIN);
	if (!choice->page)
		return EXIT_FAILED;
	diff_page__begin(choice->page);
	code = diff(choice);
	diff_page__end(choice->page);
	return report_output__close("diff", choice->page, choice->html, 0) ? EXIT_FAILED : code;
}

static int diff__main(int argc, char **argv)
{
	struct choice choice = {
	    .threshold_pct = 3, .rank = COMPARE_ALL, .run = {RUN_OPTION_LAST, RUN_OPTION_LAST}, .input = DIFF_UNKNOWN};
	int code = command__parse(&diff_command, &choice, argc, argv);

	if (!code && choice.operands.count < 2)
		code = command__fail(
		    &diff_command, EXIT_USAGE,
		    "two runs or more are needed, A and B, and %zu given; several hosts' files of a run are "
		    "joined by commas, or in a directory",
		    choice.operands.count);
	if (!code && choice.html && choice.json)
		code = command__fail(&diff_command, EXIT_USAGE, "--json and --html are outputs: choose one");
	if (!code)
		code = write_diff(&choice);
	option_list__clear(&choice.operands);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
