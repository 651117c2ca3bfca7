/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Users' texts are bytes; files of JSON, CSV and XML hold valid UTF-8 only. */
#ifndef VAPRO_UTF8_H
#define VAPRO_UTF8_H

#include <stddef.h>

/* Returns the bytes of the valid UTF-8 sequence at text, or 0 where there is none. */
size_t utf8__length(const char *text);

/* Returns a copy in which each byte of no valid sequence is a question mark. malloc'ed, NULL when out of memory. */
char *utf8__valid(const char *text);

#endif
