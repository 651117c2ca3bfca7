/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Orders the items of waiting.c by call-site and bin: counting sorts numbers, and not items. */
#include "detect/waiting_private.h"

#include "base/grow.h"

/* The sort key of single calls of one bin. */
struct end_key {
	uint64_t end_ns;
	uint32_t row, item;
};

void waiting__empty(struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->site_count; i++)
		waiting->site_of[waiting->sites[i].workload] = 0;
	waiting->site_count = waiting->item_count = 0;
}

static int find_site(struct waiting *waiting, uint32_t group, uint32_t workload, uint32_t *site)
{
	uint32_t id;

	if (grow(&waiting->site_of, &waiting->site_of_capacity, workload + 1, sizeof(*waiting->site_of)))
		return -ENOMEM;
	for (id = waiting->site_of[workload]; id; id = waiting->sites[id - 1].next) {
		*site = id - 1;
		if (waiting->sites[*site].group == group)
			return 0;
	}
	if (grow(&waiting->sites, &waiting->site_capacity, waiting->site_count + 1, sizeof(*waiting->sites)))
		return -ENOMEM;
	*site = (uint32_t)waiting->site_count++;
	waiting->sites[*site] =
	    (struct call_site){.group = group, .workload = workload, .next = waiting->site_of[workload]};
	waiting->site_of[workload] = *site + 1;
	return 0;
}

struct excess *waiting__new_item(struct waiting *waiting, uint32_t group, uint32_t workload, uint32_t n)
{
	struct excess *item;
	uint32_t site;

	if (find_site(waiting, group, workload, &site) ||
	    grow_untouched(&waiting->items, &waiting->item_capacity, waiting->item_count + 1, sizeof(*waiting->items)))
		return NULL;
	item = &waiting->items[waiting->item_count++];
	item->site = site;
	item->n = n;
	waiting->sites[site].count++;
	waiting->sites[site].singles += n == 1;
	waiting->sites[site].merged += n > 1;
	return item;
}

static int compare_sites(const void *a, const void *b, void *arg)
{
	const struct call_site *sites = arg, *left = &sites[*(const uint32_t *)a],
			       *right = &sites[*(const uint32_t *)b];

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	return (left->workload > right->workload) - (left->workload < right->workload);
}

static int compare_ends(const void *a, const void *b)
{
	const struct end_key *left = a, *right = b;

	if (left->end_ns != right->end_ns)
		return left->end_ns < right->end_ns ? -1 : 1;
	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->item > right->item) - (left->item < right->item);
}

/* Sorts items by bin, else as they came. */
static int count_bins(struct waiting *waiting)
{
	size_t *begins = calloc(waiting->bins + 2, sizeof(*begins));

	if (!begins)
		return -ENOMEM;
	for (size_t i = 0; i < waiting->item_count; i++)
		begins[waiting->items[i].bin + 1]++;
	for (size_t b = 0; b < waiting->bins; b++)
		begins[b + 1] += begins[b];
	for (size_t i = 0; i < waiting->item_count; i++)
		waiting->by_bin[begins[waiting->items[i].bin]++] = (uint32_t)i;
	free(begins);
	return 0;
}

static void count_sites(struct waiting *waiting)
{
	size_t begin = 0;

	for (size_t i = 0; i < waiting->site_count; i++)
		waiting->by_site[i] = (uint32_t)i;
	qsort_r(waiting->by_site, waiting->site_count, sizeof(*waiting->by_site), compare_sites, waiting->sites);
	for (size_t i = 0; i < waiting->site_count; i++) {
		struct call_site *site = &waiting->sites[waiting->by_site[i]];

		site->begin = begin;
		begin += site->count;
		site->count = 0;
	}
	for (size_t i = 0; i < waiting->item_count; i++) {
		struct call_site *site = &waiting->sites[waiting->items[waiting->by_bin[i]].site];

		waiting->order[site->begin + site->count++] = waiting->by_bin[i];
	}
}

/* Sorts items [from, to) by their ends. */
static int sort_ends(struct waiting *waiting, size_t from, size_t to)
{
	struct end_key *keys = malloc((to - from) * sizeof(*keys));
	bool sorted = true;

	if (!keys)
		return -ENOMEM;
	for (size_t i = from; i < to; i++) {
		const struct excess *item = waiting__item(waiting, i);

		keys[i - from] = (struct end_key){item->end_ns, item->row, waiting->order[i]};
		sorted &= i == from || compare_ends(&keys[i - from - 1], &keys[i - from]) < 0;
	}
	if (!sorted) {
		qsort(keys, to - from, sizeof(*keys), compare_ends);
		for (size_t i = from; i < to; i++)
			waiting->order[i] = keys[i - from].item;
	}
	free(keys);
	return 0;
}

int waiting__order(struct waiting *waiting)
{
	if (grow_untouched(&waiting->by_bin, &waiting->by_bin_capacity, waiting->item_count,
			   sizeof(*waiting->by_bin)) ||
	    grow_untouched(&waiting->order, &waiting->order_capacity, waiting->item_count, sizeof(*waiting->order)) ||
	    grow_untouched(&waiting->by_site, &waiting->by_site_capacity, waiting->site_count,
			   sizeof(*waiting->by_site)) ||
	    count_bins(waiting))
		return -ENOMEM;
	count_sites(waiting);
	for (size_t i = 0; i < waiting->site_count; i++) {
		const struct call_site *site = &waiting->sites[i];
		size_t end = site->begin + site->count;

		/* Merged calls are only ordered by bin. */
		for (size_t from = site->begin, to; site->singles && from < end; from = to) {
			to = waiting__bin_end(waiting, from, end);
			if (sort_ends(waiting, from, to))
				return -ENOMEM;
		}
	}
	return 0;
}
