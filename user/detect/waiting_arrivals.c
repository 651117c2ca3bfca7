/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who came last to the operations of a bin: what is known of a late rank whose work is not. See waiting.h. */
#include "detect/waiting_private.h"

#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>

#define WORTH_NS (VAPRO_BIN_NS / 100) /* between the first and the last member: less is no wait */

static int compare_starts(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

int waiting__note_last(struct waiting *waiting, const struct single *in, size_t count, uint32_t missing)
{
	struct last_arrival last = {.bin = in->item->bin, .row = in->item->row};
	uint64_t first_ns = UINT64_MAX, last_ns = 0;
	size_t members = count + (missing > 0);

	if (grow_untouched(&waiting->starts, &waiting->start_capacity, members, sizeof(*waiting->starts)) ||
	    grow_untouched(&waiting->last_arrivals, &waiting->last_arrival_capacity, waiting->last_arrival_count + 1,
			   sizeof(*waiting->last_arrivals)))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		uint64_t start_ns = in[i].item->start_ns;

		waiting->starts[i] = start_ns;
		first_ns = start_ns < first_ns ? start_ns : first_ns;
		if (start_ns > last_ns) {
			last_ns = start_ns;
			last.row = in[i].item->row;
		}
	}
	/* its call was short: it came when the others left */
	if (missing) {
		last_ns = waiting->starts[count] = in->item->end_ns;
		last.row = missing - 1;
	}
	if (last_ns >= first_ns + WORTH_NS) {
		qsort(waiting->starts, members, sizeof(*waiting->starts), compare_starts);
		last.late_ns = last_ns - waiting->starts[(members - 1) / 2];
	}
	waiting->last_arrivals[waiting->last_arrival_count++] = last;
	return 0;
}

static int compare_last(const void *a, const void *b)
{
	const struct last_arrival *left = a, *right = b;

	if (left->bin != right->bin)
		return left->bin < right->bin ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

void waiting__write_arrivals(struct waiting *waiting)
{
	const struct last_arrival *items = waiting->last_arrivals;
	size_t count = waiting->last_arrival_count;

	if (count)
		qsort(waiting->last_arrivals, count, sizeof(*items), compare_last);
	for (size_t i = 0, end; i < count; i = end) {
		struct heatmap_arrivals most = {0}, row = {0};

		for (end = i; end < count && items[end].bin == items[i].bin; end++) {
			if (items[end].row != row.row || end == i)
				row = (struct heatmap_arrivals){.row = items[end].row};
			row.last += items[end].late_ns > 0;
			row.late_ns += items[end].late_ns;
			if (row.late_ns > most.late_ns)
				most = row;
		}
		most.operations = (uint32_t)(end - i);
		/* the other bins have only the calls that became known now */
		if (items[i].bin >= waiting->before_view)
			heatmap__bin(waiting->map, waiting->begin + items[i].bin)->arrivals = most;
	}
}
