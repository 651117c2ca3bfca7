/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets tunables, from the command line and from files. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <vapro/config.h>

#include "base/suggestion.h"
#include "base/units.h"
#include "config/config_file.h"
#include "config/config_words.h"
#include "config/rules.h"
#include "functions/user_rows.h"

/* The hello record and captures spell names with _, the command line with -. */
static bool name_equal(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		if ((*a == '_' ? '-' : *a) != (*b == '_' ? '-' : *b))
			return false;
	}
	return *a == *b;
}

const struct vapro_option *config__find(const char *name)
{
	if (name_equal("user-function", name))
		name = "function";
	for (size_t i = 0; i < vapro_option_count; i++) {
		if (name_equal(vapro_options[i].name, name))
			return &vapro_options[i];
	}
	return NULL;
}

static bool parse_bool(const char *text, bool *value)
{
	static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no", "off", "0"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
			*value = !strcmp(text, yes[i]);
			return true;
		}
	}
	return false;
}

/* Numbers by type: how they are read, what they are called, and how they are written. */
static const struct {
	int (*read)(const char *text, double *number);
	const char *noun, *form;
} numbers[] = {
    [VAPRO_OPT_DOUBLE] = {units__number, "number", ""},
    [VAPRO_OPT_UINT] = {units__number, "number", ""},
    [VAPRO_OPT_SHARE] = {units__share, "share", ""},
    [VAPRO_OPT_PERCENT] = {units__percent, "percentage", ""},
    [VAPRO_OPT_SECONDS] = {units__seconds, "duration", UNITS_TIME},
    [VAPRO_OPT_SIZE] = {units__bytes, "size", UNITS_SIZE},
};

/* Writes a bound of a tunable's range as the tunable is written. */
static void format_bound(const struct vapro_option *option, double bound, char *text, size_t size)
{
	switch (option->type) {
	case VAPRO_OPT_SHARE:
		units__format_share(bound, text, size);
		break;
	case VAPRO_OPT_PERCENT:
		units__format_percent(bound, text, size);
		break;
	case VAPRO_OPT_SECONDS:
		units__format_seconds(bound, text, size);
		break;
	case VAPRO_OPT_SIZE:
		units__format_bytes((unsigned long long)bound, text, size);
		break;
	default:
		snprintf(text, size, "%.15g", bound);
		break;
	}
}

/* Says what is wrong with a value; wrong: NULL if it cannot be read at all. */
static int refuse_number(const struct vapro_option *option, const char *wrong, const char *prefix, const char *value,
			 char *err, size_t err_size)
{
	const char *form = numbers[option->type].form;
	char least[32], most[32], what[160];

	format_bound(option, option->min, least, sizeof(least));
	format_bound(option, option->max, most, sizeof(most));
	if (wrong)
		snprintf(what, sizeof(what), "'%.64s' is %s", value, wrong);
	else
		snprintf(what, sizeof(what), "invalid %s '%.64s'", numbers[option->type].noun, value);
	snprintf(err, err_size, "%s%s: %s; expected %s to %s%s%s", prefix, option->name, what, least, most,
		 *form ? ", " : "", form);
	return -EINVAL;
}

static int set_number(struct vapro_config *config, const struct vapro_option *option, const char *prefix,
		      const char *value, char *err, size_t err_size)
{
	char *member = (char *)config + option->offset;
	double number;

	if (numbers[option->type].read(value, &number))
		return refuse_number(option, NULL, prefix, value, err, err_size);
	if (number < option->min || number > option->max)
		return refuse_number(option, "out of range", prefix, value, err, err_size);
	if (option->type != VAPRO_OPT_UINT && option->type != VAPRO_OPT_SIZE) {
		memcpy(member, &number, sizeof(number));
		return 0;
	}
	if (number != floor(number))
		return refuse_number(
		    option, option->type == VAPRO_OPT_SIZE ? "not a whole number of bytes" : "not a whole number",
		    prefix, value, err, err_size);

	uint64_t whole = (uint64_t)number;

	if (option->offset == offsetof(struct vapro_config, ring_bytes) && (whole & (whole - 1)))
		return refuse_number(option, "not a power of two", prefix, value, err, err_size);
	memcpy(member, &whole, sizeof(whole));
	return 0;
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]); end--)
		;
	*end = 0;
	return text;
}

/* Every entry is parsed at once, so that the error can name the wrong one. */
static int add_functions(char *member, const struct vapro_option *option, const char *prefix, const char *value,
			 char *err, size_t err_size)
{
	char read[VAPRO_FUNCTIONS_TEXT], texts[VAPRO_FUNCTIONS_TEXT], scratch[1024], why[256], *rest = NULL;
	struct function_row row;

	if ((size_t)snprintf(texts, sizeof(texts), "%s", value) >= sizeof(texts))
		goto too_long;
	snprintf(read, sizeof(read), "%s", *value ? member : "");
	for (char *text = strtok_r(texts, ";", &rest); text; text = strtok_r(NULL, ";", &rest)) {
		size_t used = strlen(read);

		text = trim(text);
		if (user_rows__parse(text, &row, scratch, sizeof(scratch), why, sizeof(why))) {
			snprintf(err, err_size, "%s%s: %s", prefix, option->name, why);
			return -EINVAL;
		}
		if ((size_t)snprintf(read + used, sizeof(read) - used, "%s%s", used ? "; " : "", text) >=
		    sizeof(read) - used)
			goto too_long;
	}
	memset(member, 0, VAPRO_FUNCTIONS_TEXT);
	memcpy(member, read, strlen(read));
	return 0;
too_long:
	snprintf(err, err_size, "%s%s: too many functions", prefix, option->name);
	return -EINVAL;
}

/* The list is parsed at once, so that the error can name the wrong item. */
static int set_events(char *member, const struct vapro_option *option, const char *prefix, const char *value, char *err,
		      size_t err_size)
{
	bool bands = option->offset == offsetof(struct vapro_config, bands);
	struct rules rules;
	char why[256];

	if (rules__parse(&rules, bands ? "" : value, bands ? value : "", why, sizeof(why))) {
		snprintf(err, err_size, "%s%s: %s", prefix, option->name, why);
		return -EINVAL;
	}
	memset(member, 0, VAPRO_TEXT_MAX);
	strcpy(member, value);
	return 0;
}

#define EVENT_PREFIX "event "

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

static int set(struct vapro_config *config, const char *name, const char *value, const char *prefix, char *err,
	       size_t err_size)
{
	const struct vapro_option *option = config__find(name);
	const char *const *words;
	char expected[64];

	if (!strncmp(name, EVENT_PREFIX, strlen(EVENT_PREFIX)))
		return set_event(config, name + strlen(EVENT_PREFIX), value, prefix, err, err_size);
	if (!option) {
		snprintf(err, err_size, "unknown setting '%s'", name);
		return -ENOENT;
	}
	if (option->type == VAPRO_OPT_BOOL) {
		bool *member = (bool *)((char *)config + option->offset);

		/* a bare --no-return means yes */
		if (parse_bool(value ? value : "true", member))
			return 0;
		snprintf(err, err_size, "%s%s: '%s' is unknown; expected yes or no", prefix, option->name, value);
		return -EINVAL;
	}
	if (option->type == VAPRO_OPT_FUNCTIONS)
		return add_functions((char *)config + option->offset, option, prefix, value ? value : "", err,
				     err_size);
	if (option->type == VAPRO_OPT_EVENTS && value)
		return set_events((char *)config + option->offset, option, prefix, value, err, err_size);
	if ((option->type == VAPRO_OPT_TEXT || option->type == VAPRO_OPT_PATH) && value) {
		if (strlen(value) < VAPRO_TEXT_MAX) {
			strcpy((char *)config + option->offset, value);
			return 0;
		}
		snprintf(err, err_size, "%s%s: the value is longer than %d bytes", prefix, option->name,
			 VAPRO_TEXT_MAX - 1);
		return -EINVAL;
	}
	if (!value || !*value) {
		snprintf(err, err_size, "%s%s: a value is missing", prefix, option->name);
		return -EINVAL;
	}
	words = config__words(option->type);
	if (!words)
		return set_number(config, option, prefix, value, err, err_size);
	for (unsigned word = 0; words[word]; word++) {
		if (!strcmp(words[word], value)) {
			memcpy((char *)config + option->offset, &word, sizeof(word));
			return 0;
		}
	}
	config__join(words, ", ", " or ", expected, sizeof(expected));
	snprintf(err, err_size, "%s%s: '%s' is unknown; expected %s", prefix, option->name, value, expected);
	return -EINVAL;
}

int config__set(struct vapro_config *config, const char *name, const char *value, char *err, size_t err_size)
{
	return set(config, name, value, "--", err, err_size);
}

struct reading {
	struct vapro_config config; /* a bad file changes nothing */
	const struct config_others *others;
};

/* Returns the group of a setting, or VAPRO_GROUPS; *own: it is a tunable. Misspelt names get a suggestion. */
static enum vapro_group group_of(const struct reading *reading, const char *name, bool *own,
				 struct suggestion *suggestion)
{
	const struct vapro_option *option = config__find(name);
	enum vapro_group group = VAPRO_GROUPS;
	const char *other;

	*own = option || !strncmp(name, EVENT_PREFIX, strlen(EVENT_PREFIX));
	if (*own)
		return option ? option->group : VAPRO_GROUP_KERNEL_EXPERT;
	for (size_t n = 0; reading->others && (other = reading->others->name(reading->others->ctx, n, &group)); n++) {
		if (name_equal(other, name))
			return group;
		suggestion__offer(suggestion, other);
	}
	for (size_t i = 0; i < vapro_option_count; i++)
		suggestion__offer(suggestion, vapro_options[i].name);
	return VAPRO_GROUPS;
}

static int check_section(const struct config_line *line, char *err, size_t err_size)
{
	struct suggestion suggestion = {.text = line->section};

	for (int i = 0; i < VAPRO_GROUPS; i++) {
		if (!strcmp(vapro_groups[i].section, line->section))
			return 0;
		suggestion__offer(&suggestion, vapro_groups[i].section);
	}
	snprintf(err, err_size, "%sunknown section [%s]%s%s%s", line->prefix, line->section,
		 suggestion.best ? "; did you mean [" : "", suggestion.best ? suggestion.best : "",
		 suggestion.best ? "]?" : "");
	return -EINVAL;
}

static int read_line(void *ctx, const struct config_line *line, char *err, size_t err_size)
{
	struct reading *reading = ctx;
	struct suggestion suggestion = {.text = line->name};
	enum vapro_group group;
	bool own;

	if (!line->value)
		return check_section(line, err, err_size);
	group = group_of(reading, line->name, &own, &suggestion);
	if (group == VAPRO_GROUPS) {
		snprintf(err, err_size, "%sunknown setting '%s'%s%s%s", line->prefix, line->name,
			 suggestion.best ? "; did you mean '" : "", suggestion.best ? suggestion.best : "",
			 suggestion.best ? "'?" : "");
		return -ENOENT;
	}
	if (*line->section && strcmp(line->section, vapro_groups[group].section)) {
		snprintf(err, err_size, "%s%s belongs to [%s], not to [%s]", line->prefix, line->name,
			 vapro_groups[group].section, line->section);
		return -EINVAL;
	}
	if (own)
		return set(&reading->config, line->name, line->value, line->prefix, err, err_size);
	return reading->others->set(reading->others->ctx, line->name, line->value, line->prefix, err, err_size);
}

int config__read(struct vapro_config *config, const char *path, const struct config_others *others, char *err,
		 size_t err_size)
{
	struct reading reading = {.config = *config, .others = others};
	int ret = config_file__read(path, read_line, &reading, err, err_size);

	if (!ret)
		*config = reading.config;
	return ret;
}
