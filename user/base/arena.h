/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An arena holds one window's results: allocated piece by piece, zeroed, freed all at once. */
#ifndef VAPRO_ARENA_H
#define VAPRO_ARENA_H

#include <stddef.h>

struct arena {
	struct arena_block *blocks;
};

/* NULL when out of memory; a size of 0 gives a valid pointer. */
void *arena__take(struct arena *arena, size_t size);
char *arena__copy(struct arena *arena, const char *text);
void arena__clear(struct arena *arena);
size_t arena__bytes(const struct arena *arena);

#endif
