/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/pool.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>

#define BLOCK_ELEMENTS 256

struct pool_block {
	struct pool_block *next;
	alignas(max_align_t) char bytes[];
};

struct pool_free {
	struct pool_free *next;
};

static size_t stride(const struct pool *pool)
{
	size_t size = pool->element_bytes > sizeof(struct pool_free) ? pool->element_bytes : sizeof(struct pool_free);

	return (size + alignof(struct pool_free) - 1) & ~(alignof(struct pool_free) - 1);
}

static int add_block(struct pool *pool)
{
	size_t size = sizeof(struct pool_block) + BLOCK_ELEMENTS * stride(pool);
	struct pool_block *block = malloc(size);

	if (!block)
		return -ENOMEM;
	block->next = pool->blocks;
	pool->blocks = block;
	pool->bytes += size;
	for (size_t i = BLOCK_ELEMENTS; i-- > 0;) {
		struct pool_free *element = (void *)(block->bytes + i * stride(pool));

		element->next = pool->free;
		pool->free = element;
	}
	return 0;
}

int pool__reserve(struct pool *pool, size_t bytes)
{
	while (pool->bytes < bytes) {
		if (add_block(pool))
			return -ENOMEM;
	}
	return 0;
}

void *pool__take(struct pool *pool)
{
	struct pool_free *element;

	if (!pool->free && add_block(pool))
		return NULL;
	element = pool->free;
	pool->free = element->next;
	pool->used++;
	return element;
}

void pool__give(struct pool *pool, void *element)
{
	struct pool_free *given = element;

	given->next = pool->free;
	pool->free = given;
	if (!--pool->used)
		pool__clear(pool);
}

void pool__clear(struct pool *pool)
{
	while (pool->blocks) {
		struct pool_block *next = pool->blocks->next;

		free(pool->blocks);
		pool->blocks = next;
	}
	*pool = (struct pool){.element_bytes = pool->element_bytes};
}
