/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Long paths in messages: both ends say something, the middle of a padded one does not. */
#ifndef VAPRO_SHORTENED_H
#define VAPRO_SHORTENED_H

#include <stddef.h>

/*
 * Copies a text to buf, of size bytes, at least 16; the middle of one that does not fit is replaced by "...". No
 * sequence of UTF-8 is cut. Returns buf.
 */
char *shortened(const char *text, char *buf, size_t size);

#endif
