// SPDX-License-Identifier: GPL-2.0-or-later
/* The heat map in checkpoints: see heatmap.h. */
#include "detect/heatmap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	double divided;
	struct heatmap_arrivals arrivals;
};

static const struct archive_column bin_columns[] = {
    ARCHIVE_MANY(struct saved_bin, emitted),	     ARCHIVE_ONE(struct saved_bin, parts),
    ARCHIVE_ONE(struct saved_bin, divided),	     ARCHIVE_ONE(struct saved_bin, arrivals.operations),
    ARCHIVE_ONE(struct saved_bin, arrivals.row),     ARCHIVE_ONE(struct saved_bin, arrivals.last),
    ARCHIVE_ONE(struct saved_bin, arrivals.late_ns),
};
static const struct archive_table bin_table = ARCHIVE_TABLE("bins", struct saved_bin, bin_columns);

/* Most cells are covered as a whole: what was seen is what was judged, and their difference is a long run of zeros. */
struct saved_side {
	float dur, ref, cpu, blocked, stolen;
	uint32_t seen; /* its bits less those of dur */
};

static const struct archive_column side_columns[] = {
    ARCHIVE_ONE(struct saved_side, dur),    ARCHIVE_ONE(struct saved_side, ref),
    ARCHIVE_ONE(struct saved_side, cpu),    ARCHIVE_ONE(struct saved_side, blocked),
    ARCHIVE_ONE(struct saved_side, stolen), ARCHIVE_ONE(struct saved_side, seen),
};
static const struct archive_table side_table = ARCHIVE_TABLE("map cells", struct saved_side, side_columns);

_Static_assert(sizeof(struct saved_side) == sizeof(struct cell_side), "cells are converted in place");

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

static void pack(struct cell_side *sides, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct cell_side side = sides[i];
		struct saved_side saved = {side.dur, side.ref, side.cpu, side.blocked, side.stolen, 0};
		uint32_t dur, seen;

		memcpy(&dur, &side.dur, sizeof(dur));
		memcpy(&seen, &side.seen, sizeof(seen));
		saved.seen = seen - dur;
		memcpy(&sides[i], &saved, sizeof(saved));
	}
}

static void unpack(struct archive *archive, struct cell_side *sides, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct saved_side saved;
		struct cell_side side;
		uint32_t seen;

		memcpy(&saved, &sides[i], sizeof(saved));
		side = (struct cell_side){saved.dur, saved.ref, saved.cpu, saved.blocked, saved.stolen, 0};
		memcpy(&seen, &saved.dur, sizeof(seen));
		seen += saved.seen;
		memcpy(&side.seen, &seen, sizeof(seen));
		archive__check(archive, isfinite(side.seen), "a cell is not finite");
		sides[i] = side;
	}
}

/* Writes or reads the array of a part. */
static void archive_part(struct archive *archive, const struct heatmap *map, int part, void **array)
{
	size_t count = map->row_count, capacity = map->row_capacity;
	void *packed = NULL;

	if (part >= HEATMAP_OWNER || archive__reads(archive)) {
		archive__rows(archive, table_of(part), array, &count, &capacity);
		archive__check(archive, count == map->row_count && capacity == map->row_capacity,
			       "a heat map has another number of rows");
		if (part < HEATMAP_OWNER)
			unpack(archive, *array, count);
		return;
	}
	packed = archive__take(archive, count, sizeof(struct saved_side));
	if (!packed)
		return;
	memcpy(packed, *array, count * sizeof(struct cell_side));
	pack(packed, count);
	archive__rows(archive, &side_table, &packed, &count, &capacity);
	free(packed);
}

static void archive_bin(struct archive *archive, struct heatmap *map, struct heatmap_bin *bin)
{
	struct saved_bin saved = {.divided = bin->divided, .arrivals = bin->arrivals};

	for (int class = 0; class < VAPRO_CLASSES; class ++)
		saved.emitted[class] = bin->emitted[class];
	for (int part = 0; part < HEATMAP_PARTS; part++)
		saved.parts |= (uint32_t)(bin->parts[part] != NULL) << part;
	archive__record(archive, &bin_table, &saved);
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		bin->emitted[class] = saved.emitted[class];
	bin->divided = saved.divided;
	archive__check(archive, !saved.arrivals.last || saved.arrivals.row < map->row_count,
		       "a heat map has unknown rows");
	if (!archive__error(archive))
		bin->arrivals = saved.arrivals;
	archive__check(archive, saved.parts < 1U << HEATMAP_PARTS, "a heat map has unknown parts");
	for (int part = 0; part < HEATMAP_PARTS && !archive__error(archive); part++) {
		if (saved.parts & 1U << part)
			archive_part(archive, map, part, &bin->parts[part]);
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
		if (archive__error(archive)) {
			*map = (struct heatmap){0};
			return;
		}
	}
	for (uint64_t bin = map->begin; bin < map->end && !archive__error(archive); bin++)
		archive_bin(archive, map, heatmap__bin(map, bin));
}
