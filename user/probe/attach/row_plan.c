// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/attach/row_plan.h"

#include <math.h>
#include <stdlib.h>

static int by_family(const void *a, const void *b)
{
	unsigned int x = (*(const struct row_load *const *)a)->family;
	unsigned int y = (*(const struct row_load *const *)b)->family;

	return x < y ? -1 : x > y;
}

static int by_family_share(const void *a, const void *b)
{
	double x = (*(const struct row_load *const *)a)->family_share;
	double y = (*(const struct row_load *const *)b)->family_share;

	return x < y ? -1 : x > y ? 1 : by_family(a, b);
}

/* The end of the family that begins at a place. */
static size_t family_end(struct row_load *const *sorted, size_t count, size_t begin)
{
	size_t end = begin + 1;

	while (end < count && sorted[begin]->family && sorted[end]->family == sorted[begin]->family)
		end++;
	return end;
}

static struct row_load **sorted_loads(struct row_load *loads, size_t count, int compare(const void *, const void *))
{
	struct row_load **sorted = calloc(count + 1, sizeof(struct row_load *));

	for (size_t i = 0; sorted && i < count; i++)
		sorted[i] = &loads[i];
	if (sorted)
		qsort(sorted, count, sizeof(*sorted), compare);
	return sorted;
}

void row_plan__sum_families(struct row_load *loads, size_t count)
{
	struct row_load **sorted = sorted_loads(loads, count, by_family);

	for (size_t i = 0; i < count; i++)
		loads[i].family_share = 1; /* without memory: none is cheap */
	for (size_t begin = 0, end; sorted && begin < count; begin = end) {
		double most = 0, sum = 0;

		end = family_end(sorted, count, begin);
		for (size_t i = begin; i < end; i++) {
			most = fmax(most, sorted[i]->share);
			sum += sorted[i]->own_share;
		}
		/* one alone may cost more where its share is a guess */
		for (size_t i = begin; i < end; i++)
			sorted[i]->family_share = fmax(most, sum);
	}
	free(sorted);
}

double row_plan__choose(struct row_load *loads, size_t count, double share)
{
	struct row_load **sorted;
	double used = 0;

	row_plan__sum_families(loads, count);
	for (size_t i = 0; i < count; i++)
		loads[i].open = false;
	sorted = sorted_loads(loads, count, by_family_share);
	if (!sorted)
		return 0; /* none is opened: the budget holds */
	for (size_t begin = 0, end; begin < count && used + sorted[begin]->family_share <= share; begin = end) {
		end = family_end(sorted, count, begin);
		used += sorted[begin]->family_share;
		for (size_t i = begin; i < end; i++)
			sorted[i]->open = true;
	}
	free(sorted);
	return used;
}

unsigned int row_plan__class(double calls_per_s)
{
	static const double at_least[ROW_CLASSES - 1] = {10, 100, 1000};
	unsigned int number = 0;

	while (number < ROW_CLASSES - 1 && calls_per_s >= at_least[number])
		number++;
	return number;
}
