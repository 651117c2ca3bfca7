// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads configuration files: sections, tunables, and the settings of a program beside them. */
#include "config/tunables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/suggestion.h"
#include "config/config_file.h"

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
	int ret = config_file__read(path, read_line, &reading, err, err_size);

	if (!ret)
		*config = reading.config;
	return ret;
}
