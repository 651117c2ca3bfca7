// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t utf8__length(const char *text)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = (unsigned char)*text;
	size_t length = first < 0x80		 ? 1
			: (first & 0xe0) == 0xc0 ? 2
			: (first & 0xf0) == 0xe0 ? 3
			: (first & 0xf8) == 0xf0 ? 4
						 : 0;
	uint32_t code;

	if (length < 2)
		return length;
	code = first & (0xff >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		unsigned char next = (unsigned char)text[i];

		if ((next & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (next & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

char *utf8__valid(const char *text)
{
	char *valid = malloc(strlen(text) + 1);
	size_t used = 0;

	if (!valid)
		return NULL;
	while (*text) {
		size_t length = utf8__length(text);

		if (length)
			memcpy(valid + used, text, length);
		else
			valid[used] = '?';
		used += length ? length : 1;
		text += length ? length : 1;
	}
	valid[used] = '\0';
	return valid;
}
