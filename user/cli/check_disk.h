/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The room that is left where vaprod would write its files, for vapro check. */
#ifndef VAPRO_CHECK_DISK_H
#define VAPRO_CHECK_DISK_H

#include <stdbool.h>
#include <stddef.h>

#include "config/option.h"

#define CHECK_DISK_PATH 512

/* The files that the configuration names; "" where it names none. */
struct check_disk {
	char output[CHECK_DISK_PATH], capture[CHECK_DISK_PATH];
};

/* Remembers a setting if it is such a file: `set` of struct config_others, ctx is a struct check_disk. */
int check_disk__set(void *ctx, const struct option_row *row, const char *value, const char *prefix, char *err,
		    size_t err_size);

/*
 * Writes how much is free in the folder of a file, "" for the current folder; or why that is unknown. Returns whether
 * it is known and more than little.
 */
bool check_disk__room(const char *file, char *text, size_t size);

#endif
