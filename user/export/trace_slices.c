// SPDX-License-Identifier: GPL-2.0-or-later
#include "export/trace_slices.h"

#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"

#define DEPTH 16 /* most slices that nest in each other in one lane */

/* Ends of the slices of a lane that are open, outermost first. */
struct lane {
	uint64_t ends[DEPTH];
	unsigned depth;
};

int trace_slices__add(struct trace_slices *slices, const struct trace_slice *slice)
{
	if (grow(&slices->items, &slices->capacity, slices->count + 1, sizeof(*slices->items)))
		return -ENOMEM;
	slices->items[slices->count++] = *slice;
	return 0;
}

/* Orders rows, then begins, then longer slices before those that fit into them. */
static int compare(const void *a, const void *b)
{
	const struct trace_slice *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Puts a slice into a lane, if it nests there. */
static bool enter(struct lane *lane, const struct trace_slice *slice)
{
	while (lane->depth && lane->ends[lane->depth - 1] <= slice->begin_ns)
		lane->depth--;
	if (lane->depth == DEPTH || (lane->depth && lane->ends[lane->depth - 1] < slice->end_ns))
		return false;
	lane->ends[lane->depth++] = slice->end_ns;
	return true;
}

void trace_slices__place(struct trace_slices *slices)
{
	struct lane lanes[TRACE_LANES];

	if (slices->count)
		qsort(slices->items, slices->count, sizeof(*slices->items), compare);
	for (size_t i = 0; i < slices->count; i++) {
		struct trace_slice *slice = &slices->items[i];

		if (!i || slice->row != slices->items[i - 1].row) {
			for (unsigned lane = 0; lane < TRACE_LANES; lane++)
				lanes[lane].depth = 0;
		}
		slice->lane = 0;
		while (slice->lane < TRACE_LANES && !enter(&lanes[slice->lane], slice))
			slice->lane++;
	}
}

void trace_slices__free(struct trace_slices *slices)
{
	free(slices->items);
	*slices = (struct trace_slices){.count = 0};
}
