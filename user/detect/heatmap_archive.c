// SPDX-License-Identifier: GPL-2.0-or-later
/* The heat map in checkpoints: see heatmap.h. */
#include "detect/heatmap.h"

#include <errno.h>
#include <stdlib.h>

#define ROWS_LEAST 1

static const struct archive_column map_columns[] = {
    ARCHIVE_ONE(struct heatmap, row_count),   ARCHIVE_ONE(struct heatmap, row_capacity),
    ARCHIVE_ONE(struct heatmap, span),	      ARCHIVE_ONE(struct heatmap, ring),
    ARCHIVE_ONE(struct heatmap, view),	      ARCHIVE_ONE(struct heatmap, cut),
    ARCHIVE_ONE(struct heatmap, fragment_ns), ARCHIVE_ONE(struct heatmap, begin),
    ARCHIVE_ONE(struct heatmap, end),
};
static const struct archive_table map_table = ARCHIVE_TABLE("heat map", struct heatmap, map_columns);

/* A bin: times that its classes were emitted, and its parts as bits. */
struct saved_bin {
	uint32_t emitted[VAPRO_CLASSES];
	uint32_t parts;
};

static const struct archive_column bin_columns[] = {
    ARCHIVE_MANY(struct saved_bin, emitted),
    ARCHIVE_ONE(struct saved_bin, parts),
};
static const struct archive_table bin_table = ARCHIVE_TABLE("bins", struct saved_bin, bin_columns);

static const struct archive_column side_columns[] = {
    ARCHIVE_ONE(struct cell_side, dur),	    ARCHIVE_ONE(struct cell_side, ref),	   ARCHIVE_ONE(struct cell_side, cpu),
    ARCHIVE_ONE(struct cell_side, blocked), ARCHIVE_ONE(struct cell_side, stolen), ARCHIVE_ONE(struct cell_side, seen),
};
static const struct archive_table side_table = ARCHIVE_TABLE("cells", struct cell_side, side_columns);

static const struct archive_column owner_columns[] = {{"variance", ARCHIVE_U32, 1, 0, false}};
static const struct archive_table owner_table = {"owners", owner_columns, 1, sizeof(uint32_t)};

static const struct archive_column emitted_columns[] = {{"hundredths", ARCHIVE_U8, 1, 0, false}};
static const struct archive_table emitted_table = {"emitted", emitted_columns, 1, sizeof(unsigned char)};

static const struct archive_column wait_columns[] = {{"ns", ARCHIVE_FLOAT, 1, 0, false}};
static const struct archive_table wait_table = {"waits", wait_columns, 1, sizeof(float)};

static const struct archive_table *table_of(int part)
{
	return part < HEATMAP_OWNER	? &side_table
	       : part < HEATMAP_EMITTED ? &owner_table
	       : part < HEATMAP_LATE	? &emitted_table
					: &wait_table;
}

static void archive_bin(struct archive *archive, struct heatmap *map, struct heatmap_bin *bin)
{
	struct saved_bin saved = {0};

	for (int class = 0; class < VAPRO_CLASSES; class ++)
		saved.emitted[class] = bin->emitted[class];
	for (int part = 0; part < HEATMAP_PARTS; part++)
		saved.parts |= (uint32_t)(bin->parts[part] != NULL) << part;
	archive__record(archive, &bin_table, &saved);
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		bin->emitted[class] = saved.emitted[class];
	archive__check(archive, saved.parts < 1U << HEATMAP_PARTS, "a heat map has unknown parts");
	for (int part = 0; part < HEATMAP_PARTS && !archive__error(archive); part++) {
		size_t count = map->row_count, capacity = map->row_capacity;

		if (!(saved.parts & 1U << part))
			continue;
		archive__rows(archive, table_of(part), &bin->parts[part], &count, &capacity);
		archive__check(archive, count == map->row_count && capacity == map->row_capacity,
			       "a heat map has another number of rows");
	}
}

/* A ring that holds the bins; the map of a job that rests has none. */
static bool possible(const struct heatmap *map, size_t rows)
{
	if (!map->ring)
		return !map->span && map->begin == map->end && !map->row_count;
	return map->ring >= 64 && !(map->ring & (map->ring - 1)) && map->span <= map->ring && map->span &&
	       map->begin <= map->end && map->end - map->begin <= map->span && map->end <= UINT64_MAX / VAPRO_BIN_NS &&
	       map->view <= map->span && map->row_count <= map->row_capacity && map->row_count <= rows &&
	       map->row_capacity <= UINT32_MAX;
}

void heatmap__archive(struct archive *archive, struct heatmap *map, size_t rows)
{
	archive__record(archive, &map_table, map);
	if (archive__reads(archive)) {
		if (archive__check(archive, possible(map, rows), "a heat map contradicts itself") && map->ring)
			map->bins = archive__take(archive, map->ring, sizeof(*map->bins));
		if (!map->bins) {
			*map = (struct heatmap){0};
			return;
		}
	}
	for (uint64_t bin = map->begin; bin < map->end && !archive__error(archive); bin++)
		archive_bin(archive, map, heatmap__bin(map, bin));
}
