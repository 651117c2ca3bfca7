/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/large.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *large__grow(void *old, size_t used, size_t bytes)
{
	size_t room = (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
	char *from = old, *grown;

	if (bytes < LARGE_PAGE)
		return realloc(old, bytes);
	grown = aligned_alloc(LARGE_PAGE, room);
	if (!grown)
		return NULL;
	(void)madvise(grown, room, MADV_HUGEPAGE);
	for (size_t at = 0, part; at < used; at += part) {
		part = used - at < LARGE_PAGE ? used - at : LARGE_PAGE;
		memcpy(grown + at, from + at, part);
		if (part == LARGE_PAGE && (uintptr_t)from % LARGE_PAGE == 0)
			(void)madvise(from + at, part, MADV_DONTNEED);
	}
	free(old);
	return grown;
}
