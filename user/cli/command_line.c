// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/command_line.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/completion.h"

#define DURATION_MOST_S 1e9 /* some 30 years */

enum {
	ROW_PID = 1,
	ROW_EXE,
	ROW_USER_FUNCTION,
	ROW_OUTPUT,
	ROW_CAPTURE,
	ROW_QUIET,
	ROW_VERBOSE,
	ROW_DURATION,
	ROW_CPUS,
	ROW_CONFIG,
	ROW_COMPLETION,
	ROW_VERSION,
};

/* clang-format off */
#define PID_HELP "watch this process; may be given more than once"
#define EXE_HELP "watch processes whose executable matches, by path or base name; may be given more than once"
#define COMPLETION_HELP "print the completion of vaprod for this shell"
#define DURATION_HELP "end after this time: 30, 500ms, 5m, 1h"

#define ROWS(pid_help, exe_help, duration_help, completion_help)                                                       \
	OPTIONS_SECTION(VAPRO_GROUP_SELECTION),                                                                        \
	{"pid", "PID", pid_help, ROW_PID, 'p'},                                                                        \
	{"exe", "GLOB", exe_help, ROW_EXE, 'e'},                                                                       \
	{"user-function", "IMAGE:FUNCTION",                                                                            \
	 "watch this function of the program too, as --function with class=user; may be given more than once; IMAGE "  \
	 "is a glob of the file's name, or exe", ROW_USER_FUNCTION, 0},                                                \
	OPTIONS_SECTION(VAPRO_GROUP_OUTPUT),                                                                           \
	{"output", "FILE|-", "NDJSON lines, added to a file, to standard output (-), or both: give it twice",          \
	 ROW_OUTPUT, 'o'},                                                                                             \
	{"capture", "FILE", "add all bundles as one more run, to be analysed again with `vapro analyze FILE`",         \
	 ROW_CAPTURE, 0},                                                                                              \
	{"quiet", NULL, "print warnings and errors only, and no progress on a terminal", ROW_QUIET, 'q'},              \
	{"verbose", NULL,                                                                                              \
	 "also print what helps to find out why something does not work, such as libbpf's messages", ROW_VERBOSE,      \
	 'v'},                                                                                                         \
	OPTIONS_SECTION(VAPRO_GROUP_OVERHEAD),                                                                         \
	{"cpus", "LIST", "run on these CPUs, as in 0-3,7 (default: not on isolated ones)", ROW_CPUS, 0},               \
	OPTIONS_SECTION(VAPRO_GROUP_ANALYSIS),                                                                         \
	OPTIONS_GROUP("Run"),                                                                                          \
	{"duration", "TIME", duration_help, ROW_DURATION, 'd'},                                                        \
	{"config", "FILE",                                                                                             \
	 "read `name = value` lines; options on the command line win (" VAPRO_CONFIG_FILE ", where it exists)",        \
	 ROW_CONFIG, 'c'},                                                                                             \
	{"completion", COMPLETION_SHELLS, completion_help, ROW_COMPLETION, 0},                                         \
	{"version", NULL, "print the version", ROW_VERSION, 'V'},                                                      \
	OPTIONS_HELP_ALL_ROW,                                                                                          \
	OPTIONS_SECTION(VAPRO_GROUP_ANALYSIS_EXPERT),                                                                  \
	OPTIONS_SECTION(VAPRO_GROUP_KERNEL_EXPERT)

static const struct option_row vaprod_rows[] = {ROWS(PID_HELP, EXE_HELP, DURATION_HELP, COMPLETION_HELP)};

/* `vapro run` has a selection and an end of its own. */
static const struct option_row run_rows[] = {ROWS(NULL, NULL, NULL, NULL)};
/* clang-format on */

const struct command vaprod_command = {
    .name = "vaprod",
    .program = "vaprod",
    .summary = "watch the parallel programs that run on this node",
    .synopsis = "[option]...",
    .about = "Watches running parallel programs of this node and says when, where and why they are slow. Without a "
	     "selection: every process that maps libmpi, running now or started later.\n"
	     "Needs root. SIGINT and SIGTERM end it with a last window; SIGHUP opens the file of --output again.",
    .examples = "vaprod --output run.ndjson\tall MPI programs of this node, until ^C; then: vapro view run.ndjson\n"
		"vaprod --pid 4711 --pid 4712 --duration 5m --output run.ndjson\ttwo processes, for five minutes\n"
		"vaprod --exe 'lmp*' --capture run.capture\tall processes of LAMMPS; then: vapro analyze run.capture",
    .rows = vaprod_rows,
    .row_count = sizeof(vaprod_rows) / sizeof(*vaprod_rows),
    .tunables = true,
};

const struct command run_command = {
    .name = "run",
    .program = "vapro run",
    .summary = "run a command (mpirun ...), watch it, end with a summary",
    .synopsis = "[option]... -- COMMAND [ARGUMENT]...",
    .about = "Runs the command (normally mpirun ...) unchanged, watches what it starts (MPI processes, programs with "
	     "OpenMP or threads of their own), and ends with a summary on standard error: what was slow, when, on "
	     "which ranks, why, and who interfered. Needs root.\n"
	     "The exit code is the command's. --output keeps the NDJSON lines, for `vapro view`.",
    .examples = "vapro run -- mpirun -n 64 ./solver\twatch a job\n"
		"vapro run --output run.ndjson -- mpirun -n 64 ./solver\tkeep the records; then: vapro view run.ndjson",
    .rows = run_rows,
    .row_count = sizeof(run_rows) / sizeof(*run_rows),
    .tunables = true,
    .main = run__main,
};

static int add_pid(struct command_line *line, const char *program, const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);

	if (end == text || *end || pid <= 0 || pid > INT_MAX) {
		fprintf(stderr, "%s: --pid: '%s' is no PID; expected a number, as `pgrep -a PROGRAM` lists them\n",
			program, text);
		return EXIT_USAGE;
	}
	if (grow(&line->pids, &line->pid_room, line->pid_count + 1, sizeof(*line->pids)))
		return EXIT_USAGE;
	line->pids[line->pid_count++] = (pid_t)pid;
	return 0;
}

static int add_glob(struct command_line *line, const char *program, const char *glob)
{
	if (!*glob || grow(&line->globs, &line->glob_room, line->glob_count + 1, sizeof(*line->globs))) {
		fprintf(stderr, "%s: --exe: a pattern is needed\n", program);
		return EXIT_USAGE;
	}
	line->globs[line->glob_count++] = glob;
	return 0;
}

static int set_tunable(const char *program, const char *name, const char *value, struct daemon_options *options)
{
	char err[256];

	if (!config__set(&options->config, name, value, err, sizeof(err)))
		return 0;
	fprintf(stderr, "%s: %s\n", program, err);
	return EXIT_USAGE;
}

static int set_option(struct command_line *line, const char *program, int id, const struct options *parsed,
		      struct daemon_options *options)
{
	switch (id) {
	case ROW_PID:
		return add_pid(line, program, parsed->value);
	case ROW_EXE:
		return add_glob(line, program, parsed->value);
	case ROW_USER_FUNCTION:
		return set_tunable(program, "function", parsed->value, options);
	case ROW_OUTPUT:
		if (!strcmp(parsed->value, "-"))
			options->to_stdout = true;
		else
			options->output = parsed->value;
		return 0;
	case ROW_CAPTURE:
		options->capture = parsed->value;
		return 0;
	case ROW_QUIET:
		line->log_most = LOG_LEVEL_WARNING;
		return 0;
	case ROW_VERBOSE:
		line->log_most = LOG_LEVEL_DEBUG;
		return 0;
	case ROW_DURATION:
		if (!units__seconds(parsed->value, &options->duration_s) && options->duration_s > 0 &&
		    options->duration_s <= DURATION_MOST_S)
			return 0;
		fprintf(stderr, "%s: --duration: invalid time '%s'; expected " UNITS_TIME "\n", program, parsed->value);
		return EXIT_USAGE;
	case ROW_CPUS:
		options->cpus = parsed->value;
		return 0;
	case OPTIONS_TUNABLE:
		return set_tunable(program, parsed->name, parsed->value, options);
	default: /* read before all others */
		return 0;
	}
}

/* Reads what must be known before all other options. Returns 0, COMMAND_LINE_DONE or EXIT_USAGE. */
static int look_ahead(const struct command *command, struct options options, const char **config)
{
	int id;

	while ((id = options__next(&options)) != OPTIONS_END && id != OPTIONS_OPERAND) {
		switch (id) {
		case OPTIONS_ERROR:
			return EXIT_USAGE;
		case OPTIONS_HELP:
			command__help(command, options.value, stdout);
			return COMMAND_LINE_DONE;
		case ROW_VERSION:
			printf("%.*s %s\n", (int)strcspn(command->program, " "), command->program, VAPRO_VERSION);
			return COMMAND_LINE_DONE;
		case ROW_COMPLETION:
			if (!completion__print(options.value, command->program, &command, 1, stdout))
				return COMMAND_LINE_DONE;
			fprintf(stderr, "%s: --completion: '%s' is unknown; expected bash, zsh or fish\n",
				command->program, options.value);
			return EXIT_USAGE;
		case ROW_CONFIG:
			*config = options.value;
		}
	}
	return 0;
}

int command_line__parse(struct command_line *line, const struct command *command, int argc, char **argv,
			struct daemon_options *options)
{
	struct options parsed = command__options(command, argc, argv);
	const char *config = NULL;
	int id = OPTIONS_END, status;
	char err[512];

	memset(line, 0, sizeof(*line));
	line->log_most = LOG_LEVEL_INFO;
	config__init(&options->config);
	status = look_ahead(command, parsed, &config);
	if (status)
		return status;
	if (!config && !access(VAPRO_CONFIG_FILE, F_OK))
		config = VAPRO_CONFIG_FILE;
	if (config && config__read(&options->config, config, err, sizeof(err))) {
		fprintf(stderr, "%s: %s\n", command->program, err);
		return EXIT_USAGE;
	}
	while (!status && (id = options__next(&parsed)) != OPTIONS_END && id != OPTIONS_OPERAND)
		status = set_option(line, command->program, id, &parsed, options);
	if (id == OPTIONS_OPERAND)
		parsed.next--;
	line->rest = argv + parsed.next;
	line->rest_count = argc - parsed.next;
	log__init(command->program, line->log_most);
	options->selection.pids = line->pids;
	options->selection.pid_count = line->pid_count;
	options->selection.globs = line->globs;
	options->selection.glob_count = line->glob_count;
	return status;
}

void command_line__free(struct command_line *line)
{
	free(line->pids);
	free(line->globs);
}
