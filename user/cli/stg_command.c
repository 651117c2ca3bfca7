// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro stg`: the command line around stg_view. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/terminal.h"
#include "capture/file_kind.h"
#include "cli/commands.h"
#include "base/exit_codes.h"
#include "cli/stg_view.h"
#include "report/pager.h"
#include "report/run_option.h"

enum { ROW_DOT = 1, ROW_JSON, ROW_RANK, ROW_RUN, ROW_ALL, ROW_NO_PAGER };

static const struct option_row rows[] = {
    {"dot", NULL, "as Graphviz DOT: vapro stg --dot FILE | dot -Tsvg > stg.svg", ROW_DOT, 0},
    {"json", NULL, "one state per line: call-sites, their lines, labels, n, seconds, bytes, clusters", ROW_JSON, 0},
    {"all", NULL, "also states inside MPI's own libraries (libpmix, libevent, ...)", ROW_ALL, 'a'},
    {"no-pager", NULL, "write to the terminal itself, also what is longer than it", ROW_NO_PAGER, 0},
    {"rank", "N", "of one rank only", ROW_RANK, 'r'},
    {"run", "N", "of a capture that holds several runs: 1 = the first, -1 = the last (-1)", ROW_RUN, 0},
    OPTIONS_HELP_ROW,
};

static int stg__main(int argc, char **argv);

const struct command stg_command = {
    .name = "stg",
    .program = "vapro stg",
    .summary = "show the State Transition Graph of a capture, as a table or for dot(1)",
    .synopsis = "[option]... CAPTURE...",
    .about = "Shows the State Transition Graph of a capture (vaprod --capture FILE): call-sites, the computation "
	     "between them, how often, how long, how many clusters their workloads form (bytes of calls; instructions "
	     "of computation, '-' where those were not counted), and their lines of source where the program's file of "
	     "the same build is still there and has them. Most time first.",
    .examples = "vapro stg run.capture\ta table\nvapro stg --dot run.capture | dot -Tsvg > stg.svg\ta drawing",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = stg__main,
};

struct choice {
	bool dot, json, all, no_pager;
	int rank, run;
	const char **files;
	size_t count;
};

/* Returns whether an option is valid; else the reason is on standard error. */
static bool set(struct choice *choice, int id, const char *value)
{
	char *end;

	switch (id) {
	case ROW_DOT:
		choice->dot = true;
		return true;
	case ROW_JSON:
		choice->json = true;
		return true;
	case ROW_ALL:
		return choice->all = true;
	case ROW_NO_PAGER:
		return choice->no_pager = true;
	case ROW_RANK:
		choice->rank = (int)strtol(value, &end, 10);
		if (end != value && !*end && choice->rank >= 0)
			return true;
		fprintf(stderr, "vapro stg: --rank: '%s' is invalid; expected 0 or more\n", value);
		return false;
	case ROW_RUN:
		if (run_option__parse(value, &choice->run))
			return true;
		fprintf(stderr, "vapro stg: --run: '%s' is invalid; expected " RUN_OPTION_RANGE "\n", value);
		return false;
	case OPTIONS_OPERAND:
		choice->files[choice->count++] = value;
		return true;
	default:
		return false;
	}
}

/* Prints the table as wide as the terminal; elsewhere each state is one line, for other programs. */
static int print_table(const struct choice *choice, struct stg_view *view)
{
	struct stg_table_options options = {.all = choice->all};
	FILE *out;
	int status;

	if (isatty(STDOUT_FILENO) || getenv("COLUMNS"))
		options.width = terminal__width(STDOUT_FILENO);
	out = pager__open(!choice->no_pager);
	status = stg_view__table(view, out, &options);
	pager__close(out);
	return status;
}

static int show(const struct choice *choice)
{
	struct capture_info info = {0};
	struct stg_view *view;
	char err[512];
	int status;

	for (size_t i = 0; i < choice->count; i++) {
		if (file_kind__expect(choice->files[i], FILE_KIND_CAPTURE, err, sizeof(err))) {
			fprintf(stderr, "vapro stg: %s\n", err);
			return EXIT_FAILED;
		}
	}
	if (capture__run_info(choice->files[0], choice->run, &info, err, sizeof(err))) {
		fprintf(stderr, "vapro stg: %s\n", err);
		return EXIT_FAILED;
	}
	run_option__say("stg", choice->files[0], info.run, info.runs);
	view = stg_view__new(choice->rank, &info);
	status = view ? capture__replay_run(choice->files, choice->count, choice->run, stg_view__sink(view), err,
					    sizeof(err))
		      : -ENOMEM;
	if (view && stg_view__query_lines(view, stderr))
		fprintf(stderr, "vapro stg: out of memory for lines of source\n");
	if (status)
		fprintf(stderr, "vapro stg: %s\n", view ? err : "out of memory");
	if (view && choice->dot)
		stg_view__dot(view, stdout);
	else if (view && choice->json)
		status = stg_view__json(view, stdout) ? EXIT_FAILED : status;
	else if (view && status >= 0)
		status = print_table(choice, view) ? EXIT_FAILED : status;
	stg_view__free(view);
	return status ? EXIT_FAILED : EXIT_OK;
}

static int stg__main(int argc, char **argv)
{
	struct options options = command__options(&stg_command, argc, argv);
	struct choice choice = {.rank = -1, .run = RUN_OPTION_LAST, .files = calloc((size_t)argc, sizeof(char *))};
	int id = OPTIONS_ERROR, status = EXIT_USAGE;

	while (choice.files && (id = options__next(&options)) != OPTIONS_END && id != OPTIONS_HELP &&
	       set(&choice, id, options.value))
		;
	if (id == OPTIONS_HELP)
		status = command__help(&stg_command, options.value, stdout);
	else if (id == OPTIONS_END && choice.count)
		status = show(&choice);
	else if (id == OPTIONS_END)
		fprintf(stderr, "vapro stg: a capture is needed; see --help\n");
	free(choice.files);
	return status;
}
