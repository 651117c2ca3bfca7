// SPDX-License-Identifier: GPL-2.0-or-later
/* The command-line tool: run, analyze, diff, diagnose, view, stg, check. */
#include <stdio.h>
#include <string.h>

#include "cli/analyze.h"
#include "cli/diagnose.h"
#include "cli/diff.h"
#include "cli/check.h"
#include "cli/options.h"
#include "daemon/daemon.h"
#include "probe/elf/reader.h"
#include "cli/stg_view.h"
#include "report/view.h"
#include "cli/run.h"

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
} commands[] = {
    {"run", run__main, "run a command (mpirun ...), watch it, end with a summary"},
    {"analyze", analyze__main, "replay captures or NDJSON fragments into the lines of a live run"},
    {"diagnose", diagnose__main, "query a running vaprod for why ranks were slow in a time that you choose"},
    {"diff", diff__main, "compare two runs: which ranks, hosts and states became slower"},
    {"view", view__main, "draw the heat maps and regions of NDJSON output in the terminal"},
    {"stg", stg__main, "show the State Transition Graph of a capture, as a table or for dot(1)"},
    {"check", check__main, "say what this machine can do, what is missing and why"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *out)
{
	fputs("Usage: vapro COMMAND [argument]...\n"
	      "\n"
	      "Finds out when, where and why a running parallel job is slower than it could be.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\n`vapro COMMAND --help` has the details. The daemon is vaprod.\n"
	      "Exit codes: 0 good, 1 failure, 2 usage, 3 kernel or privileges do not allow it,\n"
	      "7 slower (diff --fail-on slower).\n",
	      out);
}

int main(int argc, char **argv)
{
	struct suggestion suggestion = {0};

	reader__main(argc, argv);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	suggestion.text = argv[1];
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].main(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("vapro " VAPRO_VERSION);
		return EXIT_OK;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		suggestion__offer(&suggestion, commands[i].name);
	fprintf(stderr, "vapro: unknown command '%s'", argv[1]);
	if (suggestion.best)
		fprintf(stderr, " (did you mean '%s'?)", suggestion.best);
	fputs("; --help lists them\n", stderr);
	return EXIT_USAGE;
}
