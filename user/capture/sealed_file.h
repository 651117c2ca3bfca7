/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of state as bytes (base/archive.h) that stand for more than one run: profiles of nodes and of runs. They are
 * replaced as a whole, are readable for their owner alone, and are read only where no other user can have written them.
 */
#ifndef VAPRO_SEALED_FILE_H
#define VAPRO_SEALED_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the bytes to a new file beside the path, with mode 0600, and moves it to its place; it is removed where that
 * fails. What is no regular file is not replaced (-EINVAL). Returns 0 or a negative errno.
 */
int sealed_file__replace(const char *path, const uint8_t *data, size_t size);

/*
 * Reads a regular file of at most `most` bytes that only its owner can write, to be freed. Returns 0, or a negative
 * errno with the end of a sentence in why.
 */
int sealed_file__read(const char *path, size_t most, uint8_t **data, size_t *size, char *why, size_t why_size);

#endif
