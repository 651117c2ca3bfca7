/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows that a site writes: IMAGE:SYMBOL [class=...] [count=N] [type=N] [peer=N] [root=N] [op=N]
 * [comm=N]. IMAGE is a glob of the mapped file's base name, or `exe`, the main executable.
 * Without a class it is `user`: a boundary in the program's own computation. With communication, io
 * or thread it is an external function like the built-in ones, whose arguments the numbers name.
 */
#ifndef VAPRO_USER_ROWS_H
#define VAPRO_USER_ROWS_H

#include <stddef.h>

#include "functions/functions.h"

#define USER_ROWS_MAX 64

/* Reads one row. Its texts lie in copy, which must hold the text. Returns 0, or -EINVAL with a sentence. */
int user_rows__parse(const char *text, struct function_row *row, char *copy, size_t copy_size, char *err,
		     size_t err_size);

/*
 * Adds rows, separated by semicolons, to the table; numbers has room for USER_ROWS_MAX. Returns how many
 * there are, or -errno with a sentence.
 */
int user_rows__add(const char *texts, unsigned int *numbers, char *err, size_t err_size);

#endif
