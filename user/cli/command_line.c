// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/command_line.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"
#include "cli/options.h"

int command_line__seconds(const char *text, double *seconds)
{
	char *end;

	errno = 0;
	*seconds = strtod(text, &end);
	if (end == text || errno || !(*seconds >= 0) || *seconds > 1e9)
		return -EINVAL;
	if (!strcmp(end, "ms"))
		*seconds *= 1e-3;
	else if (!strcmp(end, "m"))
		*seconds *= 60;
	else if (!strcmp(end, "h"))
		*seconds *= 3600;
	else if (*end && strcmp(end, "s"))
		return -EINVAL;
	return 0;
}

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
	ROW_VERSION,
};

static const struct option_row rows[] = {
    OPTIONS_GROUP("Selection"),
    {"pid", "N", "watch this process; may be given more than once", ROW_PID, 'p'},
    {"exe", "GLOB", "watch processes whose executable matches, by path or base name", ROW_EXE, 0},
    {"user-function", "IMAGE:FUNCTION",
     "watch this function of the program too, as --function with class=user; may be given more than once; IMAGE is a "
     "glob of the file's name, or exe",
     ROW_USER_FUNCTION, 0},
    OPTIONS_GROUP("Output"),
    {"output", "FILE|-", "NDJSON lines, added to a file, to standard output (-), or both: give it twice", ROW_OUTPUT,
     'o'},
    {"capture", "FILE", "add all bundles as one more run, to be analysed again with `vapro analyze FILE`", ROW_CAPTURE,
     0},
    {"quiet", NULL, "print warnings and errors only, and no progress on a terminal", ROW_QUIET, 'q'},
    {"verbose", NULL, "also print what helps to find out why something does not work, such as libbpf's messages",
     ROW_VERBOSE, 'v'},
    OPTIONS_GROUP("Run"),
    {"duration", "T", "end after this time (30, 500ms, 5m)", ROW_DURATION, 0},
    {"cpus", "LIST", "run on these CPUs (default: not on isolated ones)", ROW_CPUS, 0},
    {"config", "FILE",
     "read `name = value` lines; options on the command line win (" VAPRO_CONFIG_FILE ", where it exists)", ROW_CONFIG,
     0},
    {"version", NULL, "print the version", ROW_VERSION, 'V'},
};

static struct options options_of(const char *program, int argc, char **argv)
{
	return (struct options){.program = program,
				.rows = rows,
				.row_count = sizeof(rows) / sizeof(*rows),
				.tunables = true,
				.argc = argc,
				.argv = argv};
}

static int add_pid(struct command_line *line, const char *program, const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);

	if (end == text || *end || pid <= 0 || pid > INT_MAX) {
		fprintf(stderr, "%s: --pid: invalid process number '%s'\n", program, text);
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
		if (!command_line__seconds(parsed->value, &options->duration_s) && options->duration_s > 0)
			return 0;
		fprintf(stderr, "%s: --duration: invalid duration '%s'; expected such as 30, 500ms, 5m\n", program,
			parsed->value);
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

/* Reads what must be known before all other options. Returns 0, COMMAND_LINE_HELP or _VERSION, or EXIT_USAGE. */
static int look_ahead(struct options options, const char **config)
{
	int id, requested = 0;

	while ((id = options__next(&options)) != OPTIONS_END && id != OPTIONS_OPERAND) {
		if (id == OPTIONS_ERROR)
			return EXIT_USAGE;
		if (id == ROW_CONFIG)
			*config = options.value;
		else if (id == OPTIONS_HELP)
			requested = COMMAND_LINE_HELP;
		else if (id == ROW_VERSION && !requested)
			requested = COMMAND_LINE_VERSION;
	}
	return requested;
}

int command_line__parse(struct command_line *line, const char *program, int argc, char **argv,
			struct daemon_options *options)
{
	struct options parsed = options_of(program, argc, argv);
	const char *config = NULL;
	int id = OPTIONS_END, status;
	char err[512];

	memset(line, 0, sizeof(*line));
	line->log_most = LOG_LEVEL_INFO;
	config__init(&options->config);
	status = look_ahead(parsed, &config);
	if (status)
		return status;
	if (!config && !access(VAPRO_CONFIG_FILE, F_OK))
		config = VAPRO_CONFIG_FILE;
	if (config && config__read(&options->config, config, err, sizeof(err))) {
		fprintf(stderr, "%s: %s\n", program, err);
		return EXIT_USAGE;
	}
	while (!status && (id = options__next(&parsed)) != OPTIONS_END && id != OPTIONS_OPERAND)
		status = set_option(line, program, id, &parsed, options);
	if (id == OPTIONS_OPERAND)
		parsed.next--;
	line->rest = argv + parsed.next;
	line->rest_count = argc - parsed.next;
	log__init(program, line->log_most);
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

void command_line__help(FILE *out)
{
	const struct options options = options_of("", 0, NULL);

	options__help(&options, out);
}
