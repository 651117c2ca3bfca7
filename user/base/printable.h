/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts of users (names, paths, symbols) may hold control characters, which a terminal obeys. */
#ifndef VAPRO_PRINTABLE_H
#define VAPRO_PRINTABLE_H

#include <stddef.h>

/*
 * Replaces control characters by question marks: C0 and DEL, and C1 (0x80 to 0x9f) both as UTF-8 and as
 * bytes of no UTF-8; and the characters of Unicode that reorder the text around them or break its line, such as U+202E
 * (right-to-left override). Other bytes stay. Returns text; NULL is fine.
 */
char *printable(char *text);

/* Does the same for a text of this length. */
void printable__bytes(char *text, size_t length);

#endif
