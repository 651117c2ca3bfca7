// SPDX-License-Identifier: GPL-2.0-or-later
/* The command-line tool: run, analyze, diff, runs, diagnose, view, report, jobs, top, stg, noise, variability, publish,
 * check. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "daemon/daemon.h"
#include "probe/elf/reader.h"

static const struct command *const commands[] = {
    &run_command,   &analyze_command,	  &diagnose_command, &diff_command,  &runs_command,
    &view_command,  &report_command,	  &jobs_command,     &top_command,   &stg_command,
    &noise_command, &variability_command, &publish_command,  &check_command,
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
		fprintf(out, "  %-11s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n`vapro help COMMAND` has the details. The daemon is vaprod.\n"
	      "`vapro --completion bash` (zsh, fish) prints the completion of commands and options.\n"
	      "Exit codes: 0 good, 1 failure, 2 usage, 3 kernel or privileges do not allow it; with --fail-on:\n"
	      "4 alarms, 5 nothing was watched, 6 nothing could be evaluated, 7 something became slower (diff).\n"
	      "\n"
	      "Examples:\n"
	      "  # watch a job, keep the records, see what was slow\n"
	      "  vapro run --output run.ndjson -- mpirun -n 64 ./solver\n"
	      "  vapro view run.ndjson\n",
	      out);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i]->name))
			return commands[i];
	return NULL;
}

/* Reports an unknown command. Returns the exit code. */
static int unknown(const char *name)
{
	struct suggestion suggestion = {.text = name};

	for (size_t i = 0; i < COMMANDS; i++)
		suggestion__offer(&suggestion, commands[i]->name);
	fprintf(stderr, "vapro: unknown command '%s'", name);
	if (suggestion.best)
		fprintf(stderr, " (did you mean '%s'?)", suggestion.best);
	fputs("; --help lists them\n", stderr);
	return EXIT_USAGE;
}

/* Returns whether a word is one of three. */
static bool is_one(const char *word, const char *a, const char *b, const char *c)
{
	return !strcmp(word, a) || !strcmp(word, b) || !strcmp(word, c);
}

/* Prints the help of a command, or of all. Returns an exit code. */
static int help(const char *name)
{
	const struct command *command = name ? find(name) : NULL;

	if (name && is_one(name, "vapro", "vaprod", "vapro-worker")) {
		fprintf(stderr, "vapro: '%s' is no command of vapro: `%s --help` has its help\n", name, name);
		return EXIT_USAGE;
	}
	if (name && !command)
		return unknown(name);
	if (command)
		command__help(command, NULL, stdout);
	else
		usage(stdout);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	const struct command *command;

	reader__main(argc, argv);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	command = find(argv[1]);
	if (command)
		return command->main(argc - 1, argv + 1);
	if (is_one(argv[1], "help", "--help", "-h"))
		return help(argv[2]);
	if (!strcmp(argv[1], "--help=all")) /* as of each command, and of vaprod */
		return help(NULL);
	if (is_one(argv[1], "version", "--version", "-V")) {
		puts("vapro " VAPRO_VERSION);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--completion") && argc == 3 &&
	    !command__print_completion(argv[2], "vapro", commands, COMMANDS, stdout))
		return EXIT_OK;
	if (!strncmp(argv[1], "--completion", strlen("--completion"))) {
		fputs("vapro: --completion needs a shell: " OPTIONS_COMPLETION_SHELLS "\n", stderr);
		return EXIT_USAGE;
	}
	return unknown(argv[1]);
}
