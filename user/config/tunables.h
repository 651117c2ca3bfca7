/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of tunables (vapro/tunables.def), and the configuration files that set them. */
#ifndef VAPRO_TUNABLES_H
#define VAPRO_TUNABLES_H

#include <vapro/config.h>

#include "config/option.h"

struct vapro_group_info {
	const char *section; /* as in [section] */
	const char *heading;
};

extern const struct vapro_group_info vapro_groups[VAPRO_GROUPS];

/* In the order of the groups; offsets are those of struct vapro_config. */
extern const struct option_row vapro_tunables[];
extern const size_t vapro_tunable_count;

/* Returns the tunable of a name, with - or _ and by older names, or NULL. */
const struct option_row *config__find(const char *name);

/* Writes the value of a tunable as text; VAPRO_FUNCTIONS_TEXT bytes hold each. */
void config__format(const struct vapro_config *config, const struct option_row *tunable, char *text, size_t size);

/* Sets a tunable, or an event, of which a message begins with prefix. Returns as config__set(). */
int config__set_from(struct vapro_config *config, const char *name, const char *value, const char *prefix, char *err,
		     size_t err_size);

/* Whether a setting defines an event: `event NAME`. */
bool config__is_event(const char *name);

/* Settings of a program that stand in the same file but are no tunables. */
struct config_others {
	/* Returns the n-th setting, and its group, or NULL behind the last one; the row of an older name is its alias.
	 */
	const struct option_row *(*row)(size_t n, enum vapro_group *group);
	/* Returns 0, or a negative errno with a sentence in err that begins with prefix. */
	int (*set)(void *ctx, const struct option_row *row, const char *value, const char *prefix, char *err,
		   size_t err_size);
	void *ctx;
};

/*
 * Reads [section] and `name = value` lines (config/config_file.h); each setting belongs to the section of its group, or
 * stands before the first section. others may be NULL. Returns 0 or a negative errno with a sentence in err; then
 * config is unchanged.
 */
int config__read(struct vapro_config *config, const char *path, const struct config_others *others, char *err,
		 size_t err_size);

#endif
