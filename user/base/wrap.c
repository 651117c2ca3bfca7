/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/wrap.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* Returns the length of the word at text; a unit belongs to the number before it. */
static size_t word_length(const char *text)
{
	static const char *const units[] = {"%", "s", "ms", "us", "min", "h"};
	size_t length = strcspn(text, " ");

	if (!length || text[length] != ' ' || !isdigit((unsigned char)text[length - 1]))
		return length;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t unit = strlen(units[i]);
		const char *after = text + length + 1;

		if (!strncmp(after, units[i], unit) && !isalnum((unsigned char)after[unit]))
			return length + 1 + strcspn(after, " ");
	}
	return length;
}

/* Returns a length of at most `most` bytes that ends at a character's end. */
static size_t cut(const char *text, size_t most)
{
	size_t length = most;

	while (length > 1 && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return length;
}

void wrap__print(FILE *out, const char *head, const char *text, unsigned indent, unsigned width)
{
	unsigned column = (unsigned)fprintf(out, "%s", head), room = width > indent + 8 ? width - indent : 8;

	for (; column < indent; column++)
		putc(' ', out);
	while (*text) {
		size_t word = word_length(text);

		if (word > room)
			word = cut(text, room);
		if (column > indent && column + 1 + word > width)
			column = (unsigned)fprintf(out, "\n%*s", (int)indent, "") - 1;
		else if (column > indent)
			column += (unsigned)fprintf(out, " ");
		column += (unsigned)fprintf(out, "%.*s", (int)word, text);
		text += word;
		text += strspn(text, " ");
	}
	putc('\n', out);
}
