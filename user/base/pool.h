/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pool holds elements of one size, allocated and freed one by one. A pool that is zero but for
 * element_bytes is empty. The system gets the memory back when no element is in use.
 */
#ifndef VAPRO_POOL_H
#define VAPRO_POOL_H

#include <stddef.h>

struct pool {
	size_t element_bytes;
	struct pool_block *blocks;
	struct pool_free *free;
	size_t used;  /* elements in use */
	size_t bytes; /* bytes held from the system */
};

/* Returns an element that is not zeroed; NULL when out of memory. */
void *pool__take(struct pool *pool);
/* Makes the pool hold at least so many bytes from the system. Returns 0 or -ENOMEM. */
int pool__reserve(struct pool *pool, size_t bytes);

void pool__give(struct pool *pool, void *element);
void pool__clear(struct pool *pool);

#endif
