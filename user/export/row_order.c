// SPDX-License-Identifier: GPL-2.0-or-later
#include "export/row_order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/record.h"

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* Compares what a row is, hosts by their names; 0: the same row. A rank is one row whatever process ran it. */
static int compare_rows(const void *a, const void *b)
{
	const struct view_row *x = ((const struct ordered_row *)a)->row, *y = ((const struct ordered_row *)b)->row;
	int order = strcmp(x->host, y->host);

	if (!order)
		order = compare_numbers(x->rank, y->rank);
	if (!order && x->rank < 0)
		order = compare_numbers((int64_t)x->pid, (int64_t)y->pid);
	return order ? order : compare_numbers(x->thread, y->thread);
}

/* Rows [first, end) of one host, and the lowest rank of them. */
struct host_run {
	size_t first, end;
	int64_t rank;
};

static int compare_hosts(const void *a, const void *b)
{
	const struct host_run *x = a, *y = b;
	int order = compare_numbers(x->rank, y->rank);

	return order ? order : compare_numbers((int64_t)x->first, (int64_t)y->first);
}

/* Puts hosts, which are in the order of their names, in that of their lowest ranks; unknown ranks come first. */
static int order_hosts(struct row_order *order)
{
	struct ordered_row *items = calloc(order->count, sizeof(*items));
	struct host_run *hosts = calloc(order->count, sizeof(*hosts));
	size_t count = 0, used = 0;
	int ret = items && hosts ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < order->count; i++) {
		const struct view_row *row = order->items[i].row;

		if (!i || strcmp(order->items[i - 1].row->host, row->host))
			hosts[count++] = (struct host_run){.first = i, .rank = row->rank};
		hosts[count - 1].end = i + 1;
	}
	if (!ret)
		qsort(hosts, count, sizeof(*hosts), compare_hosts);
	for (size_t host = 0; !ret && host < count; host++) {
		for (size_t i = hosts[host].first; i < hosts[host].end; i++) {
			items[used] = order->items[i];
			items[used++].host = host;
		}
	}
	if (!ret)
		memcpy(order->items, items, used * sizeof(*items));
	free(items);
	free(hosts);
	return ret;
}

int row_order__make(struct row_order *order, const struct view_map *const *maps, size_t map_count)
{
	size_t left = 0;

	*order = (struct row_order){.count = 0};
	for (size_t i = 0; i < map_count; i++) {
		if (grow(&order->items, &order->capacity, order->count + maps[i]->row_count, sizeof(*order->items)))
			return -ENOMEM;
		for (size_t at = 0; at < maps[i]->row_count; at++)
			order->items[order->count++] = (struct ordered_row){.row = &maps[i]->rows[at], .at = at};
	}
	if (!order->count)
		return 0;
	qsort(order->items, order->count, sizeof(*order->items), compare_rows);
	for (size_t i = 0; i < order->count; i++) {
		if (!left || compare_rows(&order->items[left - 1], &order->items[i]))
			order->items[left++] = order->items[i];
	}
	order->count = left;
	return order_hosts(order);
}

void row_order__free(struct row_order *order)
{
	free(order->items);
	*order = (struct row_order){.count = 0};
}

static int compare_ranks(const void *a, const void *b)
{
	return compare_numbers(*(const int32_t *)a, *(const int32_t *)b);
}

bool row_order__region_has(const struct run_region *region, const struct view_row *row)
{
	const cJSON *threads = record__item(region->variance, KEY(variance, threads)), *item;
	int32_t rank = (int32_t)row->rank;

	if (!region->region->rank_count ||
	    !bsearch(&rank, region->region->ranks, region->region->rank_count, sizeof(rank), compare_ranks))
		return false;
	if ((row->thread < 0 && row->rank >= 0) || !cJSON_GetArraySize(threads))
		return row->thread < 0;
	cJSON_ArrayForEach(item, threads)
	{
		if (record__number(item, KEY(thread, rank), -1) == (double)row->rank &&
		    (row->rank >= 0 || record__uint(item, KEY(thread, pid)) == row->pid) &&
		    (row->thread < 0 || record__number(item, KEY(thread, thread), -1) == (double)row->thread))
			return true;
	}
	return false;
}

bool row_order__region_is_of(const struct run_region *region, const struct view_map *map)
{
	/* a user is that of struct vapro_thread: a uid and one, 0 where it is unknown */
	double uid = region->region->user ? region->region->user - 1.0 : NAN;

	return !strcmp(region->region->job, map->said) && (uid == map->uid || (isnan(uid) && isnan(map->uid)));
}

char *row_order__name(const struct view_row *row, char *buf, size_t size)
{
	int used = row->rank < 0 ? snprintf(buf, size, "pid %llu", (unsigned long long)row->pid)
				 : snprintf(buf, size, "rank %lld", (long long)row->rank);

	if (row->thread >= 0)
		snprintf(buf + used, size - (size_t)used, " thread %lld", (long long)row->thread);
	return buf;
}
