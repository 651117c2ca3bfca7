/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/heatmap.h"

#include "model/grow.h"

#include <math.h>

void heatmap__free(struct heatmap *map)
{
	for (size_t i = 0; i < map->row_count; i++)
		free(map->rows[i]);
	free(map->rows);
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		free(map->told[class]);
	*map = (struct heatmap){0};
}

static uint64_t ring_of(uint64_t span)
{
	uint64_t room = 64;

	while (room < span)
		room *= 2;
	return room;
}

/* One ring moves into a longer one. */
static int lengthen(const struct heatmap *map, void **ring, uint64_t room, size_t size)
{
	char *longer = calloc(room, size);

	if (!longer)
		return -ENOMEM;
	for (uint64_t bin = map->begin; *ring && bin < map->end; bin++)
		memcpy(longer + (bin & (room - 1)) * size, (char *)*ring + heatmap__slot(map, bin) * size, size);
	free(*ring);
	*ring = longer;
	return 0;
}

static int make_span(struct heatmap *map, uint64_t view_bins)
{
	uint64_t span = view_bins + HEATMAP_MORE > HEATMAP_SPAN ? view_bins + HEATMAP_MORE : HEATMAP_SPAN;
	uint64_t room;
	int error = 0;

	if (view_bins > map->view)
		map->view = view_bins;
	if (map->cut)
		span = view_bins + HEATMAP_LEAST;
	if (span <= map->span)
		return 0;
	room = ring_of(span);
	/* After a failure rings differ in length: the map begins anew. */
	for (size_t i = 0; i < map->row_count && !error; i++) {
		void *ring = map->rows[i];

		error = lengthen(map, &ring, room, sizeof(struct cell));
		map->rows[i] = ring;
	}
	for (int class = 0; class < VAPRO_CLASSES && !error; class ++) {
		void *ring = map->told[class];

		error = lengthen(map, &ring, room, sizeof(**map->told));
		map->told[class] = ring;
	}
	if (error) {
		heatmap__free(map);
		return error;
	}
	map->span = span;
	map->ring = room;
	return 0;
}

/* One ring moves into the beginning of itself; where the system takes nothing back it stays longer than needed. */
static void shorten(const struct heatmap *map, void **ring, void *spare, uint64_t room, size_t size)
{
	void *shorter;

	memset(spare, 0, room * size);
	for (uint64_t bin = map->begin; bin < map->end; bin++)
		memcpy((char *)spare + (bin & (room - 1)) * size, (char *)*ring + heatmap__slot(map, bin) * size, size);
	memcpy(*ring, spare, room * size);
	shorter = realloc(*ring, room * size);
	if (shorter)
		*ring = shorter;
}

uint64_t heatmap__cut(struct heatmap *map)
{
	uint64_t span = map->view + HEATMAP_LEAST, room = ring_of(span), forgotten = 0;
	void *spare;

	if (map->cut || !map->span || room >= map->ring) {
		map->cut = true;
		return 0;
	}
	spare = malloc(room * sizeof(struct cell));
	if (!spare)
		return 0;
	if (map->end - map->begin > span) {
		forgotten = map->end - map->begin - span;
		map->begin = map->end - span;
	}
	for (size_t i = 0; i < map->row_count; i++) {
		void *ring = map->rows[i];

		shorten(map, &ring, spare, room, sizeof(struct cell));
		map->rows[i] = ring;
	}
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		void *ring = map->told[class];

		shorten(map, &ring, spare, room, sizeof(**map->told));
		map->told[class] = ring;
	}
	free(spare);
	map->span = span;
	map->ring = room;
	map->cut = true;
	return forgotten;
}

size_t heatmap__bytes(const struct heatmap *map)
{
	/* regions grow in four layers of 32-bit numbers */
	return map->row_count * map->ring * (sizeof(struct cell) + 4 * sizeof(uint32_t)) +
	       map->row_capacity * sizeof(*map->rows);
}

int heatmap__rows(struct heatmap *map, size_t count, uint64_t view_bins)
{
	if (make_span(map, view_bins) || grow(&map->rows, &map->row_capacity, count, sizeof(*map->rows)))
		return -ENOMEM;
	for (; map->row_count < count; map->row_count++) {
		map->rows[map->row_count] = calloc(map->ring, sizeof(struct cell));
		if (!map->rows[map->row_count])
			return -ENOMEM;
	}
	return 0;
}

void heatmap__advance(struct heatmap *map, uint64_t first, uint64_t end)
{
	if (map->begin == map->end || first > map->end || map->end + map->span < end) {
		/* Nothing yet, or a gap longer than the ring: start over. */
		for (size_t row = 0; row < map->row_count; row++)
			memset(map->rows[row], 0, map->ring * sizeof(struct cell));
		for (int class = 0; class < VAPRO_CLASSES; class ++)
			memset(map->told[class], 0, map->ring * sizeof(**map->told));
		map->begin = end > first + map->span ? end - map->span : first;
		map->end = end;
		return;
	}
	for (uint64_t bin = map->end; bin < end; bin++) {
		for (size_t row = 0; row < map->row_count; row++)
			memset(heatmap__cell(map, (uint32_t)row, bin), 0, sizeof(struct cell));
		for (int class = 0; class < VAPRO_CLASSES; class ++)
			map->told[class][heatmap__slot(map, bin)] = 0;
	}
	if (end > map->end)
		map->end = end;
	if (map->end > map->begin + map->span)
		map->begin = map->end - map->span;
}

void heatmap__clear(struct heatmap *map, uint64_t view)
{
	for (size_t row = 0; row < map->row_count; row++) {
		for (uint64_t bin = map->begin; bin < map->end; bin++) {
			struct cell *cell = heatmap__cell(map, (uint32_t)row, bin);

			for (int class = 0; class < VAPRO_CLASSES; class ++) {
				cell->of[class].open = (struct cell_side){0};
				if (bin >= view)
					cell->of[class].closed = (struct cell_side){0};
			}
			cell->open_late = 0;
			if (bin >= view)
				cell->late = cell->transfer = 0;
		}
	}
}

void heatmap__add(struct heatmap *map, const struct kept *kept, uint32_t row, enum vapro_class class, uint64_t from,
		  uint64_t to)
{
	uint64_t first = kept__first_bin(kept), last = kept__bin(kept);
	struct loss loss = kept__loss(kept);

	if (from < map->begin)
		from = map->begin;
	if (to > map->end)
		to = map->end;
	if (first < from)
		first = from;
	for (uint64_t bin = first; bin <= last && bin < to; bin++) {
		struct cell_class *of = &heatmap__cell(map, row, bin)->of[class];
		struct cell_side *side = kept->flags & VAPRO_BUNDLE_OPEN ? &of->open : &of->closed;
		double share = kept__share(kept, bin);

		/* What was held back was seen when it arrived. */
		if (!kept->held)
			side->seen += (float)(kept->sum_ns * share);
		if (!kept->covered)
			continue;
		side->dur += (float)(kept->sum_ns * share);
		side->ref += (float)((double)kept->reference * kept->n * share);
		side->cpu += (float)(loss.cpu * share);
		side->blocked += (float)(loss.blocked * share);
	}
}

double cell__performance(const struct cell *cell, enum vapro_class class, const struct vapro_config *config)
{
	double dur = cell__dur(cell, class);

	if (dur <= 0 || dur < config->valid_bin * (double)VAPRO_BIN_NS)
		return NAN;
	return fmin(1, fmax(0, 1 - cell__lost(cell, class) / dur));
}
