/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/region_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WEAK_BORDER 0.2 /* share of the mean column or row */
#define WEAK_WAIT 0.5	/* part of the ratio of all waiting */
#define PATH_ROW 0.88	/* share of the row that lost most */

void region__unlist(struct region_list *list)
{
	free(list->cells);
	free(list->first);
	*list = (struct region_list){0};
}

int region__list(struct grower *grower, enum layer layer, struct region_list *list)
{
	size_t all = grower->job->row_count * grower->bins, count = 0;
	uint32_t *of = grower->of[layer], sum = 0;

	*list = (struct region_list){.first = calloc(grower->count + 2, sizeof(*list->first)), .count = grower->count};
	if (!list->first)
		return -ENOMEM;
	for (size_t at = 0; at < all; at++) {
		if (of[at] == NO_COMPONENT)
			continue;
		of[at] = region__root(grower, of[at]);
		list->first[of[at] + 1]++;
		count++;
	}
	list->cells = malloc((count ? count : 1) * sizeof(*list->cells));
	if (!list->cells) {
		region__unlist(list);
		return -ENOMEM;
	}
	for (size_t id = 0; id <= grower->count; id++) {
		sum += list->first[id];
		list->first[id] = sum;
	}
	for (size_t at = 0; at < all; at++) {
		if (of[at] != NO_COMPONENT)
			list->cells[list->first[of[at]]++] = (uint32_t)at;
	}
	/* Each entry is now the first of the next. */
	memmove(&list->first[1], &list->first[0], grower->count * sizeof(*list->first));
	list->first[0] = 0;
	return 0;
}

/* Loss and reference of a component's cells in a bin, ns. */
struct column {
	double lost, ref;
	bool open; /* some calls have not ended, and may lose more */
};

/*
 * Whether a column is too weak for a border of a component of `bins` columns: it loses next to nothing beside the mean
 * column. Waiting is also too weak where its ratio is much lower than that of the component: after a fault in calls,
 * ranks wait once more for the ranks that the fault held up.
 */
static bool is_weak(const struct column *column, const struct column *all, uint64_t bins, enum layer layer)
{
	if (column->lost < WEAK_BORDER * all->lost / (double)bins)
		return true;
	return layer == LAYER_WAITING && !column->open && column->lost * all->ref < WEAK_WAIT * all->lost * column->ref;
}

/* Columns at either end that lose next to nothing are noise that happens to touch the region. */
static void trim_columns(struct grower *grower, enum layer layer, uint32_t id, const uint32_t *cells, size_t count,
			 struct column *columns)
{
	struct component *component = &grower->components[id];
	uint64_t begin = component->begin, end = component->end, bins = end - begin;
	struct column all = {.lost = component->lost};

	if (bins < 3)
		return;
	memset(&columns[begin], 0, bins * sizeof(*columns));
	for (size_t i = 0; i < count; i++) {
		size_t b = cells[i] % grower->bins;
		struct cell cell = region__cell(grower, cells[i] / grower->bins, b, layer);
		double lost = cell__lost(&cell), ref = cell__dur(&cell) - lost;

		columns[b].lost += lost;
		columns[b].ref += ref;
		columns[b].open |= cell.open.dur > 0;
		all.ref += ref;
	}
	while (end - begin > 2 && is_weak(&columns[begin], &all, bins, layer))
		begin++;
	while (end - begin > 2 && is_weak(&columns[end - 1], &all, bins, layer))
		end--;
	for (size_t i = 0; i < count && (begin > component->begin || end < component->end); i++) {
		size_t b = cells[i] % grower->bins;

		if (b < begin || b >= end)
			grower->of[layer][cells[i]] = NO_COMPONENT;
	}
	component->begin = begin;
	component->end = end;
}

/* Whether a row as a whole is slow from begin to end, not only in the cells that grew together. */
static bool row_slow(const struct grower *grower, size_t place, const struct component *component)
{
	double lost = 0, dur = 0;

	for (size_t b = component->begin; b < component->end; b++) {
		struct cell cell = region__cell(grower, place, b, component->layer);

		lost += cell__lost(&cell);
		dur += cell__dur(&cell);
	}
	return dur > 0 && 1 - lost / dur < grower->config->threshold;
}

/* Sums the loss of a row from cell `from` of a component on, of slow paths only their part; *next: the first cell of
 * the next row. */
static double lost_by_row(const struct grower *grower, enum layer layer, const uint32_t *cells, size_t count,
			  size_t from, size_t *next)
{
	size_t place = cells[from] / grower->bins;
	double lost = 0;

	for (*next = from; *next < count && cells[*next] / grower->bins == place; ++*next) {
		size_t b = cells[*next] % grower->bins;

		if (grower->of[layer][cells[*next]] == NO_COMPONENT)
			continue;
		/* All ranks behind a slow path lose as much in total; only its own rank loses on the path. */
		lost += layer == LAYER_PATH ? heatmap__wait(grower->map, HEATMAP_PATH, grower->job->neighbours[place],
							    grower->map->begin + b)
					    : region__lost(grower, place, b, layer);
	}
	return lost;
}

/* Whether a row is part of a component, by its loss, the mean and the greatest loss of rows. */
static bool belongs(const struct grower *grower, const struct component *component, size_t place, double lost,
		    double mean, double most)
{
	/* A rank that only communicates with a slow path's rank is slow by less. */
	if (component->layer == LAYER_PATH)
		return lost >= PATH_ROW * most;
	return lost >= mean || (lost >= WEAK_BORDER * mean && row_slow(grower, place, component));
}

/* Takes a part out of the sums of a component. */
static void take_out(struct component *component, const struct component *part)
{
	component->cells -= part->cells;
	component->lost -= part->lost;
	component->cpu -= part->cpu;
	component->preempted -= part->preempted;
	component->blocked -= part->blocked;
}

/*
 * Makes components of a row's cells, one of each stretch: what the row lost is no part of component `id`, but may be a
 * region of its own. Where the row lost `little`, only stretches that the kernel attributes become components: the rest
 * is noise, or spills over from the region.
 * Returns 0 or -ENOMEM.
 */
static int set_apart(struct grower *grower, enum layer layer, uint32_t id, const uint32_t *cells, size_t count,
		     bool little)
{
	uint32_t *of = grower->of[layer];

	for (size_t from = 0, next; from < count; from = next) {
		uint32_t part = (uint32_t)grower->count;

		for (next = from; next < count && of[cells[next]] != NO_COMPONENT &&
				  (next == from || cells[next] - cells[next - 1] <= grower->gap + 1);
		     next++) {
			if (region__component(grower, cells[next] / grower->bins, cells[next] % grower->bins, layer))
				return -ENOMEM;
			region__join(grower, part, (uint32_t)grower->count - 1);
		}
		if (next == from) { /* a cell of a column that was cut off */
			next++;
			continue;
		}
		take_out(&grower->components[id], &grower->components[part]);
		if (little && grower->components[part].cpu < MOSTLY * grower->components[part].lost)
			part = NO_COMPONENT;
		for (size_t i = from; i < next; i++)
			of[cells[i]] = part;
	}
	return 0;
}

/*
 * Sets apart rows that lose next to nothing beside the others, or that lose for a short part of the region's time: they
 * only touch the region. Returns 0 or -ENOMEM.
 */
static int trim_rows(struct grower *grower, enum layer layer, uint32_t id, const uint32_t *cells, size_t count)
{
	struct component component = grower->components[id];
	bool calls = layer == LAYER_WAITING || layer == LAYER_PATH;
	size_t in = 0;
	double mean, most = 0;
	int error = 0;

	if (component.cells < 3)
		return 0;
	for (size_t i = 0, next; i < count; i = next) {
		double lost = lost_by_row(grower, layer, cells, count, i, &next);

		in += lost > 0;
		most = lost > most ? lost : most;
	}
	mean = component.lost / (double)in;
	for (size_t i = 0, next; in > 1 && !error && i < count; i = next) {
		double lost = lost_by_row(grower, layer, cells, count, i, &next);

		if (belongs(grower, &component, cells[i] / grower->bins, lost, mean, most))
			continue;
		if (!calls)
			error = set_apart(grower, layer, id, &cells[i], next - i, lost < WEAK_BORDER * mean);
		for (size_t k = i; calls && k < next; k++)
			grower->of[layer][cells[k]] = NO_COMPONENT;
	}
	return error;
}

int region__trim(struct grower *grower, enum layer layer)
{
	struct column *columns = calloc(grower->bins, sizeof(*columns));
	struct region_list list;
	int error = 0;

	if (!columns || region__list(grower, layer, &list)) {
		free(columns);
		return -ENOMEM;
	}
	for (uint32_t id = 0; id < list.count && !error; id++) {
		const uint32_t *cells = &list.cells[list.first[id]];
		size_t count = list.first[id + 1] - list.first[id];

		if (!count)
			continue;
		trim_columns(grower, layer, id, cells, count, columns);
		error = trim_rows(grower, layer, id, cells, count);
	}
	region__unlist(&list);
	free(columns);
	return error;
}
