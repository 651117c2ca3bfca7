// SPDX-License-Identifier: GPL-2.0-or-later
/* The ends of a host's calls at one call-site: see clocks.h. */
#include "detect/clock_ends.h"

#include <stdlib.h>
#include <string.h>

#define SPAN_MOST_NS 40e9 /* time of the calls that are compared: clocks drift */
#define REGULAR 1.3	  /* times the typical time: in a longer gap between calls something was late */
#define QUICK 0.7	  /* times the typical time: calls hardly follow each other sooner */

static int compare_calls(const void *a, const void *b)
{
	const struct clock_calls *left = a, *right = b;

	if (left->end_ns != right->end_ns)
		return left->end_ns < right->end_ns ? -1 : 1;
	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

static void swap(double *a, double *b)
{
	double number = *a;

	*a = *b;
	*b = number;
}

/* Moves the number that is k-th in order (from 0) to its place, with no greater ones before it (Hoare's selection). */
static double select_number(double *numbers, uint32_t count, uint32_t k)
{
	int64_t left = 0, right = (int64_t)count - 1;

	while (left < right) {
		double pivot = numbers[left + (right - left) / 2];
		int64_t i = left, j = right;

		while (i <= j) {
			while (numbers[i] < pivot)
				i++;
			while (numbers[j] > pivot)
				j--;
			if (i <= j)
				swap(&numbers[i++], &numbers[j--]);
		}
		if (k <= j)
			right = j;
		else if (k >= i)
			left = i;
		else
			break;
	}
	return numbers[k];
}

double clock_ends__median(double *numbers, uint32_t count)
{
	double upper = select_number(numbers, count, count / 2), lower;

	if (count & 1)
		return upper;
	lower = numbers[0];
	for (uint32_t i = 1; i < count / 2; i++)
		lower = numbers[i] > lower ? numbers[i] : lower;
	return (lower + upper) / 2;
}

/* Copies the calls in order of their ends; they arrive nearly so. */
static void sort_calls(const struct clock_track *track, struct clock_calls *sorted)
{
	bool ordered = true;

	for (size_t i = 0; i < track->count; i++) {
		sorted[i] = track->calls[i];
		ordered &= !i || compare_calls(&sorted[i - 1], &sorted[i]) <= 0;
	}
	if (!ordered)
		qsort(sorted, track->count, sizeof(*sorted), compare_calls);
}

/* Sets the times between each end and the next one. */
static void set_steps(struct clock_end *items, uint32_t count, double typical_ns)
{
	double quick = QUICK * typical_ns;

	for (uint32_t i = 0; i + 1 < count; i++) {
		double each = (items[i + 1].ns - items[i].ns) / (items[i + 1].ordinal - items[i].ordinal);

		items[i].each_ns = each;
		items[i].least_ns = quick < each ? quick : each;
		items[i].regular = each <= REGULAR * typical_ns;
	}
}

/*
 * The last call of a bundle has all earlier calls before it only where no later bundle had begun: bundles of short and
 * of long calls of one bin overlap.
 */
struct clock_ends clock_ends__list(const struct clock_track *track, uint64_t origin_ns, struct clock_scratch *scratch,
				   struct clock_end room[static CLOCK_CALLS])
{
	struct clock_calls *sorted = scratch->sorted;
	struct clock_end *first = room + CLOCK_CALLS;
	struct clock_ends ends = {.origin_ns = origin_ns};
	uint64_t later_ns = UINT64_MAX;
	double ordinal = (double)track->before;

	sort_calls(track, sorted);
	for (size_t i = 0; i < track->count; i++)
		ordinal += sorted[i].n;
	for (size_t i = track->count; i-- > 0;) {
		if ((double)(sorted[track->count - 1].end_ns - sorted[i].end_ns) > SPAN_MOST_NS)
			break;
		if (sorted[i].end_ns <= later_ns)
			*--first = (struct clock_end){
			    .ordinal = ordinal,
			    .ns = (double)(int64_t)(sorted[i].end_ns - origin_ns),
			    .single_ns = sorted[i].n == 1 ? (double)(sorted[i].end_ns - sorted[i].start_ns) : 0};
		ordinal -= sorted[i].n;
		later_ns = sorted[i].start_ns < later_ns ? sorted[i].start_ns : later_ns;
	}
	ends.items = first;
	ends.count = (uint32_t)(room + CLOCK_CALLS - first);
	for (uint32_t i = 1; i < ends.count; i++)
		scratch->differences[i - 1] =
		    (first[i].ns - first[i - 1].ns) / (first[i].ordinal - first[i - 1].ordinal);
	ends.each_ns = ends.count > 1 ? clock_ends__median(scratch->differences, ends.count - 1) : 0;
	set_steps(first, ends.count, ends.each_ns);
	return ends;
}

bool clock_ends__enough(const struct clock_ends *ends)
{
	return ends->count > CLOCK_PAIRS_LEAST && ends->each_ns > 0;
}

double clock_ends__last_ordinal(const struct clock_ends *ends)
{
	return ends->items[ends->count - 1].ordinal;
}

void clock_ends__drop_until(struct clock_ends *ends, double ordinal)
{
	for (; ends->count && ends->items->ordinal <= ordinal; ends->count--)
		ends->items++;
}

struct clock_gaps clock_ends__gaps(const struct clock_ends *ends)
{
	struct clock_gaps gaps = {.count = 0};

	for (uint32_t i = 1; i < ends->count; i++) {
		const struct clock_end *end = &ends->items[i];
		double gap = (end->ns - end[-1].ns) - ends->each_ns * (end->ordinal - end[-1].ordinal);
		uint32_t at = gaps.count;

		while (at && gaps.ns[at - 1] < gap)
			at--;
		if (at == CLOCK_GAPS)
			continue;
		gaps.count += gaps.count < CLOCK_GAPS;
		memmove(&gaps.ns[at + 1], &gaps.ns[at], (gaps.count - at - 1) * sizeof(*gaps.ns));
		memmove(&gaps.ordinals[at + 1], &gaps.ordinals[at], (gaps.count - at - 1) * sizeof(*gaps.ordinals));
		gaps.ns[at] = gap;
		gaps.ordinals[at] = end->ordinal;
	}
	return gaps;
}
