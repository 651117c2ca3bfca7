// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/suggestion.h"

#include <string.h>

#define NAME_MOST 64

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns how many characters must be inserted, removed, replaced or swapped with their neighbour (Damerau, 1964). */
static size_t distance_of(const char *a, const char *b)
{
	size_t row[3][NAME_MOST + 1], m = strlen(a), n = strlen(b);

	if (m > NAME_MOST || n > NAME_MOST)
		return NAME_MOST;
	for (size_t j = 0; j <= n; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= m; i++) {
		size_t *now = row[i % 3], *before = row[(i + 2) % 3], *second = row[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= n; j++) {
			now[j] = least(least(before[j], now[j - 1]) + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], second[j - 2] + 1);
		}
	}
	return row[m % 3][n];
}

void suggestion__offer(struct suggestion *suggestion, const char *name)
{
	size_t length = strlen(suggestion->text), distance = distance_of(suggestion->text, name);

	/* the begin of a longer name is near, however much is missing */
	if (length >= 3 && !strncmp(suggestion->text, name, length))
		distance = least(distance, 1);
	if (distance <= 1 + length / 4 && (!suggestion->best || distance < suggestion->distance)) {
		suggestion->best = name;
		suggestion->distance = distance;
	}
}
