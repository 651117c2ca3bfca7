// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/reload.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands.h"
#include "config/tunables.h"
#include "pipeline/record_filter.h"

/* Appends the name of a setting that only a restart changes. */
static void append(char *text, size_t size, const char *name)
{
	text__append(text, size, "%s%s", *text ? ", " : "", name);
}

static bool same(const char *a, const char *b)
{
	return !a || !b ? a == b : !strcmp(a, b);
}

/* Names the settings that have another value now, and are not among those that are taken over. */
static void name_others(const struct command_line *before, const struct command_line *now, char *text, size_t size)
{
	char old_value[VAPRO_FUNCTIONS_TEXT], value[VAPRO_FUNCTIONS_TEXT];

	*text = '\0';
	for (size_t i = 0; i < vapro_tunable_count; i++) {
		config__format(&before->daemon.config, &vapro_tunables[i], old_value, sizeof(old_value));
		config__format(&now->daemon.config, &vapro_tunables[i], value, sizeof(value));
		if (strcmp(old_value, value) != 0)
			append(text, size, vapro_tunables[i].name);
	}
	if (!same(before->daemon.output, now->daemon.output) && now->daemon.output)
		append(text, size, "output");
	if (!same(before->daemon.metrics, now->daemon.metrics))
		append(text, size, "metrics");
	if (!same(before->daemon.publish.broker.servers, now->daemon.publish.broker.servers))
		append(text, size, "broker");
}

int reload__read(void *ctx, struct daemon_settings *settings, char *text, size_t size)
{
	const struct reload *reload = ctx;
	struct command_line line = {.daemon = {.sentences = -1}};
	int code = command_line__parse(&line, &vaprod_command, reload->argc, reload->argv);

	if (!code) {
		settings->records = record_filter__choice(line.daemon.records);
		settings->output_most = line.daemon.output_most;
		name_others(reload->line, &line, text, size);
	}
	command_line__free(&line);
	return code ? -EINVAL : 0;
}
