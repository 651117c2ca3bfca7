/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles of runs in files, and a directory of them for one program, which is bounded: the oldest go first. A file is
 * for its owner alone.
 */
#ifndef VAPRO_PROFILE_FILE_H
#define VAPRO_PROFILE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/profile.h"

#define PROFILE_FILE_END ".profile"
#define PROFILE_FILES_MOST 100		     /* of a program */
#define PROFILE_BYTES_MOST (64UL << 20)	     /* of all of these */
#define PROFILE_FILE_BYTES_MOST (16UL << 20) /* of one */

/* Writes an ended profile, whose samples become fewer. Returns 0, or a negative errno with a sentence in err. */
int profile_file__write(const char *path, struct profile *profile, char *err, size_t err_size);

/* Reads one, which is ended, to be freed. Returns as profile_file__write(). */
int profile_file__read(const char *path, struct profile **profile, char *err, size_t err_size);

/* Whether a file begins as a profile does. */
bool profile_file__is(const char *path);

/*
 * Lists the profiles of a directory by name, which begins with their time, oldest first; to be freed, as its texts.
 * Returns their number, or a negative errno.
 */
int profile_file__list(const char *directory, char ***names);

/* Removes the oldest profiles of a directory until those that stay are few and small enough. Returns 0 or -errno. */
int profile_file__bound(const char *directory, size_t files_most, uint64_t bytes_most);

#endif
