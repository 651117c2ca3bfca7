/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts in buffers: append, cut blanks off, hash. */
#ifndef VAPRO_BASE_TEXT_H
#define VAPRO_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Appends to text, which has size bytes; the end is cut where it does not fit. */
__attribute__((format(printf, 3, 4))) void text__append(char *text, size_t size, const char *format, ...);

/* Cuts blanks off both ends, in place. Returns the first character that is none. */
char *text__trim(char *text);

/* FNV-1a, equal on all machines. */
static inline uint64_t text__hash(const char *text, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ULL;
	return hash;
}

#endif
