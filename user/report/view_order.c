/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of a map's rows, and which rank lost most. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/regions.h"
#include "report/view_model.h"

/* Sets what each row lost, and each row of a thread what its rank lost. Returns 0 or -ENOMEM. */
static int measure(struct view_map *map)
{
	size_t bins = (size_t)(map->end - map->first);
	double *cells = calloc(bins + 1, sizeof(*cells)), of_rank = 0;
	int ret = cells ? 0 : -ENOMEM;

	for (size_t row = 0; row < map->row_count && !ret; row++) {
		struct view_row *at = &map->rows[row];

		ret = view_model__cells(map, row, row + 1, 1, bins, cells);
		at->lost = 0;
		for (size_t i = 0; i < bins; i++)
			at->lost += isnan(cells[i]) ? 0 : 1 - cells[i];
		of_rank = at->thread < 0 ? at->lost : of_rank;
		at->rank_lost = of_rank;
	}
	free(cells);
	return ret;
}

int view_model__measure(struct view_model *model)
{
	int ret = 0;

	for (size_t i = 0; i < model->map_count && !ret; i++)
		ret = measure(&model->maps[i]);
	return ret;
}

/* Orders by the rank's loss, most first, its threads behind it. */
static int compare(const void *a, const void *b)
{
	const struct view_row *x = a, *y = b;

	if (x->rank_lost != y->rank_lost)
		return x->rank_lost > y->rank_lost ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->pid != y->pid && x->rank < 0)
		return x->pid < y->pid ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

void view_model__sort_by_loss(struct view_model *model)
{
	for (size_t i = 0; i < model->map_count; i++) {
		struct view_map *map = &model->maps[i];

		map->by_loss = true;
		if (map->row_count)
			qsort(map->rows, map->row_count, sizeof(*map->rows), compare);
	}
}

size_t view_model__worst_row(const struct view_map *map)
{
	size_t worst = map->row_count;

	for (size_t row = 0; row < map->row_count; row++) {
		const struct view_row *at = &map->rows[row];

		if (at->thread < 0 && at->lost > 0 && (worst == map->row_count || at->lost > map->rows[worst].lost))
			worst = row;
	}
	return worst;
}

bool view_model__clip(struct view_model *model, uint64_t begin_ns, uint64_t end_ns)
{
	bool any = false;

	for (size_t i = 0; i < model->map_count; i++) {
		struct view_map *map = &model->maps[i];
		uint64_t first = begin_ns / map->bin_ns, end = end_ns / map->bin_ns + (end_ns % map->bin_ns != 0);

		map->first = map->first > first ? map->first : first;
		map->end = map->end < end ? map->end : end;
		if (map->end <= map->first)
			map->first = map->end = 0; /* nothing to draw */
		any |= map->end != 0;
	}
	regions__clip(summary__regions_of(model->summary), begin_ns, end_ns);
	return any;
}
