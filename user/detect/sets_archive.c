// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets of ranks in checkpoints: see sets.h. */
#include "detect/sets.h"

static const struct archive_column set_columns[] = {
    ARCHIVE_ANY(struct rank_set, ratio),      ARCHIVE_ANY(struct rank_set, ratio_least),
    ARCHIVE_ANY(struct rank_set, ratio_most), ARCHIVE_ANY(struct rank_set, ratio_slow),
    ARCHIVE_ONE(struct rank_set, lost_ns),    ARCHIVE_ONE(struct rank_set, share),
    ARCHIVE_ONE(struct rank_set, fast),	      ARCHIVE_ONE(struct rank_set, slow),
    ARCHIVE_ONE(struct rank_set, fast_ns),    ARCHIVE_ONE(struct rank_set, slow_ns),
    ARCHIVE_ONE(struct rank_set, states),     ARCHIVE_ONE(struct rank_set, certain),
    ARCHIVE_ONE(struct rank_set, place),      ARCHIVE_ONE(struct rank_set, variance),
    ARCHIVE_ONE(struct rank_set, over),	      ARCHIVE_ONE(struct rank_set, since),
    ARCHIVE_ONE(struct rank_set, until),
};
static const struct archive_table set_table = ARCHIVE_TABLE("sets", struct rank_set, set_columns);

static const struct archive_column row_columns[] = {{"row", ARCHIVE_U32, 1, 0, false}};
static const struct archive_table row_table = {"set rows", row_columns, 1, sizeof(uint32_t)};

void sets__archive(struct archive *archive, struct sets *sets, size_t rows, size_t series)
{
	archive__rows(archive, &set_table, &sets->items, &sets->count, &sets->capacity);
	for (size_t i = 0; i < sets->count; i++) {
		struct rank_set *set = &sets->items[i];
		size_t capacity = set->count;

		archive__rows(archive, &row_table, &set->rows, &set->count, &capacity);
		if (!archive__reads(archive))
			continue;
		archive__check(archive,
			       set->count && set->count <= rows &&
				   (set->over || (set->fast < series && set->slow < series)) &&
				   set->since <= set->until && set->until <= UINT64_MAX / VAPRO_BIN_NS,
			       "a set of ranks contradicts others");
		for (size_t k = 0; k < set->count; k++)
			archive__check(archive, set->rows[k] < rows, "a set of ranks has an unknown row");
	}
}
