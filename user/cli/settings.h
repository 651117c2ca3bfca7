/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration files: where they are, how they are read, and how a configuration is printed. */
#ifndef VAPRO_SETTINGS_H
#define VAPRO_SETTINGS_H

#include <stddef.h>
#include <stdio.h>

#include "config/tunables.h"

struct command_line;

#define SETTINGS_FILE "/etc/vapro/vapro.conf"
#define SETTINGS_OLD_FILE "/etc/vapro.conf" /* where the other does not exist */
#define SETTINGS_DROP_INS "/etc/vapro/vapro.conf.d/*.conf"

/*
 * Reads path alone, or where it is NULL the files of the site, drop-ins last and in the order of their names; root is
 * put before their paths ("" but in tests). Names each file that was read on report, or says
 * that there is none, unless report is NULL. Returns how many
 * files were read, 0 where the site has none, or a negative errno with a sentence in err.
 */
int settings__read(struct vapro_config *config, const char *path, const char *root, const struct config_others *others,
		   FILE *report, char *err, size_t err_size);

/* Settings of vaprod that a command reads over. */
extern const struct config_others settings_of_vaprod;

/*
 * Prints a configuration as a file that reads as the same: each setting with its help, as a comment where it has its
 * default. line: the settings of vaprod; initial: their defaults.
 */
void settings__print(const struct vapro_config *config, const struct command_line *line,
		     const struct command_line *initial, FILE *out);

#endif
