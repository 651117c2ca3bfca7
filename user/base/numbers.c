/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/numbers.h"

#include "base/grow.h"

int numbers__set(struct numbers *numbers, uint32_t theirs, uint32_t ours)
{
	size_t page = theirs / NUMBERS_PAGE;

	if (grow(&numbers->pages, &numbers->capacity, page + 1, sizeof(*numbers->pages)))
		return -ENOMEM;
	if (!numbers->pages[page]) {
		numbers->pages[page] = calloc(NUMBERS_PAGE, sizeof(**numbers->pages));
		if (!numbers->pages[page])
			return -ENOMEM;
		numbers->bytes += NUMBERS_PAGE * sizeof(**numbers->pages);
	}
	if (numbers->count <= page)
		numbers->count = page + 1;
	numbers->pages[page][theirs % NUMBERS_PAGE] = ours + 1;
	return 0;
}

void numbers__clear(struct numbers *numbers)
{
	for (size_t i = 0; i < numbers->count; i++)
		free(numbers->pages[i]);
	free(numbers->pages);
	*numbers = (struct numbers){0};
}

size_t numbers__bytes(const struct numbers *numbers)
{
	return numbers->capacity * sizeof(*numbers->pages) + numbers->bytes;
}
