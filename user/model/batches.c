// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/batches.h"

#include "model/histogram.h"
#include "model/judgement.h"

#include <vapro/bundle.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REACH 4 /* buckets around a peak that form its centre, about a tenth: a longer gap parts groups */

static int make_room(struct batches *batches)
{
	uint32_t capacity = batches->capacity ? 2 * batches->capacity : 4;
	struct batch_bucket *items;

	if (batches->count < batches->capacity)
		return 0;
	items = realloc(batches->items, capacity * sizeof(*items));
	if (!items)
		return -ENOMEM;
	batches->items = items;
	batches->capacity = capacity;
	return 0;
}

static void absorb(struct batch_bucket *into, const struct batch_bucket *from)
{
	into->n += from->n;
	into->sum_ns += from->sum_ns;
	into->first = from->first < into->first ? from->first : into->first;
	into->last = from->last > into->last ? from->last : into->last;
	into->late += from->late;
}

/* Finds the first item of at least an index. */
static inline uint32_t find(const struct batches *batches, uint32_t index)
{
	uint32_t low = 0;

	/* The half is unpredictable: no branch depends on it. */
	for (uint32_t left = batches->count; left; left /= 2) {
		uint32_t half = left - left / 2;

		low += half & -(uint32_t)(batches->items[low + half - 1].index < index);
	}
	return low;
}

/* Adds a batch by its mean and the second of its end. */
static inline int put(struct batches *batches, double mean, uint32_t second)
{
	uint32_t index = histogram__index(mean), at = batches->latest;
	struct batch_bucket *item;

	if (at < batches->count && batches->items[at].index < index)
		at++;
	else if (at && at < batches->count && batches->items[at].index > index)
		at--;
	if (at >= batches->count || batches->items[at].index != index)
		at = find(batches, index);
	batches->latest = at;
	item = &batches->items[at];
	if (at == batches->count || item->index != index) {
		if (make_room(batches))
			return -ENOMEM;
		item = &batches->items[at];
		memmove(item + 1, item, (batches->count++ - at) * sizeof(*item));
		*item = (struct batch_bucket){.index = index, .first = second, .last = second};
	}
	item->n++;
	item->sum_ns += mean;
	item->first = second < item->first ? second : item->first;
	item->last = second > item->last ? second : item->last;
	item->late += second >= batches->begin + BATCH_LATE_S;
	return 0;
}

int batches__close(struct batches *batches)
{
	uint32_t n = batches->open_n, second = (uint32_t)(batches->open_bin / VAPRO_BINS_PER_SECOND);
	double ns = batches->open_ns;

	batches->open_n = 0;
	batches->open_ns = 0;
	if (n < BATCH_MEMBERS)
		return 0;
	if (!batches->begin)
		batches->begin = second;
	return put(batches, ns / n, second);
}

int batches__pool(struct batches *pool, const struct batches *from, uint32_t row)
{
	for (uint32_t i = 0; i < from->count; i++) {
		if (make_room(pool))
			return -ENOMEM;
		pool->items[pool->count] = from->items[i];
		pool->items[pool->count++].row = row;
	}
	return 0;
}

static int compare_index(const void *a, const void *b)
{
	const struct batch_bucket *left = a, *right = b;

	if (left->index != right->index)
		return left->index < right->index ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

void batches__sort(struct batches *pool)
{
	uint32_t count = 0;

	if (pool->count)
		qsort(pool->items, pool->count, sizeof(*pool->items), compare_index);
	for (uint32_t i = 0; i < pool->count; i++) {
		if (count && pool->items[count - 1].index == pool->items[i].index)
			absorb(&pool->items[count - 1], &pool->items[i]);
		else
			pool->items[count++] = pool->items[i];
	}
	pool->count = count;
}

/* Averages the batches of item `at` with its neighbour buckets, since single buckets vary by chance. */
static double around(const struct batches *batches, uint32_t at)
{
	uint32_t index = batches->items[at].index;
	double n = 2.0 * batches->items[at].n;

	if (at && batches->items[at - 1].index + 1 == index)
		n += batches->items[at - 1].n;
	if (at + 1 < batches->count && batches->items[at + 1].index == index + 1)
		n += batches->items[at + 1].n;
	return n / 2;
}

/* Makes a group of items [from, to) with its peak at `peak`. */
static struct batch_group make_group(const struct batches *batches, uint32_t from, uint32_t to, uint32_t peak)
{
	struct batch_group group = {.first = UINT32_MAX};
	uint32_t middle = batches->items[peak].index;
	double sum = 0, n = 0;

	for (uint32_t i = from; i < to; i++) {
		const struct batch_bucket *item = &batches->items[i];

		group.n += item->n;
		group.first = item->first < group.first ? item->first : group.first;
		group.last = item->last > group.last ? item->last : group.last;
		group.late += item->late;
		if (item->index + REACH >= middle && item->index <= middle + REACH) {
			sum += item->sum_ns;
			n += item->n;
		}
	}
	group.centre_ns = sum / n;
	return group;
}

/* Whether a valley separates two peaks, by their batches. */
static bool parts(double left, double valley, double right)
{
	double lower = fmin(left, right);

	return valley < SHARE_MOST * lower && lower - valley > SIGMAS_VALLEY * sqrt(lower + valley);
}

unsigned batches__groups(const struct batches *batches, struct batch_group *groups)
{
	uint32_t from = 0, peak = 0, bottom = 0; /* items; bottom: the first one after the valley */
	double most = 0, valley = INFINITY;
	unsigned count = 0;

	for (uint32_t i = 0; i < batches->count; i++) {
		double here = around(batches, i);
		uint32_t gap = i ? batches->items[i].index - batches->items[i - 1].index - 1 : 0;

		/* One empty bucket still counts its neighbours' batches in around(); two do not. */
		if (gap > 1 && (valley > 0 || gap > REACH)) {
			valley = 0;
			bottom = i;
		}
		if (here < valley && i > peak) {
			valley = here;
			bottom = i;
		}
		if ((gap > REACH || parts(most, valley, here)) && count + 1 < BATCH_GROUPS) {
			groups[count++] = make_group(batches, from, bottom, peak);
			from = bottom;
			most = 0;
		}
		if (here > most) {
			most = here;
			peak = i;
			valley = INFINITY;
			bottom = i + 1;
		}
	}
	if (batches->count)
		groups[count++] = make_group(batches, from, batches->count, peak);
	return count;
}

uint64_t batches__total(const struct batches *batches)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < batches->count; i++)
		n += batches->items[i].n;
	return n;
}

double batches__median(const struct batches *batches)
{
	uint64_t all = batches__total(batches), seen = 0;

	for (uint32_t i = 0; i < batches->count; i++) {
		seen += batches->items[i].n;
		if (2 * seen >= all)
			return batches->items[i].sum_ns / batches->items[i].n;
	}
	return 0;
}

void batches__empty(struct batches *batches)
{
	batches->count = batches->open_n = 0;
	batches->open_ns = 0;
}

void batches__clear(struct batches *batches)
{
	free(batches->items);
	*batches = (struct batches){0};
}

static const struct archive_column batch_columns[] = {
    ARCHIVE_ONE(struct batch_bucket, index),  ARCHIVE_ONE(struct batch_bucket, n),
    ARCHIVE_ONE(struct batch_bucket, sum_ns), ARCHIVE_ONE(struct batch_bucket, first),
    ARCHIVE_ONE(struct batch_bucket, last),   ARCHIVE_ONE(struct batch_bucket, late),
    ARCHIVE_ONE(struct batch_bucket, row),
};
static const struct archive_table batch_table = ARCHIVE_TABLE("batches", struct batch_bucket, batch_columns);

void batches__archive(struct archive *archive, struct batches *batches)
{
	archive__rows32(archive, &batch_table, &batches->items, &batches->count, &batches->capacity);
	for (uint32_t i = 0; archive__reads(archive) && i < batches->count; i++) {
		const struct batch_bucket *bucket = &batches->items[i];

		archive__check(archive, bucket->n && (!i || bucket->index > bucket[-1].index),
			       "batches are not in order");
	}
}
