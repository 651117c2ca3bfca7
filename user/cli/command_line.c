// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/command_line.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/daemon_rows.h"
#include "cli/settings.h"
#include "report/json.h"
#include "wire/subject.h"

#define DURATION_MOST_S 1e9 /* some 30 years */

/* Where a setting comes from is how messages about it begin: "--", or "FILE:LINE: ". */
struct origin {
	const char *prefix;
	char *err;
	size_t err_size;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct origin *origin, const char *format, ...)
{
	size_t used = (size_t)snprintf(origin->err, origin->err_size, "%s", origin->prefix);
	va_list arguments;

	va_start(arguments, format);
	if (used < origin->err_size)
		vsnprintf(origin->err + used, origin->err_size - used, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* Values of the command line are in argv; those of files are copied. Returns NULL when out of memory. */
static const char *retain(struct command_line *line, const char *text)
{
	char *copy;

	if (!line->in_file)
		return text;
	if (grow(&line->texts, &line->text_room, line->text_count + 1, sizeof(*line->texts)))
		return NULL;
	copy = strdup(text);
	if (copy)
		line->texts[line->text_count++] = copy;
	return copy;
}

/* The first selection of the command line replaces that of the files. */
static void begin_selection(struct command_line *line)
{
	if (line->selection_of_file && !line->in_file)
		line->pid_count = line->glob_count = 0;
	line->selection_of_file = line->in_file;
}

static int add_pid(struct command_line *line, const char *text, const struct origin *origin)
{
	char *end;
	long pid = strtol(text, &end, 10);

	if (end == text || *end || pid <= 0 || pid > INT_MAX)
		return refuse(origin, "pid: invalid PID '%s'; expected a number, as `pgrep -a PROGRAM` lists them",
			      text);
	begin_selection(line);
	if (grow(&line->pids, &line->pid_room, line->pid_count + 1, sizeof(*line->pids)))
		return refuse(origin, "pid: out of memory");
	line->pids[line->pid_count++] = (pid_t)pid;
	return 0;
}

static int add_glob(struct command_line *line, const char *text, const struct origin *origin)
{
	const char *glob = retain(line, text);

	if (!*text)
		return refuse(origin, "exe: a pattern is needed, such as lmp* or /opt/site/bin/*");
	begin_selection(line);
	if (!glob || grow(&line->globs, &line->glob_room, line->glob_count + 1, sizeof(*line->globs)))
		return refuse(origin, "exe: out of memory");
	line->globs[line->glob_count++] = glob;
	return 0;
}

static int set_output(struct command_line *line, const char *text, const struct origin *origin)
{
	struct daemon_options *options = line->options;

	if (line->output_of_file && !line->in_file) {
		options->output = NULL;
		options->to_stdout = false;
	}
	line->output_of_file = line->in_file;
	if (!strcmp(text, "-")) {
		options->to_stdout = true;
		return 0;
	}
	options->output = retain(line, text);
	return options->output ? 0 : refuse(origin, "output: out of memory");
}

static int set_duration(struct command_line *line, const char *text, const struct origin *origin)
{
	double seconds;

	if (units__seconds(text, &seconds) || seconds <= 0 || seconds > DURATION_MOST_S)
		return refuse(origin, "duration: invalid duration '%s'; expected " UNITS_TIME, text);
	line->options->duration_s = seconds;
	return 0;
}

static int set_text(struct command_line *line, const char **member, const char *text, const struct origin *origin)
{
	*member = retain(line, text);
	return *member ? 0 : refuse(origin, "out of memory");
}

static int set_cluster(struct command_line *line, const char *text, const struct origin *origin)
{
	if (!*text || strlen(text) >= WIRE_TEXT_MAX)
		return refuse(origin, "cluster: a name of 1 to %d letters is needed", WIRE_TEXT_MAX - 1);
	return set_text(line, &line->options->publish.cluster, text, origin);
}

static int set_publish_memory(struct command_line *line, const char *text, const struct origin *origin)
{
	double bytes;

	if (units__bytes(text, &bytes) || bytes < PUBLISHING_MEMORY_LEAST || bytes > PUBLISHING_MEMORY_MOST)
		return refuse(origin, "publish-memory: invalid size '%s'; expected 1M to 64G, as in 16M", text);
	line->options->publish.memory_bytes = (uint64_t)bytes;
	return 0;
}

/* Whether publishing is complete, once all options are read. Returns 0 or -EINVAL with a sentence. */
static int check_publishing(const struct daemon_options *options, const struct origin *origin)
{
	const struct publishing_options *publish = &options->publish;
	char why[400];

	if (!publish->broker.servers)
		return publish->only ? refuse(origin, "publish-only needs --publish") : 0;
	if (broker_options__check(&publish->broker, why, sizeof(why)))
		return refuse(origin, "publish: %s", why);
	return 0;
}

/* Sets an option of the table that is no tunable. Returns 0 or -EINVAL with a sentence. */
static int set_row(struct command_line *line, int id, const char *value, const struct origin *origin)
{
	struct daemon_options *options = line->options;

	switch (id) {
	case ROW_PID:
		return add_pid(line, value, origin);
	case ROW_EXE:
		return add_glob(line, value, origin);
	case ROW_USER_FUNCTION:
		return config__set(&options->config, "function", value, origin->err, origin->err_size);
	case ROW_OUTPUT:
		return set_output(line, value, origin);
	case ROW_JSON:
		return set_output(line, "-", origin);
	case ROW_CAPTURE:
		return set_text(line, &options->capture, value, origin);
	case ROW_PUBLISH:
		return set_text(line, &options->publish.broker.servers, value, origin);
	case ROW_PUBLISH_ONLY:
		options->publish.only = true;
		return 0;
	case ROW_CLUSTER:
		return set_cluster(line, value, origin);
	case ROW_PUBLISH_CREDENTIALS:
		return set_text(line, &options->publish.broker.credentials, value, origin);
	case ROW_PUBLISH_CA:
		return set_text(line, &options->publish.broker.ca, value, origin);
	case ROW_PUBLISH_CERT:
		return set_text(line, &options->publish.broker.cert, value, origin);
	case ROW_PUBLISH_KEY:
		return set_text(line, &options->publish.broker.key, value, origin);
	case ROW_PUBLISH_MEMORY:
		return set_publish_memory(line, value, origin);
	case ROW_QUIET:
		line->log_most = LOG_LEVEL_WARNING;
		return 0;
	case ROW_VERBOSE:
		line->log_most = LOG_LEVEL_DEBUG;
		return 0;
	case ROW_FAIL_ON:
		if (!outcome__parse(value, &options->fail_on))
			return 0;
		return refuse(origin, "fail-on: '%s' is unknown; expected " OUTCOME_EXPECTED, value);
	case ROW_DURATION:
		return set_duration(line, value, origin);
	case ROW_CPUS:
		return set_text(line, &options->cpus, value, origin);
	case ROW_DRY_RUN:
		options->dry_run = true;
		return 0;
	default: /* read before all others */
		return 0;
	}
}

static const struct option_row *row_of(const char *name)
{
	for (size_t i = 0; i < vaprod_command.row_count; i++)
		if (vaprod_command.rows[i].name && !strcmp(vaprod_command.rows[i].name, name))
			return &vaprod_command.rows[i];
	return NULL;
}

/* Sets an option of a file; one that has no value on the command line is yes or no there. */
static int set_of_file(void *ctx, const char *name, const char *value, const char *prefix, char *err, size_t err_size)
{
	const struct origin origin = {prefix, err, err_size};
	const struct option_row *row = row_of(name);

	if (row && !row->value && (!strcmp(value, "no") || !strcmp(value, "off") || !strcmp(value, "false")))
		return 0;
	if (row && !row->value && strcmp(value, "yes") && strcmp(value, "on") && strcmp(value, "true"))
		return refuse(&origin, "%s: '%s' is unknown; expected yes or no", name, value);
	if (row && row->value && !*value)
		return refuse(&origin, "%s: a value is missing: %s", name, row->value);
	return row ? set_row(ctx, row->id, value, &origin) : 0;
}

/* What look_ahead finds. */
struct ahead {
	const char *config;
	bool print, check;
};

/* Reads what must be known before all other options. Returns 0, COMMAND_LINE_DONE or EXIT_USAGE. */
static int look_ahead(const struct command *command, struct options options, struct ahead *ahead)
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
		case ROW_PRINT_CONFIG:
			ahead->print = true;
			break;
		case ROW_CHECK_CONFIG:
			ahead->check = true;
			break;
		case ROW_CONFIG:
			ahead->config = options.value;
			break;
		}
	}
	return 0;
}

/* Returns the n-th value of a setting that is not its default, as text. */
static const char *value_of(void *ctx, const char *name, size_t n)
{
	static char text[1024];
	const struct command_line *line = ctx;
	const struct daemon_options *options = line->options;
	const char *outputs[] = {options->output, options->to_stdout ? "-" : NULL};
	const struct option_row *row = row_of(name);

	switch (row ? row->id : 0) {
	case ROW_PID:
		snprintf(text, sizeof(text), "%d", n < line->pid_count ? line->pids[n] : 0);
		return n < line->pid_count ? text : NULL;
	case ROW_EXE:
		return n < line->glob_count ? line->globs[n] : NULL;
	case ROW_OUTPUT:
		n += !options->output;
		return n < 2 ? outputs[n] : NULL;
	case ROW_CAPTURE:
		return n ? NULL : options->capture;
	case ROW_PUBLISH:
		return !n && options->publish.broker.servers
			   ? broker__printable(text, sizeof(text), options->publish.broker.servers)
			   : NULL;
	case ROW_PUBLISH_ONLY:
		return !n && options->publish.only ? "yes" : NULL;
	case ROW_CLUSTER:
		return n ? NULL : options->publish.cluster;
	case ROW_PUBLISH_CREDENTIALS:
		return n ? NULL : options->publish.broker.credentials;
	case ROW_PUBLISH_CA:
		return n ? NULL : options->publish.broker.ca;
	case ROW_PUBLISH_CERT:
		return n ? NULL : options->publish.broker.cert;
	case ROW_PUBLISH_KEY:
		return n ? NULL : options->publish.broker.key;
	case ROW_PUBLISH_MEMORY:
		units__format_bytes(options->publish.memory_bytes, text, sizeof(text));
		return !n && options->publish.memory_bytes ? text : NULL;
	case ROW_QUIET:
		return !n && line->log_most == LOG_LEVEL_WARNING ? "yes" : NULL;
	case ROW_VERBOSE:
		return !n && line->log_most == LOG_LEVEL_DEBUG ? "yes" : NULL;
	case ROW_FAIL_ON:
		return !n && options->fail_on.given ? json_severity_name[options->fail_on.least] : NULL;
	case ROW_CPUS:
		return n ? NULL : options->cpus;
	case ROW_DURATION:
		units__format_seconds(options->duration_s, text, sizeof(text));
		return !n && options->duration_s > 0 ? text : NULL;
	default:
		return NULL;
	}
}

/* Reads the files of the configuration. Returns 0 or EXIT_USAGE. */
static int read_files(struct command_line *line, const struct command *command, const struct ahead *ahead)
{
	struct config_others others = settings_of_vaprod;
	char err[512];
	int status;

	others.ctx = line;
	if (command == &vaprod_command)
		others.set = set_of_file;
	line->in_file = true;
	status = settings__read(&line->options->config, ahead->config, "", &others, ahead->check ? stdout : NULL, err,
				sizeof(err));
	line->in_file = false;
	if (status < 0)
		fprintf(stderr, "%s: %s\n", command->program, err);
	else if (!status && ahead->check)
		printf("no file: the defaults hold (" SETTINGS_FILE " would be read)\n");
	return status < 0 ? EXIT_USAGE : 0;
}

int command_line__parse(struct command_line *line, const struct command *command, int argc, char **argv,
			struct daemon_options *options)
{
	struct options parsed = command__options(command, argc, argv);
	const struct settings_values values = {.value = value_of, .ctx = line};
	char err[512] = "";
	const struct origin origin = {"--", err, sizeof(err)};
	struct ahead ahead = {.config = NULL};
	int id = OPTIONS_END, status;

	memset(line, 0, sizeof(*line));
	line->log_most = LOG_LEVEL_INFO;
	line->options = options;
	config__init(&options->config);
	status = look_ahead(command, parsed, &ahead);
	status = status ? status : read_files(line, command, &ahead);
	if (status)
		return status;
	while (!status && (id = options__next(&parsed)) != OPTIONS_END && id != OPTIONS_OPERAND) {
		status = id == OPTIONS_TUNABLE
			     ? config__set(&options->config, parsed.name, parsed.value, err, sizeof(err))
			     : set_row(line, id, parsed.value, &origin);
	}
	if (!status)
		status = check_publishing(options, &origin);
	if (status) {
		fprintf(stderr, "%s: %s\n", command->program, err);
		return EXIT_USAGE;
	}
	if (id == OPTIONS_OPERAND)
		parsed.next--;
	line->rest = argv + parsed.next;
	line->rest_count = argc - parsed.next;
	log__init(command->program, line->log_most);
	options->selection.pids = line->pids;
	options->selection.pid_count = line->pid_count;
	options->selection.globs = line->globs;
	options->selection.glob_count = line->glob_count;
	if (ahead.print)
		settings__print(&options->config, &values, stdout);
	return ahead.print || ahead.check ? COMMAND_LINE_DONE : 0;
}

void command_line__free(struct command_line *line)
{
	for (size_t i = 0; i < line->text_count; i++)
		free(line->texts[i]);
	free(line->texts);
	free(line->pids);
	free(line->globs);
}
