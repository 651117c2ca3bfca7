// SPDX-License-Identifier: GPL-2.0-or-later
/* Checkpoints of a merge: numbers of threads and states, and how far each source was read. */
#include <errno.h>
#include <stdlib.h>

#include "base/archive.h"
#include "base/grow.h"
#include "capture/stream_merge_private.h"

static const struct archive_column merge_columns[] = {
    ARCHIVE_ONE(struct stream_merge, state_count), ARCHIVE_ONE(struct stream_merge, thread_count),
    ARCHIVE_ONE(struct stream_merge, end_ns),	   ARCHIVE_ONE(struct stream_merge, begun),
    ARCHIVE_ONE(struct stream_merge, last),
};
static const struct archive_table merge_table = ARCHIVE_TABLE("merge", struct stream_merge, merge_columns);

static const struct archive_column source_columns[] = {
    ARCHIVE_ONE(struct source, offset),
    ARCHIVE_ONE(struct source, put.block),
    ARCHIVE_ONE(struct source, put.event),
    ARCHIVE_ONE(struct source, window.begin_ns),
    ARCHIVE_ONE(struct source, window.end_ns),
    ARCHIVE_ONE(struct source, window.last),
    ARCHIVE_ANY(struct source, window.daemon_cpu_pct),
    ARCHIVE_ANY(struct source, window.io_traced_pct),
    ARCHIVE_ANY(struct source, window.io_tax_pct),
    ARCHIVE_ANY(struct source, window.bystander_hits),
    ARCHIVE_ANY(struct source, window.bystander_pct),
};
static const struct archive_table source_table = ARCHIVE_TABLE("source", struct source, source_columns);

/* An id of a source that has one of ours. */
struct named {
	uint32_t theirs, ours;
};

static const struct archive_column named_columns[] = {
    ARCHIVE_ONE(struct named, theirs),
    ARCHIVE_ONE(struct named, ours),
};
static const struct archive_table named_table = ARCHIVE_TABLE("ids", struct named, named_columns);

/* Lists the ids that have one of ours. */
static int list_ids(const struct ids *ids, struct named **list, size_t *count, size_t *capacity)
{
	for (size_t i = 0; i < ids->capacity; i++) {
		if (!ids->items[i].ours)
			continue;
		if (grow(list, capacity, *count + 1, sizeof(**list)))
			return -ENOMEM;
		(*list)[(*count)++] = (struct named){(uint32_t)i, ids->items[i].ours - 1};
	}
	return 0;
}

/* most: how many numbers of ours there are. */
static void archive_ids(struct archive *archive, struct ids *ids, uint32_t most)
{
	struct named *list = NULL;
	size_t count = 0, capacity = 0;

	if (!archive__reads(archive) && list_ids(ids, &list, &count, &capacity))
		archive__fail(archive, -ENOMEM, "out of memory");
	archive__rows(archive, &named_table, &list, &count, &capacity);
	for (size_t i = 0; archive__reads(archive) && !archive__error(archive) && i < count; i++) {
		int ret = -EINVAL;

		if (archive__check(archive, list[i].ours < most, "a number of a thread or state does not exist"))
			ret = stream_merge__set_id(ids, list[i].theirs, list[i].ours);
		if (ret == -ENOMEM)
			archive__fail(archive, ret, "out of memory");
		archive__check(archive, !ret, "a number of a thread or state is too large");
	}
	free(list);
}

/* A source that has ended is read again where something of it is held. */
static bool has_ended(const struct source *source)
{
	return source->finished && !source->mark_count;
}

static void archive_source(struct archive *archive, struct stream_merge *merge, struct source *source)
{
	uint64_t finished = has_ended(source);

	archive__record(archive, &source_table, source);
	archive__number(archive, &finished);
	archive_ids(archive, &source->threads, merge->thread_count);
	archive_ids(archive, &source->states, merge->state_count);
	if (!archive__reads(archive))
		return;
	source->finished = finished;
	source->resumed = source->put;
	source->read_ns = merge->end_ns;
}

/* The order of sources, and which one leads (plus 1, 0: none), by number. */
static void archive_order(struct archive *archive, struct stream_merge *merge)
{
	struct source **order = calloc(merge->count + 1, sizeof(struct source *));
	uint64_t leader = 0;

	if (!order) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	for (size_t i = 0; i < merge->count; i++) {
		uint64_t number = 0;

		while (!archive__reads(archive) && merge->order[i] != merge->sources[number])
			number++;
		archive__number(archive, &number);
		if (!archive__check(archive, number < merge->count, "the order of its sources is damaged"))
			break;
		order[i] = merge->sources[number];
		for (size_t k = 0; k < i; k++)
			archive__check(archive, order[k] != order[i], "the order of its sources is damaged");
		if (merge->leader == merge->sources[i])
			leader = i + 1;
	}
	archive__number(archive, &leader);
	if (archive__check(archive, leader <= merge->count, "the source that leads is none") &&
	    archive__reads(archive)) {
		memcpy(merge->order, order, merge->count * sizeof(struct source *));
		merge->leader = leader ? merge->sources[leader - 1] : NULL;
	}
	free(order);
}

void stream_merge__archive(struct stream_merge *merge, struct archive *archive)
{
	uint64_t count = merge->count;

	if (merge->when != MERGE_BY_WINDOW || (archive__reads(archive) && merge->begun))
		archive__fail(archive, -ENOTSUP, "this merge can have no checkpoint");
	archive__number(archive, &count);
	archive__check(archive, count == merge->count, "the number of its sources is wrong");
	archive__record(archive, &merge_table, merge);
	archive__texts(archive, merge->state_texts);
	archive__check(archive, merge->state_count == intern__count(merge->state_texts) - 1,
		       "the number of its states is wrong");
	for (size_t i = 0; i < merge->count && !archive__error(archive); i++)
		archive_source(archive, merge, merge->sources[i]);
	if (!archive__error(archive))
		archive_order(archive, merge);
	if (archive__reads(archive))
		merge->resumed_ns = merge->end_ns;
}
