/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growing arrays: items is the address of the array's pointer, capacity counts elements. */
#ifndef VAPRO_GROW_H
#define VAPRO_GROW_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* As grow, but new room stays untouched: the system backs used memory only. */
static inline int grow_untouched(void *items, size_t *capacity, size_t need, size_t size)
{
	size_t wanted = *capacity ? *capacity : 8;
	void *old, *new;

	if (need <= *capacity)
		return 0;
	while (wanted < need)
		wanted *= 2;
	memcpy(&old, items, sizeof(old));
	new = realloc(old, wanted * size);
	if (!new)
		return -ENOMEM;
	memcpy(items, &new, sizeof(new));
	*capacity = wanted;
	return 0;
}

/* Gives back room beyond what growing to need elements would have made. */
static inline void grow_less(void *items, size_t *capacity, size_t need, size_t size)
{
	size_t wanted = 8;
	void *old, *new;

	while (wanted < need)
		wanted *= 2;
	if (wanted >= *capacity)
		return;
	memcpy(&old, items, sizeof(old));
	new = realloc(old, wanted * size);
	if (!new)
		return;
	memcpy(items, &new, sizeof(new));
	*capacity = wanted;
}

/* Makes room for need elements of size bytes; new room is zeroed. Returns 0 or -ENOMEM. */
static inline int grow(void *items, size_t *capacity, size_t need, size_t size)
{
	size_t before = *capacity;
	void *grown;
	int error = grow_untouched(items, capacity, need, size);

	if (error || before == *capacity)
		return error;
	memcpy(&grown, items, sizeof(grown));
	memset((char *)grown + before * size, 0, (*capacity - before) * size);
	return 0;
}

#endif
