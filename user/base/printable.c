// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/printable.h"

#include <stdbool.h>
#include <string.h>

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Returns the bytes of the character at `at`: 1 for ASCII and for invalid UTF-8. */
static size_t character_bytes(const unsigned char *at, size_t left)
{
	size_t bytes = *at >= 0xf0 && *at < 0xf5   ? 4
		       : *at >= 0xe0 && *at < 0xf0 ? 3
		       : *at >= 0xc2 && *at < 0xe0 ? 2
						   : 1;

	if (bytes > left)
		return 1;
	for (size_t i = 1; i < bytes; i++) {
		if (!is_continuation(at[i]))
			return 1;
	}
	return bytes;
}

/*
 * Whether three bytes of UTF-8 are a character that reorders or breaks the line around it: U+200E, U+200F, U+2028 to
 * U+202E, U+2066 to U+2069. A name with one could look like another, and like part of the text behind it.
 */
static bool reorders(const unsigned char *at)
{
	if (at[0] != 0xe2)
		return false;
	return at[1] == 0x80 ? (at[2] >= 0x8e && at[2] <= 0x8f) || (at[2] >= 0xa8 && at[2] <= 0xae)
			     : at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9;
}

void printable__bytes(char *text, size_t length)
{
	unsigned char *at = (unsigned char *)text;

	for (size_t i = 0, bytes; i < length; i += bytes) {
		bytes = character_bytes(at + i, length - i);
		if (bytes == 1 && (at[i] < ' ' || (at[i] >= 0x7f && at[i] < 0xa0)))
			at[i] = '?';
		if (bytes == 2 && at[i] == 0xc2 && at[i + 1] < 0xa0)
			at[i] = at[i + 1] = '?';
		if (bytes == 3 && reorders(at + i))
			at[i] = at[i + 1] = at[i + 2] = '?';
	}
}

char *printable(char *text)
{
	if (text)
		printable__bytes(text, strlen(text));
	return text;
}
