/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The name nearest to a misspelt one, of those that were offered. */
#ifndef VAPRO_SUGGESTION_H
#define VAPRO_SUGGESTION_H

#include <stddef.h>

struct suggestion {
	const char *text, *best; /* best: NULL where nothing is near */
	size_t distance;
};

void suggestion__offer(struct suggestion *suggestion, const char *name);

#endif
