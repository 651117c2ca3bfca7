/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Elements of one size, taken and given back one by one. A zeroed pool but for its size is empty.
 * Memory is given back to the system when nothing is in use.
 */
#ifndef VAPRO_POOL_H
#define VAPRO_POOL_H

#include <stddef.h>

struct pool {
	size_t element_bytes;
	struct pool_block *blocks;
	struct pool_free *free;
	size_t used;  /* elements */
	size_t bytes; /* held from the system */
};

/* Not zeroed; NULL when out of memory. */
void *pool__take(struct pool *pool);
void pool__give(struct pool *pool, void *element);
void pool__clear(struct pool *pool);

#endif
