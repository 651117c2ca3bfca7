// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/command_line.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"

/* One option's name and value while parsing. */
struct argument {
	const char *name;
	const char *value; /* NULL where the option stands alone */
	char name_text[64];
};

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

static const struct vapro_option *option_named(const char *name)
{
	for (size_t i = 0; i < vapro_option_count; i++)
		if (!strcmp(vapro_options[i].name, name))
			return &vapro_options[i];
	return NULL;
}

static const char *const own_options[] = {"pid",     "exe",    "output", "duration",
					  "capture", "config", "cpus",	 "user-function"};

static bool takes_value(const char *name)
{
	const struct vapro_option *option = option_named(name);

	for (size_t i = 0; i < sizeof(own_options) / sizeof(own_options[0]); i++)
		if (!strcmp(own_options[i], name))
			return true;
	return option && option->type != VAPRO_OPT_BOOL;
}

/* Splits argv[*i] (and its value, if that is the next argument). 0, or EXIT_USAGE after reporting why. */
static int next_argument(const char *program, int argc, char **argv, int *i, struct argument *argument)
{
	const char *text = argv[*i], *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text - 2) : strlen(text) - 2;

	if (!strcmp(text, "-o")) {
		text = "--output";
		length = 6;
	} else if (!strcmp(text, "-p")) {
		text = "--pid";
		length = 3;
	} else if (!strcmp(text, "-h")) {
		text = "--help";
		length = 4;
	}
	if (strncmp(text, "--", 2) || length >= sizeof(argument->name_text)) {
		fprintf(stderr, "%s: unknown option '%s'; --help lists them\n", program, argv[*i]);
		return EXIT_USAGE;
	}
	memcpy(argument->name_text, text + 2, length);
	argument->name_text[length] = '\0';
	argument->name = argument->name_text;
	argument->value = equals ? equals + 1 : NULL;
	if (!takes_value(argument->name) || argument->value)
		return 0;
	if (*i + 1 >= argc) {
		fprintf(stderr, "%s: --%s needs a value\n", program, argument->name);
		return EXIT_USAGE;
	}
	argument->value = argv[++*i];
	return 0;
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

static int set_option(struct command_line *line, const char *program, const struct argument *argument,
		      struct daemon_options *options)
{
	char err[256];
	int status;

	if (!strcmp(argument->name, "config"))
		return 0; /* read before all others */
	if (!strcmp(argument->name, "pid"))
		return add_pid(line, program, argument->value);
	if (!strcmp(argument->name, "exe")) {
		if (!*argument->value ||
		    grow(&line->globs, &line->glob_room, line->glob_count + 1, sizeof(*line->globs))) {
			fprintf(stderr, "%s: --exe: a pattern is needed\n", program);
			return EXIT_USAGE;
		}
		line->globs[line->glob_count++] = argument->value;
		return 0;
	}
	if (!strcmp(argument->name, "output") && !strcmp(argument->value, "-")) {
		options->to_stdout = true;
	} else if (!strcmp(argument->name, "output")) {
		options->output = argument->value;
	} else if (!strcmp(argument->name, "capture")) {
		options->capture = argument->value;
	} else if (!strcmp(argument->name, "cpus")) {
		options->cpus = argument->value;
	} else if (!strcmp(argument->name, "quiet") && !argument->value) {
		options->quiet = true;
	} else if (!strcmp(argument->name, "duration")) {
		if (command_line__seconds(argument->value, &options->duration_s) || options->duration_s <= 0) {
			fprintf(stderr, "%s: --duration: invalid duration '%s'; expected such as 30, 500ms, 5m\n",
				program, argument->value);
			return EXIT_USAGE;
		}
	} else {
		bool function = !strcmp(argument->name, "user-function");

		status = config__set(&options->config, function ? "function" : argument->name,
				     argument->value ? argument->value : "true", err, sizeof(err));
		if (status == -ENOENT)
			fprintf(stderr, "%s: unknown option '--%s'; --help lists them\n", program, argument->name);
		else if (status)
			fprintf(stderr, "%s: %s\n", program, err);
		return status ? EXIT_USAGE : 0;
	}
	return 0;
}

/* Returns where the options end, at `--` or the first argument that is no option; -1 after an error. */
static int options_end(const char *program, int argc, char **argv, const char **config, int *requested)
{
	struct argument argument;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--") || argv[i][0] != '-' || !argv[i][1])
			break;
		if (next_argument(program, argc, argv, &i, &argument))
			return -1;
		if (!strcmp(argument.name, "config"))
			*config = argument.value;
		else if (!strcmp(argument.name, "help"))
			*requested = COMMAND_LINE_HELP;
		else if (!strcmp(argument.name, "version") && !*requested)
			*requested = COMMAND_LINE_VERSION;
	}
	return i;
}

int command_line__parse(struct command_line *line, const char *program, int argc, char **argv,
			struct daemon_options *options)
{
	const char *config = NULL;
	struct argument argument;
	int end, requested = 0, status = 0;
	char err[512];

	memset(line, 0, sizeof(*line));
	config__init(&options->config);
	end = options_end(program, argc, argv, &config, &requested);
	if (end < 0 || requested)
		return end < 0 ? EXIT_USAGE : requested;
	if (!config && !access(VAPRO_CONFIG_FILE, F_OK))
		config = VAPRO_CONFIG_FILE;
	if (config && config__read(&options->config, config, err, sizeof(err))) {
		fprintf(stderr, "%s: %s\n", program, err);
		return EXIT_USAGE;
	}
	for (int i = 1; i < end && !status; i++) {
		next_argument(program, argc, argv, &i, &argument);
		status = set_option(line, program, &argument, options);
	}
	if (end < argc && !strcmp(argv[end], "--"))
		end++;
	line->rest = argv + end;
	line->rest_count = argc - end;
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
	fputs(
	    "Selection:\n"
	    "  --pid N           watch this process; may be given more than once\n"
	    "  --exe GLOB        watch processes whose executable matches, by path or base name\n"
	    "  --user-function IMAGE:FUNCTION  watch this function of the program too, as --function with class=user;\n"
	    "                    may be given more than once; IMAGE is a glob of the file's name, or exe\n"
	    "Output:\n"
	    "  --output FILE|-   NDJSON lines, added to a file, to standard output (-), or both: give it twice\n"
	    "  --capture FILE    add all bundles as one more run, to be analysed again with `vapro analyze FILE`\n"
	    "  --quiet           no progress on a terminal\n"
	    "Run:\n"
	    "  --duration T      end after this time (30, 500ms, 5m)\n"
	    "  --cpus LIST       run on these CPUs (default: not on isolated ones)\n"
	    "  --config FILE     read `name = value` lines; options on the command line win (" VAPRO_CONFIG_FILE ",\n"
	    "                    where it exists)\n"
	    "  --help, --version\n"
	    "Tunables (also in --config FILE):\n",
	    out);
	config__help(out);
}
