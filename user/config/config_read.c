// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads configuration files: sections, tunables, and the settings of a program beside them. */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/suggestion.h"
#include "base/text.h"
#include "config/tunables.h"

struct config_line {
	const char *section;	  /* "" before the first */
	const char *name, *value; /* value NULL: the line is the head of the section */
	const char *prefix;	  /* "FILE:LINE: ", for messages */
};

/* Returns 0, or a negative errno with a sentence in err, which ends the reading. */
typedef int (*config_file_line)(void *ctx, const struct config_line *line, char *err, size_t err_size);

#define SECTION_BYTES 64
#define LINE_BYTES 16384

static void cut_comment(char *text)
{
	for (char *at = text; *at; at++) {
		if (*at == '#' && (at == text || isspace((unsigned char)at[-1]))) {
			*at = 0;
			return;
		}
	}
}

/* Reads one trimmed line; section holds the last section's name. */
static int parse_line(char *text, char *section, const char *prefix, config_file_line call, void *ctx, char *err,
		      size_t err_size)
{
	struct config_line line = {.section = section, .name = text, .prefix = prefix};
	size_t length = strlen(text);
	char *value;

	if (*text == '[') {
		if (text[length - 1] != ']' || length - 2 >= SECTION_BYTES) {
			snprintf(err, err_size, "%sexpected '[section]', found '%s'", prefix, text);
			return -EINVAL;
		}
		text[length - 1] = 0;
		snprintf(section, SECTION_BYTES, "%s", text__trim(text + 1));
		line.name = section;
		return call(ctx, &line, err, err_size);
	}
	value = strchr(text, '=');
	if (!value) {
		snprintf(err, err_size, "%sexpected 'name = value', found '%s'", prefix, text);
		return -EINVAL;
	}
	*value++ = 0;
	line.name = text__trim(text);
	line.value = text__trim(value);
	return call(ctx, &line, err, err_size);
}

/* Calls `line` for each line. Returns 0 or a negative errno with a sentence in err. */
static int read_file(const char *path, config_file_line call, void *ctx, char *err, size_t err_size)
{
	char line[LINE_BYTES], prefix[512], section[SECTION_BYTES] = "";
	unsigned number = 0;
	int ret = 0;
	FILE *file = fopen(path, "re");

	if (!file) {
		ret = -errno;
		snprintf(err, err_size, "%s: %s", path, strerror(-ret));
		return ret;
	}
	errno = 0;
	while (!ret && fgets(line, sizeof(line), file)) {
		char *text;

		number++;
		if (!strchr(line, '\n') && !feof(file)) { /* NUL bytes hide the end of a line, too */
			snprintf(err, err_size, "%s:%u: not a line of text of at most %d bytes", path, number,
				 LINE_BYTES - 2);
			ret = -EINVAL;
			break;
		}
		cut_comment(line);
		text = text__trim(line);
		if (!*text || *text == ';')
			continue;
		snprintf(prefix, sizeof(prefix), "%s:%u: ", path, number);
		ret = parse_line(text, section, prefix, call, ctx, err, err_size);
	}
	if (!ret && ferror(file)) {
		ret = errno ? -errno : -EIO;
		snprintf(err, err_size, "%s: %s", path, strerror(-ret));
	}
	fclose(file);
	return ret;
}

struct reading {
	struct vapro_config config; /* a bad file changes nothing */
	const struct config_others *others;
};

/* A setting of a file: a tunable (row NULL), or of a program. */
struct setting {
	const struct option_row *row;
	enum vapro_group group; /* VAPRO_GROUPS: there is no such setting */
};

/* Finds a setting by its name. Misspelt names get a suggestion. */
static struct setting find(const struct reading *reading, const char *name, struct suggestion *suggestion)
{
	const struct option_row *row = config__find(name);
	enum vapro_group group = VAPRO_GROUPS;

	if (row || config__is_event(name))
		return (struct setting){.group = row ? row->group : VAPRO_GROUP_KERNEL};
	for (size_t n = 0; reading->others && (row = reading->others->row(n, &group)); n++) {
		if (option__is_named(row, name))
			return (struct setting){row, group};
		if (row->level != OPTION_HIDDEN)
			suggestion__offer(suggestion, row->name);
	}
	for (size_t i = 0; i < vapro_tunable_count; i++)
		suggestion__offer(suggestion, vapro_tunables[i].name);
	return (struct setting){.group = VAPRO_GROUPS};
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
	struct setting setting;

	if (!line->value)
		return check_section(line, err, err_size);
	setting = find(reading, line->name, &suggestion);
	if (setting.group == VAPRO_GROUPS) {
		snprintf(err, err_size, "%sunknown setting '%s'%s%s%s", line->prefix, line->name,
			 suggestion.best ? "; did you mean '" : "", suggestion.best ? suggestion.best : "",
			 suggestion.best ? "'?" : "");
		return -ENOENT;
	}
	if (*line->section && strcmp(line->section, vapro_groups[setting.group].section)) {
		snprintf(err, err_size, "%s%s belongs to [%s], not to [%s]", line->prefix, line->name,
			 vapro_groups[setting.group].section, line->section);
		return -EINVAL;
	}
	if (!setting.row)
		return config__set_from(&reading->config, line->name, line->value, line->prefix, err, err_size);
	return reading->others->set(reading->others->ctx, setting.row, line->value, line->prefix, err, err_size);
}

int config__read(struct vapro_config *config, const char *path, const struct config_others *others, char *err,
		 size_t err_size)
{
	struct reading reading = {.config = *config, .others = others};
	int ret = read_file(path, read_line, &reading, err, err_size);

	if (!ret)
		*config = reading.config;
	return ret;
}
