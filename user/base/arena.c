/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 65536

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	alignas(max_align_t) char bytes[];
};

void *arena__take(struct arena *arena, size_t size)
{
	struct arena_block *block = arena->blocks;
	void *memory;

	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (!block || block->size - block->used < size) {
		size_t wanted = size > BLOCK_BYTES ? size : BLOCK_BYTES;

		block = calloc(1, sizeof(*block) + wanted);
		if (!block)
			return NULL;
		block->size = wanted;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	memory = block->bytes + block->used;
	block->used += size;
	return memory;
}

char *arena__copy(struct arena *arena, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = arena__take(arena, size);

	return copy ? memcpy(copy, text, size) : NULL;
}

void arena__clear(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}

size_t arena__bytes(const struct arena *arena)
{
	size_t bytes = 0;

	for (const struct arena_block *block = arena->blocks; block; block = block->next)
		bytes += sizeof(*block) + block->size;
	return bytes;
}
