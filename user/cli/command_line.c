// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/command_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/broker_rows.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "cli/unit_check.h"

#define JOB_REPORTS_AGE_S (14 * 86400.0)
#define JOB_REPORTS_BYTES (5ULL << 30)

/* Sets a setting of a file, whose text does not outlive the file. */
static int set_of_file(void *ctx, const struct option_row *row, const char *value, const char *prefix, char *err,
		       size_t err_size)
{
	struct command_line *line = ctx;
	char *copy = strdup(value);
	bool tunable;

	if (!copy || option_list__add(&line->texts, copy)) {
		free(copy);
		snprintf(err, err_size, "%s%s: out of memory", prefix, row->name);
		return -ENOMEM;
	}
	return option__set(command__resolve(&vaprod_command, row, &tunable), line, copy, true, prefix, err, err_size);
}

/* Reads the files of the configuration. Returns 0 or EXIT_USAGE. */
static int read_files(struct command_line *line, const struct command *command)
{
	struct config_others others = settings_of_vaprod;
	char err[512];
	int status;

	others.ctx = line;
	if (command == &vaprod_command)
		others.set = set_of_file;
	status = settings__read(&line->daemon.config, line->config_file, "", &others,
				line->check_config ? stdout : NULL, err, sizeof(err));
	if (status < 0)
		return command__fail(command, EXIT_USAGE, "%s", err);
	if (!status && line->check_config)
		printf("no file: the defaults hold (" SETTINGS_FILE " would be read)\n");
	return 0;
}

/* The selection of the command line replaces that of the files, and its outputs those of the files. */
static void forget_replaced(struct command_line *line, const struct command *command, int argc, char **argv)
{
	struct options options = {.command = command, .argc = argc, .argv = argv};
	enum options_item item;

	while ((item = command__next(&options)) == OPTIONS_OPTION || item == OPTIONS_OPERAND) {
		size_t offset = item == OPTIONS_OPTION && !options.tunable ? options.row->offset : 0;

		if (offset == offsetof(struct command_line, pids) || offset == offsetof(struct command_line, globs)) {
			line->pids.count = line->globs.count = 0;
		} else if (offset == offsetof(struct command_line, outputs) ||
			   offset == offsetof(struct command_line, json)) {
			line->outputs.count = 0;
			line->json = false;
		}
	}
}

int command_line__prepare(void *base, const struct command *command, int argc, char **argv)
{
	int code = read_files(base, command);

	if (!code)
		forget_replaced(base, command, argc, argv);
	return code;
}

/* Whether publishing is complete, once all options are read. Returns 0 or EXIT_USAGE. */
static int check_publishing(const struct command *command, const struct publishing_options *publish)
{
	const char *lonely = broker_rows__without_url(&publish->broker);
	char why[400];

	if (lonely)
		return command__fail(command, EXIT_USAGE, "--%s needs --broker URL: the brokers to which to publish",
				     lonely);
	if (!publish->broker.servers)
		return publish->only ? command__fail(command, EXIT_USAGE, "--publish-only needs --broker") : 0;
	if (broker_options__check(&publish->broker, why, sizeof(why)))
		return command__fail(command, EXIT_USAGE, "--broker: %s", why);
	return 0;
}

/* Takes over what the daemon's options have in another form. */
static void finalize(struct command_line *line)
{
	struct daemon_options *daemon = &line->daemon;

	daemon->to_stdout = line->json;
	for (size_t i = 0; i < line->outputs.count; i++) {
		if (!strcmp(line->outputs.items[i], "-"))
			daemon->to_stdout = true;
		else
			daemon->output = line->outputs.items[i];
	}
	daemon->selection.pids = line->pids.items;
	daemon->selection.pid_count = line->pids.count;
	daemon->selection.globs = line->globs.items;
	daemon->selection.glob_count = line->globs.count;
}

static void set_defaults(struct command_line *line)
{
	line->log_most = LOG_LEVEL_INFO;
	config__init(&line->daemon.config);
	line->daemon.job_reports_age_s = JOB_REPORTS_AGE_S;
	line->daemon.job_reports_bytes = JOB_REPORTS_BYTES;
}

static void print_settings(const struct command_line *line)
{
	struct command_line initial = {0};

	set_defaults(&initial);
	settings__print(&line->daemon.config, line, &initial, stdout);
}

int command_line__parse(struct command_line *line, const struct command *command, int argc, char **argv)
{
	int code;

	set_defaults(line);
	code = command__parse(command, line, argc, argv);
	if (!code)
		code = check_publishing(command, &line->daemon.publish);
	if (code)
		return code;
	log__init(command->program, (enum log_level)line->log_most);
	finalize(line);
	if (line->check_config && line->daemon.publish.broker.servers)
		unit_check__brokers(line->daemon.publish.broker.servers, stderr);
	if (line->print_config)
		print_settings(line);
	return line->print_config || line->check_config ? COMMAND_DONE : 0;
}

void command_line__free(struct command_line *line)
{
	for (size_t i = 0; i < line->texts.count; i++)
		free((char *)line->texts.items[i]);
	option_list__clear(&line->texts);
	option_list__clear(&line->globs);
	option_list__clear(&line->outputs);
	option_list__clear(&line->operands);
	free(line->pids.items);
	line->pids = (struct pid_list){NULL, 0, 0};
}
