// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/shortened.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define GAP "..."

static bool is_continuation(char byte)
{
	return (byte & 0xc0) == 0x80;
}

char *shortened(const char *text, char *buf, size_t size)
{
	size_t length = strlen(text), ends = size - sizeof(GAP), head = ends / 2, tail = length - (ends - head);

	if (length < size) {
		memcpy(buf, text, length + 1);
		return buf;
	}
	while (head && is_continuation(text[head]))
		head--;
	while (tail < length && is_continuation(text[tail]))
		tail++;
	snprintf(buf, size, "%.*s" GAP "%s", (int)head, text, text + tail);
	return buf;
}
