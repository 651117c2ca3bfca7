// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waiting in checkpoints: see waiting.h. Only which rows have ever called in a group outlives a window; room for items
 * counts for the memory cap.
 */
#include "detect/waiting_private.h"

#include <errno.h>
#include <stdlib.h>

static const struct archive_column waiting_columns[] = {
    ARCHIVE_ONE(struct waiting, group_count),	  ARCHIVE_ONE(struct waiting, item_capacity),
    ARCHIVE_ONE(struct waiting, by_bin_capacity), ARCHIVE_ONE(struct waiting, order_capacity),
    ARCHIVE_ONE(struct waiting, site_capacity),	  ARCHIVE_ONE(struct waiting, arrival_capacity),
};
static const struct archive_table waiting_table = ARCHIVE_TABLE("waiting", struct waiting, waiting_columns);

static const struct archive_column group_columns[] = {ARCHIVE_ONE(struct group, id)};
static const struct archive_table group_table = ARCHIVE_TABLE("group", struct group, group_columns);

static const struct archive_column use_columns[] = {{"used", ARCHIVE_U8, 1, 0, false}};
static const struct archive_table use_table = {"uses", use_columns, 1, sizeof(unsigned char)};

static void *room(struct archive *archive, size_t *capacity, size_t size)
{
	void *items = *capacity ? archive__take(archive, *capacity, size) : NULL;

	if (!items)
		*capacity = 0;
	return items;
}

static void make_room(struct archive *archive, struct waiting *waiting)
{
	waiting->items = room(archive, &waiting->item_capacity, sizeof(*waiting->items));
	waiting->by_bin = room(archive, &waiting->by_bin_capacity, sizeof(*waiting->by_bin));
	waiting->order = room(archive, &waiting->order_capacity, sizeof(*waiting->order));
	waiting->sites = room(archive, &waiting->site_capacity, sizeof(*waiting->sites));
	waiting->arrivals = room(archive, &waiting->arrival_capacity, sizeof(*waiting->arrivals));
}

/* One group is for threads at most, the others are of ranks, and the first is the job. */
static bool possible(const struct waiting *waiting)
{
	size_t threads = 0;

	for (size_t i = 0; i < waiting->group_count; i++)
		threads += waiting->groups[i].id == STG_PROCESS;
	return waiting->groups[0].id == STG_WORLD && threads <= 1 && waiting->group_count - threads < GROUPS_MAX;
}

void waiting__archive(struct archive *archive, struct waiting *waiting)
{
	archive__record(archive, &waiting_table, waiting);
	if (archive__reads(archive)) {
		make_room(archive, waiting);
		if (!archive__check(archive, waiting->group_count && waiting->group_count <= GROUPS_MAX,
				    "waiting has too many groups"))
			waiting->group_count = 1;
	}
	for (size_t i = 0; i < waiting->group_count; i++) {
		struct group *group = &waiting->groups[i];

		archive__record(archive, &group_table, group);
		archive__rows(archive, &use_table, &group->uses, &group->uses_capacity, &group->uses_capacity);
	}
	archive__check(archive, possible(waiting), "waiting has too many groups");
}
