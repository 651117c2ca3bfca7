/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of tunables, and what reads the values of those that are more than a number or a word. */
#include "config/tunables.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/rules.h"
#include "functions/user_rows.h"

const struct vapro_group_info vapro_groups[VAPRO_GROUPS] = {
    [VAPRO_GROUP_SELECTION] = {"selection", "Selection"},    [VAPRO_GROUP_OUTPUT] = {"output", "Output"},
    [VAPRO_GROUP_PUBLISHING] = {"publishing", "Publishing"}, [VAPRO_GROUP_OVERHEAD] = {"overhead", "Overhead"},
    [VAPRO_GROUP_ANALYSIS] = {"analysis", "Analysis"},	     [VAPRO_GROUP_KERNEL] = {"kernel", "Kernel"},
};

/* Adds functions, separated by semicolons; "" removes all. Each is parsed at once, so that the error can name it. */
static int add_functions(void *member, const char *value, char *why, size_t why_size)
{
	char read[VAPRO_FUNCTIONS_TEXT], texts[VAPRO_FUNCTIONS_TEXT], scratch[1024], *rest = NULL;
	struct function_row row;

	if ((size_t)snprintf(texts, sizeof(texts), "%s", value) >= sizeof(texts))
		goto too_long;
	snprintf(read, sizeof(read), "%s", *value ? (const char *)member : "");
	for (char *text = strtok_r(texts, ";", &rest); text; text = strtok_r(NULL, ";", &rest)) {
		size_t used = strlen(read);

		text = text__trim(text);
		if (user_rows__parse(text, &row, scratch, sizeof(scratch), why, why_size))
			return -EINVAL;
		if ((size_t)snprintf(read + used, sizeof(read) - used, "%s%s", used ? "; " : "", text) >=
		    sizeof(read) - used)
			goto too_long;
	}
	memset(member, 0, VAPRO_FUNCTIONS_TEXT);
	memcpy(member, read, strlen(read));
	return 0;
too_long:
	snprintf(why, why_size, "too many functions");
	return -EINVAL;
}

/* Stores rules once they are valid. */
static int store_rules(char *member, const char *value, const char *workload, const char *bands, char *why,
		       size_t why_size)
{
	struct rules rules;

	if (rules__parse(&rules, workload, bands, why, why_size))
		return -EINVAL;
	strncpy(member, value, VAPRO_TEXT_MAX - 1); /* fills it with zeros; rules__parse() refuses what is longer */
	return 0;
}

static int set_workload(void *member, const char *value, char *why, size_t why_size)
{
	return store_rules(member, value, value, "", why, why_size);
}

static int set_bands(void *member, const char *value, char *why, size_t why_size)
{
	return store_rules(member, value, "", value, why, why_size);
}

static bool write_text(const void *member, size_t n, char *text, size_t size)
{
	snprintf(text, size, "%s", (const char *)member);
	return !n;
}

/* The types of vapro/tunables.def; words are in the order of their enum. */
#define TYPE_SHARE(least, most) .type = OPTION_SHARE, .min = (least), .max = (most)
#define TYPE_PERCENT(least, most) .type = OPTION_PERCENT, .min = (least), .max = (most)
#define TYPE_SECONDS(least, most) .type = OPTION_SECONDS, .min = (least), .max = (most)
#define TYPE_UINT(least, most) .type = OPTION_UINT, .min = (least), .max = (most)
#define TYPE_SIZE(least, most) .type = OPTION_SIZE, .min = (least), .max = (most)
#define TYPE_POWER(least, most) .type = OPTION_POWER, .min = (least), .max = (most)
#define TYPE_BOOL(least, most) .type = OPTION_BOOL
#define TYPE_TEXT(least, most) .type = OPTION_TEXT, .max = VAPRO_TEXT_MAX - 1
#define TYPE_PATH(least, most) TYPE_TEXT(least, most), .value = "PATH"
#define TYPE_WORKLOAD(least, most) .type = OPTION_CUSTOM, .value = "LIST", .read = set_workload, .write = write_text
#define TYPE_BANDS(least, most) .type = OPTION_CUSTOM, .value = "LIST", .read = set_bands, .write = write_text
#define TYPE_FUNCTIONS(least, most) .type = OPTION_CUSTOM, .value = "ROW", .read = add_functions, .write = write_text
#define TYPE_TRISTATE(least, most) .type = OPTION_WORD, .words = "off|on|auto"
#define TYPE_REFERENCE(least, most) .type = OPTION_WORD, .words = "typical|fastest"
#define TYPE_ATTACH(least, most) .type = OPTION_WORD, .words = "auto|session|multi|perf"
#define TYPE_STATES(least, most) .type = OPTION_WORD, .words = "call-site|call-path"
/* test: clocks in place of counters, for tests of what reads these */
#define TYPE_COUNTERS(least, most)                                                                                     \
	.type = OPTION_WORD, .words = "auto|hardware|none|test", .value = "auto|hardware|none"

const struct option_row vapro_tunables[] = {
#define TUNABLE(LEVEL, GROUP, TYPE, MEMBER, NAME, INITIAL, MIN, MAX, HELP)                                             \
	{.name = NAME,                                                                                                 \
	 .help = HELP,                                                                                                 \
	 .initial = INITIAL,                                                                                           \
	 .level = OPTION_##LEVEL,                                                                                      \
	 .group = VAPRO_GROUP_##GROUP,                                                                                 \
	 .offset = offsetof(struct vapro_config, MEMBER),                                                              \
	 TYPE_##TYPE(MIN, MAX)},
#define CONSTANT(TYPE, MEMBER, VALUE)
#include <vapro/tunables.def>
};

const size_t vapro_tunable_count = sizeof(vapro_tunables) / sizeof(vapro_tunables[0]);

const struct option_row *config__find(const char *name)
{
	static const struct option_row older = OPTION_ALIAS_ROW("user-function", "function");

	if (option__is_named(&older, name))
		name = older.words;
	for (size_t i = 0; i < vapro_tunable_count; i++)
		if (option__is_named(&vapro_tunables[i], name))
			return &vapro_tunables[i];
	return NULL;
}

void config__init(struct vapro_config *config)
{
	memset(config, 0, sizeof(*config));
#define TUNABLE(LEVEL, GROUP, TYPE, MEMBER, NAME, INITIAL, MIN, MAX, HELP)
#define CONSTANT(TYPE, MEMBER, VALUE) config->MEMBER = VALUE;
#include <vapro/tunables.def>
	for (size_t i = 0; i < vapro_tunable_count; i++)
		option__set(&vapro_tunables[i], config, vapro_tunables[i].initial, false, "", NULL, 0);
}

void config__format(const struct vapro_config *config, const struct option_row *tunable, char *text, size_t size)
{
	option__format(tunable, config, 0, text, size);
}

#define EVENT_PREFIX "event "

bool config__is_event(const char *name)
{
	return !strncmp(name, EVENT_PREFIX, strlen(EVENT_PREFIX));
}

/* Adds a site's own encoding of an event; the last one of a name counts. */
static int set_event(struct vapro_config *config, const char *name, const char *value, const char *prefix, char *err,
		     size_t err_size)
{
	struct vapro_event_spec *event = config->events;

	while (isspace((unsigned char)*name))
		name++;
	if (!*name || strlen(name) >= sizeof(event->name) || !value || strlen(value) >= sizeof(event->spec)) {
		snprintf(err, err_size, "%sevent: expected such as `event NAME=cpu/event=0xc0,umask=0/`", prefix);
		return -EINVAL;
	}
	while (event < config->events + config->event_count && strcmp(event->name, name))
		event++;
	if (event == config->events + VAPRO_EVENT_SPECS) {
		snprintf(err, err_size, "%sevent %s: only %d events can be given", prefix, name, VAPRO_EVENT_SPECS);
		return -EINVAL;
	}
	snprintf(event->name, sizeof(event->name), "%s", name);
	snprintf(event->spec, sizeof(event->spec), "%s", value);
	if (event == config->events + config->event_count)
		config->event_count++;
	return 0;
}

int config__set_from(struct vapro_config *config, const char *name, const char *value, const char *prefix, char *err,
		     size_t err_size)
{
	const struct option_row *tunable = config__find(name);

	if (config__is_event(name))
		return set_event(config, name + strlen(EVENT_PREFIX), value, prefix, err, err_size);
	if (!tunable) {
		snprintf(err, err_size, "unknown setting '%s'", name);
		return -ENOENT;
	}
	if (!value && !option__may_be_alone(tunable))
		value = "";
	return option__set(tunable, config, value, false, prefix, err, err_size);
}

int config__set(struct vapro_config *config, const char *name, const char *value, char *err, size_t err_size)
{
	return config__set_from(config, name, value, "--", err, err_size);
}
