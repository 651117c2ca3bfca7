/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that root writes, where a user may have put something else in their place: a symbolic link is
 * not followed, and opening never waits. Only regular files, FIFOs, terminals, null and full are opened.
 */
#ifndef VAPRO_COLLECT_OUTPUT_FILE_H
#define VAPRO_COLLECT_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum output_file_mode {
	OUTPUT_FILE_REPLACE, /* a regular file is emptied */
	OUTPUT_FILE_APPEND,  /* earlier content stays, each write goes to the end */
};

/*
 * Opens path for writing, non-blocking, and creates a missing file with these permissions.
 * /dev/stdout and /dev/fd/N name descriptors of this process and may be links. Returns the descriptor
 * with *status filled, or -1 with an errno that output_file__reason() explains.
 */
int output_file__open(const char *path, enum output_file_mode mode, mode_t permissions, struct stat *status);

/* Explains an errno of output_file__open(), as the end of a sentence. */
const char *output_file__reason(int error);

/* Reads a file back although fd is open for writing only. Returns whether all bytes could be read. */
bool output_file__read(int fd, off_t offset, void *bytes, size_t size);

#endif
