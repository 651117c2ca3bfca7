/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines in a file of zstd frames: each frame holds whole lines and is written at once, so that what a killed writer
 * leaves is whole frames and at most one torn one at the end. `zstd -dc` reads such files.
 */
#ifndef VAPRO_PACKED_LINES_H
#define VAPRO_PACKED_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Whether a path names such a file: it ends in ".zst". */
bool packed_lines__is_named(const char *path);

/*
 * Finds the end of the last whole frame of a file. Returns 0; -EBADMSG where something else than frames is in it, or
 * another negative errno.
 */
int packed_lines__whole(int fd, off_t size, off_t *end);

/* Packs lines as one frame, malloc'ed. Returns 0 or -ENOMEM. */
int packed_lines__pack(const char *lines, size_t length, char **frame, size_t *size);

/*
 * Opens a file of lines to be read, packed or not; what is packed is unpacked into an unnamed file in /tmp.
 * A torn frame at the end counts as far as it goes. Returns NULL with errno set, EBADMSG for a damaged file.
 */
FILE *packed_lines__open(const char *path);

/*
 * Returns the file itself, or what is unpacked of it, where it begins as a zstd frame does: then it is another file,
 * and the caller closes both. Returns NULL with errno set.
 */
FILE *packed_lines__unpacked(FILE *file);

#endif
