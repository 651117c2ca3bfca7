/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Own numbers of others' numbers. Those only go up, and most of them are over sooner or later: pages of numbers that
 * are all over take no memory, and those of a number that is not take one page each.
 */
#ifndef VAPRO_NUMBERS_H
#define VAPRO_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#define NUMBERS_NONE UINT32_MAX
#define NUMBERS_PAGE 1024

struct numbers {
	uint32_t **pages; /* of NUMBERS_PAGE own numbers + 1; NULL: none of them is known */
	size_t count, capacity;
	size_t bytes; /* of pages */
};

/* Returns the own number, or NUMBERS_NONE. */
static inline uint32_t numbers__get(const struct numbers *numbers, uint32_t theirs)
{
	size_t page = theirs / NUMBERS_PAGE;

	return page < numbers->count && numbers->pages[page] ? numbers->pages[page][theirs % NUMBERS_PAGE] - 1
							     : NUMBERS_NONE;
}

/* Returns 0 or -ENOMEM. */
int numbers__set(struct numbers *numbers, uint32_t theirs, uint32_t ours);

/* Forgets all numbers. */
void numbers__clear(struct numbers *numbers);

size_t numbers__bytes(const struct numbers *numbers);

#endif
