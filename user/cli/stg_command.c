// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro stg`: the command line around stg_view. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/terminal.h"
#include "capture/file_kind.h"
#include "cli/commands.h"
#include "base/exit_codes.h"
#include "cli/shared_rows.h"
#include "cli/stg_view.h"
#include "report/pager.h"

struct choice {
	bool dot, json, all, no_pager;
	int rank, run;
	struct option_list files;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, dot), .name = "dot",
     .help = "as Graphviz DOT: vapro stg --dot FILE | dot -Tsvg > stg.svg"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, json), .name = "json",
     .help = "one state per line: call-sites, their lines, labels, n, seconds, bytes, clusters"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, all), .name = "all", .letter = 'a',
     .help = "also states inside MPI's own libraries (libpmix, libevent, ...)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, no_pager), .name = "no-pager",
     .help = "write to the terminal itself, also what is longer than it"},
    RANK_ROW(struct choice, rank, "of one rank only"),
    RUN_ROW(struct choice, run, "of a capture that holds"),
    OPTIONS_HELP_ROW,
};
/* clang-format on */

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
    .operands = offsetof(struct choice, files),
    .main = stg__main,
};

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

	for (size_t i = 0; i < choice->files.count; i++) {
		if (file_kind__expect(choice->files.items[i], FILE_KIND_CAPTURE, err, sizeof(err))) {
			fprintf(stderr, "vapro stg: %s\n", err);
			return EXIT_FAILED;
		}
	}
	if (capture__run_info(choice->files.items[0], choice->run, &info, err, sizeof(err))) {
		fprintf(stderr, "vapro stg: %s\n", err);
		return EXIT_FAILED;
	}
	run_option__say("stg", choice->files.items[0], info.run, info.runs);
	view = stg_view__new(choice->rank, &info);
	status = view ? capture__replay_run(choice->files.items, choice->files.count, choice->run, stg_view__sink(view),
					    err, sizeof(err))
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
	struct choice choice = {.rank = -1, .run = RUN_OPTION_LAST};
	int code = command__parse(&stg_command, &choice, argc, argv);

	if (!code && !choice.files.count)
		code = command__fail(&stg_command, EXIT_USAGE, "a capture is needed; see --help");
	if (!code)
		code = show(&choice);
	option_list__clear(&choice.files);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
