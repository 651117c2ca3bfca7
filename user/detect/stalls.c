// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/stalls.h"

#include "base/grow.h"
#include "model/histogram.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The bucket of an index, made where it is missing; NULL when out of memory. */
static struct stall_bucket *bucket_of(struct stall_row *row, uint32_t index)
{
	size_t at = row->count;

	while (at > 0 && row->buckets[at - 1].index >= index)
		at--;
	if (at < row->count && row->buckets[at].index == index)
		return &row->buckets[at];
	if (grow(&row->buckets, &row->capacity, row->count + 1, sizeof(*row->buckets)))
		return NULL;
	memmove(&row->buckets[at + 1], &row->buckets[at], (row->count - at) * sizeof(*row->buckets));
	row->buckets[at] = (struct stall_bucket){.index = index};
	row->count++;
	return &row->buckets[at];
}

/* Makes room for one more of the latest stalls. Returns 0 or -ENOMEM. */
static int extend(struct stall_row *row)
{
	uint32_t capacity = row->latest_capacity ? 2 * row->latest_capacity : 8;
	struct stall *latest;

	if (row->latest_count < row->latest_capacity || row->latest_count == STALLS_LATEST)
		return 0;
	latest = realloc(row->latest, capacity * sizeof(*latest));
	if (!latest)
		return -ENOMEM;
	memset(&latest[row->latest_count], 0, (capacity - row->latest_count) * sizeof(*latest));
	row->latest = latest;
	row->latest_capacity = capacity;
	return 0;
}

static int note(struct stall_row *row, const struct stall_bundle *bundle)
{
	if (extend(row))
		return -ENOMEM;
	row->latest[row->next] = (struct stall){.start_ns = bundle->start_ns,
						.end_ns = bundle->end_ns,
						.ns = (float)bundle->ns,
						.gap_ns = (float)bundle->gap_ns,
						.state = bundle->state,
						.may_wait = bundle->may_wait};
	row->next = (row->next + 1) & (STALLS_LATEST - 1);
	row->latest_count += row->latest_count < STALLS_LATEST;
	return 0;
}

static void widen(struct stall_row *row, uint64_t begin, uint64_t end)
{
	if (!row->end || begin < row->begin)
		row->begin = begin;
	if (end > row->end)
		row->end = end;
}

int stalls__add(struct stalls *stalls, const struct stall_bundle *bundle)
{
	size_t place = (size_t)bundle->row * VAPRO_CLASSES + bundle->class;
	struct stall_bucket *bucket;
	struct stall_row *row;

	if (grow(&stalls->rows, &stalls->capacity, place + 1, sizeof(*stalls->rows)))
		return -ENOMEM;
	stalls->count = place < stalls->count ? stalls->count : place + 1;
	row = &stalls->rows[place];
	widen(row, bundle->start_ns / VAPRO_BIN_NS, (bundle->end_ns - 1) / VAPRO_BIN_NS + 1);
	if (bundle->unequal) {
		row->unresolved += bundle->n;
		return 0;
	}
	bucket = bucket_of(row, histogram__index(bundle->ns));
	if (!bucket)
		return -ENOMEM;
	bucket->n += bundle->n;
	bucket->ns += (uint64_t)llround(bundle->ns * bundle->n);
	bucket->edge_ns += (uint64_t)llround(bundle->edge_ns * bundle->n);
	bucket->waited_ns += (uint64_t)llround(bundle->waited_ns);
	return bundle->n == 1 ? note(row, bundle) : 0;
}

const struct stall_row *stalls__row(const struct stalls *stalls, uint32_t row, enum vapro_class class)
{
	size_t place = (size_t)row * VAPRO_CLASSES + class;

	return place < stalls->count && stalls->rows[place].end ? &stalls->rows[place] : NULL;
}

const struct stall *stalls__latest(const struct stall_row *row, uint32_t i)
{
	uint32_t first = row->latest_count < STALLS_LATEST ? 0 : row->next;

	return &row->latest[(first + i) & (STALLS_LATEST - 1)];
}

void stalls__clear(struct stalls *stalls)
{
	for (size_t i = 0; i < stalls->count; i++) {
		free(stalls->rows[i].buckets);
		free(stalls->rows[i].latest);
	}
	free(stalls->rows);
	*stalls = (struct stalls){0};
}

size_t stalls__bytes(const struct stalls *stalls)
{
	size_t bytes = stalls->capacity * sizeof(*stalls->rows);

	for (size_t i = 0; i < stalls->count; i++)
		bytes += stalls->rows[i].capacity * sizeof(struct stall_bucket) +
			 stalls->rows[i].latest_capacity * sizeof(struct stall);
	return bytes;
}

void stalls__use(const struct stalls *stalls, bool *over)
{
	for (size_t i = 0; i < stalls->count; i++) {
		for (uint32_t k = 0; k < stalls->rows[i].latest_count; k++)
			over[stalls->rows[i].latest[k].state] = false;
	}
}

static const struct archive_column stalls_columns[] = {
    ARCHIVE_ONE(struct stalls, until),
};
static const struct archive_table stalls_table = ARCHIVE_TABLE("stalls", struct stalls, stalls_columns);

static const struct archive_column row_columns[] = {
    ARCHIVE_ONE(struct stall_row, next),
    ARCHIVE_ONE(struct stall_row, unresolved),
    ARCHIVE_ONE(struct stall_row, begin),
    ARCHIVE_ONE(struct stall_row, end),
};
static const struct archive_table row_table = ARCHIVE_TABLE("stall rows", struct stall_row, row_columns);

static const struct archive_column bucket_columns[] = {
    ARCHIVE_ONE(struct stall_bucket, index),	 ARCHIVE_ONE(struct stall_bucket, n),
    ARCHIVE_ONE(struct stall_bucket, ns),	 ARCHIVE_ONE(struct stall_bucket, edge_ns),
    ARCHIVE_ONE(struct stall_bucket, waited_ns),
};
static const struct archive_table bucket_table = ARCHIVE_TABLE("stall buckets", struct stall_bucket, bucket_columns);

static const struct archive_column latest_columns[] = {
    ARCHIVE_ONE(struct stall, start_ns), ARCHIVE_ONE(struct stall, end_ns), ARCHIVE_ONE(struct stall, ns),
    ARCHIVE_ONE(struct stall, gap_ns),	 ARCHIVE_ONE(struct stall, state),  ARCHIVE_ONE(struct stall, may_wait),
};
static const struct archive_table latest_table = ARCHIVE_TABLE("latest stalls", struct stall, latest_columns);

static void check_row(struct archive *archive, const struct stall_row *row, size_t states)
{
	archive__check(
	    archive,
	    row->begin < row->end && row->end <= UINT64_MAX / VAPRO_BIN_NS && row->latest_count <= STALLS_LATEST &&
		(row->latest_count < STALLS_LATEST ? row->next == row->latest_count : row->next < STALLS_LATEST),
	    "stalls contradict themselves");
	for (size_t i = 0; i < row->count && !archive__error(archive); i++)
		archive__check(archive,
			       row->buckets[i].n && row->buckets[i].index < HISTOGRAM_BUCKETS &&
				   (!i || row->buckets[i].index > row->buckets[i - 1].index),
			       "stalls are not in order");
	for (uint32_t i = 0; i < row->latest_count && !archive__error(archive); i++)
		archive__check(archive,
			       row->latest[i].state < states && row->latest[i].start_ns < row->latest[i].end_ns,
			       "a stall has an unknown state");
}

static void archive_row(struct archive *archive, struct stall_row *row, size_t states)
{
	archive__record(archive, &row_table, row);
	archive__rows(archive, &bucket_table, &row->buckets, &row->count, &row->capacity);
	archive__rows32(archive, &latest_table, &row->latest, &row->latest_count, &row->latest_capacity);
	if (archive__reads(archive) && !archive__error(archive))
		check_row(archive, row, states);
}

void stalls__archive(struct archive *archive, struct stalls *stalls, size_t rows, size_t states)
{
	uint64_t count = stalls->count, capacity = stalls->capacity;

	archive__record(archive, &stalls_table, stalls);
	archive__number(archive, &count);
	archive__number(archive, &capacity);
	if (archive__reads(archive)) {
		if (!archive__check(archive, count <= rows * VAPRO_CLASSES && count <= capacity,
				    "ranks that a job does not have were stalled"))
			return;
		stalls->rows = capacity ? archive__take(archive, capacity, sizeof(*stalls->rows)) : NULL;
		stalls->capacity = stalls->rows ? capacity : 0;
		stalls->count = stalls->rows ? count : 0;
	}
	for (size_t i = 0; i < stalls->count && !archive__error(archive); i++) {
		uint64_t any = stalls->rows[i].end != 0;

		archive__number(archive, &any);
		if (any && !archive__error(archive))
			archive_row(archive, &stalls->rows[i], states);
	}
}
