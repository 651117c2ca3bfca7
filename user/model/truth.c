/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/truth.h"

#include "base/grow.h"

int truth__add(struct cluster_truths *truths, uint32_t workload, uint32_t cell, uint32_t truth, uint64_t n)
{
	uint64_t place = (uint64_t)workload << 32 | cell;
	uint32_t at;

	if (!truths->by_place) {
		truths->by_place = table__new();
		if (!truths->by_place)
			return -ENOMEM;
	}
	if (!table__get(truths->by_place, place, truth, &at)) {
		at = (uint32_t)truths->count;
		if (grow(&truths->items, &truths->capacity, truths->count + 1, sizeof(*truths->items)) ||
		    table__put(truths->by_place, place, truth, at))
			return -ENOMEM;
		truths->items[truths->count++] = (struct truth_count){workload, cell, truth, 0};
	}
	truths->items[at].n += n;
	return 0;
}

void truth__clear(struct cluster_truths *truths)
{
	free(truths->items);
	table__free(truths->by_place);
	*truths = (struct cluster_truths){0};
}

static const struct archive_column truth_columns[] = {
    ARCHIVE_ONE(struct truth_count, workload),
    ARCHIVE_ONE(struct truth_count, cell),
    ARCHIVE_ONE(struct truth_count, truth),
    ARCHIVE_ONE(struct truth_count, n),
};
static const struct archive_table truth_table = ARCHIVE_TABLE("truths", struct truth_count, truth_columns);

void truth__archive(struct archive *archive, struct cluster_truths *truths)
{
	archive__rows(archive, &truth_table, &truths->items, &truths->count, &truths->capacity);
	if (!archive__reads(archive) || !truths->count)
		return;
	truths->by_place = table__new();
	for (size_t i = 0; i < truths->count; i++) {
		const struct truth_count *at = &truths->items[i];

		if (!truths->by_place ||
		    table__put(truths->by_place, (uint64_t)at->workload << 32 | at->cell, at->truth, (uint32_t)i)) {
			archive__fail(archive, -ENOMEM, "out of memory");
			return;
		}
	}
}
