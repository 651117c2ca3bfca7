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
#include "cli/diff_read.h"
#include "compare/compare.h"
#include "report/run_option.h"

#define WIDTH 100

enum { ROW_FORMAT = 1, ROW_JSON, ROW_THRESHOLD, ROW_ALL, ROW_RANK, ROW_RUN, ROW_FAIL_ON };

static const struct option_row rows[] = {
    {"threshold", "PERCENT", "least change that is worth reporting (3%)", ROW_THRESHOLD, 0},
    {"all", NULL, "also what did not change, and all rows of long tables", ROW_ALL, 0},
    {"rank", "N", "of one rank only, and of the job", ROW_RANK, 'r'},
    {"run", "N[,M]", "of files that hold several runs: 1 = the first, -1 = the last; N of A and M of B (-1)", ROW_RUN,
     0},
    {"json", NULL, "records of type diff, one a line", ROW_JSON, 0},
    {"fail-on", "slower|never", "slower: exit with 7 where something became slower (never)", ROW_FAIL_ON, 0},
    {"format", "capture|ndjson",
     "what the files are: ndjson: fragments, as vapro analyze reads them (as the first file begins)", ROW_FORMAT, 0},
    OPTIONS_HELP_ROW,
};

static int diff__main(int argc, char **argv);

const struct command diff_command = {
    .name = "diff",
    .program = "vapro diff",
    .summary = "compare two runs: which ranks, hosts and states became slower",
    .synopsis = "[option]... A B",
    .about =
	"Compares two runs of a program: which ranks, hosts and states became slower or faster from A to B, by how "
	"much, and how sure that is. A and B are captures (vaprod --capture), fragments as NDJSON, or the output of "
	"vaprod, which shows less. Of several hosts: a directory with their files, or the files joined by commas.",
    .examples = "vapro diff monday.capture tuesday.capture\twhat became slower since\n"
		"vapro diff --run 1,2 nightly.capture nightly.capture\ttwo runs in one file\n"
		"vapro diff --fail-on slower --threshold 5% good.capture new.capture\tin a script: exit code 7",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = diff__main,
};

struct choice {
	double threshold;
	bool json, all, fail_on_slower;
	int rank, run[2];
	enum diff_input input;
	const char *operands[2];
	int count;
};

static int wrong(const char *option, const char *what, const char *value)
{
	fprintf(stderr, "vapro diff: --%s: invalid %s '%s'\n", option, what, value);
	return -EINVAL;
}

/* Reads 3%, 3 (percent, too). */
static int set_threshold(struct choice *choice, const char *value)
{
	char *end;
	double percent = strtod(value, &end);

	if (end == value || (*end && strcmp(end, "%")) || !(percent > 0 && percent <= 1000))
		return wrong("threshold", "percentage", value);
	choice->threshold = percent / 100;
	return 0;
}

static int set_runs(struct choice *choice, const char *value)
{
	const char *comma = strchr(value, ',');
	char first[32];

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(value, ","), value);
	if (!run_option__parse(first, &choice->run[0]) ||
	    !run_option__parse(comma ? comma + 1 : first, &choice->run[1]))
		return wrong("run", "run number", value);
	return 0;
}

static int set_rank(struct choice *choice, const char *value)
{
	char *end;
	long rank = strtol(value, &end, 10);

	if (end == value || *end || rank < 0 || rank > INT32_MAX)
		return wrong("rank", "rank", value);
	choice->rank = (int)rank;
	return 0;
}

/* Applies an option. Returns 0, or -EINVAL after reporting it. */
static int set(struct choice *choice, int id, const char *value)
{
	switch (id) {
	case ROW_THRESHOLD:
		return set_threshold(choice, value);
	case ROW_ALL:
		choice->all = true;
		return 0;
	case ROW_RANK:
		return set_rank(choice, value);
	case ROW_RUN:
		return set_runs(choice, value);
	case ROW_JSON:
		choice->json = true;
		return 0;
	case ROW_FAIL_ON:
		choice->fail_on_slower = !strcmp(value, "slower");
		return choice->fail_on_slower || !strcmp(value, "never") ? 0 : wrong("fail-on", "condition", value);
	case ROW_FORMAT:
		choice->input = !strcmp(value, "capture") ? DIFF_CAPTURE : DIFF_FRAGMENTS;
		return choice->input == DIFF_CAPTURE || !strcmp(value, "ndjson") ? 0 : wrong("format", "format", value);
	case OPTIONS_OPERAND:
		if (choice->count < 2)
			choice->operands[choice->count] = value;
		choice->count++;
		return 0;
	default:
		return -EINVAL;
	}
}

static unsigned width_of(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	unsigned width = columns ? (unsigned)strtoul(columns, NULL, 10) : 0;
	struct winsize size;

	if (!width && isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size))
		width = size.ws_col;
	return !width ? WIDTH : width < 40 ? 40 : width;
}

static int print(const struct choice *choice, const struct diff_run *runs, const struct comparison *found)
{
	const struct diff_report report = {
	    .found = found,
	    .name = {choice->operands[0], choice->operands[1]},
	    .host = {runs[0].host, runs[1].host},
	    .records = {runs[0].input == DIFF_RECORDS ? &runs[0].records : NULL,
			runs[1].input == DIFF_RECORDS ? &runs[1].records : NULL},
	    .threshold = choice->threshold,
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
	if (!choice->json)
		diff_report__text(&report, stdout);
	else if (diff_report__json(&report, stdout))
		return EXIT_FAILED;
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "vapro diff: the result could not be written: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return choice->fail_on_slower && diff_report__slower(&report) ? EXIT_SLOWER : EXIT_OK;
}

/* Reads both runs, compares and prints. Returns an exit code. */
static int diff(const struct choice *choice)
{
	const struct compare_options options = {.threshold = choice->threshold};
	struct diff_run runs[2] = {{0}, {0}};
	struct comparison found = {0};
	int status = EXIT_FAILED, error = 0;
	char err[512] = "";

	for (int i = 0; !error && i < 2; i++)
		error = diff_run__open(&runs[i], choice->operands[i], choice->input, err, sizeof(err));
	if (!error && (runs[0].input == DIFF_RECORDS) != (runs[1].input == DIFF_RECORDS)) {
		snprintf(err, sizeof(err),
			 "%s is the output of vaprod, and %s holds fragments: give two captures, or two outputs",
			 choice->operands[runs[0].input == DIFF_RECORDS ? 0 : 1],
			 choice->operands[runs[0].input == DIFF_RECORDS ? 1 : 0]);
		error = -EINVAL;
	}
	for (int i = 0; !error && i < 2; i++)
		error = diff_run__read(&runs[i], choice->run[i], err, sizeof(err));
	if (!error)
		error = compare__runs(&found, runs[0].profile, runs[1].profile, &options, err, sizeof(err));
	if (error)
		fprintf(stderr, "vapro diff: %s\n", err);
	else
		status = print(choice, runs, &found);
	compare__clear(&found);
	diff_run__close(&runs[0]);
	diff_run__close(&runs[1]);
	return status;
}

static int diff__main(int argc, char **argv)
{
	struct options options = command__options(&diff_command, argc, argv);
	struct choice choice = {
	    .threshold = 0.03, .rank = COMPARE_ALL, .run = {RUN_OPTION_LAST, RUN_OPTION_LAST}, .input = DIFF_UNKNOWN};
	int id;

	while ((id = options__next(&options)) != OPTIONS_END) {
		if (id == OPTIONS_HELP)
			return command__help(&diff_command, options.value, stdout);
		if (id == OPTIONS_ERROR || set(&choice, id, options.value))
			return EXIT_USAGE;
	}
	if (choice.count != 2) {
		fprintf(stderr,
			"vapro diff: two runs are needed, A and B, and %d given; several hosts' files of a run are "
			"joined by "
			"commas, or in a directory\n",
			choice.count);
		return EXIT_USAGE;
	}
	return diff(&choice);
}
