// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detect/region_private.h"

#include "model/judgement.h"

#define PATH_ROW 0.88 /* share of the row that lost most, for a row of a slow path */

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
	if (column->lost < REGION_WEAK * all->lost / (double)bins)
		return true;
	return layer == LAYER_WAITING && !column->open &&
	       column->lost * all->ref < SHARE_MOST * all->lost * column->ref;
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
	return lost >= mean || (lost >= REGION_WEAK * mean && row_slow(grower, place, component));
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
		if (little && grower->components[part].cpu < SHARE_MOST * grower->components[part].lost)
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
			error = set_apart(grower, layer, id, &cells[i], next - i, lost < REGION_WEAK * mean);
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

#define LEVEL_CELLS 5	   /* cells of a row: fewer do not show how slow it is */
#define LEVEL_RATIO 1.5	   /* ratio of the shares of time that two rows lose */
#define LEVEL_EXTENT 0.2   /* share of the time of both: begins or ends that differ by more are two things */
enum { LEVEL_GROUPS = 4 }; /* more in one component are not separate: each row is slow in its own way */

/* One row within a component, or rows that agree. Sums over cells of the share of time that is lost. */
struct level {
	size_t from, to; /* cells of the component, for a row */
	size_t cells, rows;
	double share, square;
	double lost;	   /* ns */
	double begin, end; /* bins; of several rows: sums */
	uint32_t component;
	uint8_t group; /* group of a row */
};

struct leveller {
	struct grower *grower;
	enum layer layer;
	struct level *rows; /* rows of one component */
	struct level groups[LEVEL_GROUPS];
	size_t row_count, group_count;
};

static void find_rows(struct leveller *leveller, const uint32_t *cells, size_t count)
{
	size_t bins = leveller->grower->bins, last = SIZE_MAX;

	leveller->row_count = 0;
	for (size_t i = 0; i < count; i++) {
		size_t place = cells[i] / bins, b = cells[i] % bins;
		struct cell cell = region__cell(leveller->grower, place, b, leveller->layer);
		double lost = fmax(0, cell__lost(&cell)), dur = cell__dur(&cell), share = dur > 0 ? lost / dur : 0;
		struct level *row;

		if (place != last)
			leveller->rows[leveller->row_count++] =
			    (struct level){.from = i, .rows = 1, .begin = (double)b};
		last = place;
		row = &leveller->rows[leveller->row_count - 1];
		row->to = i + 1;
		row->end = (double)b + 1;
		row->lost += lost;
		/* A bridged bin does not show how slow the row is. */
		if (dur <= 0)
			continue;
		row->cells++;
		row->share += share;
		row->square += share * share;
	}
}

/* The squared standard error of the mean share. */
static double error_of(const struct level *level)
{
	double n = (double)level->cells, mean = level->share / n;

	return fmax(0, level->square / n - mean * mean) / (n - 1);
}

static bool other_level(const struct level *row, const struct level *group)
{
	double a, b;

	if (row->cells < LEVEL_CELLS || group->cells < LEVEL_CELLS)
		return false;
	a = row->share / (double)row->cells;
	b = group->share / (double)group->cells;
	return fmax(a, b) > LEVEL_RATIO * fmin(a, b) &&
	       fabs(a - b) > SIGMAS_UNUSUAL * sqrt(error_of(row) + error_of(group));
}

static bool other_time(const struct level *row, const struct level *group)
{
	double begin = group->begin / (double)group->rows, end = group->end / (double)group->rows;
	double apart = fmax(fabs(row->begin - begin), fabs(row->end - end));

	return apart > HEATMAP_AT_ONCE && apart > LEVEL_EXTENT * (fmax(row->end, end) - fmin(row->begin, begin));
}

static void add_to(struct level *group, const struct level *row)
{
	group->rows++;
	group->cells += row->cells;
	group->share += row->share;
	group->square += row->square;
	group->lost += row->lost;
	group->begin += row->begin;
	group->end += row->end;
}

/* The group that a row agrees with, that of its neighbour first; LEVEL_GROUPS: none. */
static size_t group_of(const struct leveller *leveller, const struct level *row, size_t neighbour)
{
	for (size_t i = 0; i < leveller->group_count; i++) {
		size_t at = i ? i - (i <= neighbour) : neighbour;

		/* how much of its time a rank loses to slow transfers depends on how long it usually waits there */
		if ((leveller->layer == LAYER_TRANSFER || !other_level(row, &leveller->groups[at])) &&
		    !other_time(row, &leveller->groups[at]))
			return at;
	}
	return LEVEL_GROUPS;
}

/* Returns whether there are several groups, and not too many. Rows with few cells go with their neighbours. */
static bool find_groups(struct leveller *leveller)
{
	size_t at = 0;

	leveller->group_count = 0;
	for (size_t i = 0; i < leveller->row_count; i++) {
		struct level *row = &leveller->rows[i];

		if (row->cells >= LEVEL_CELLS) {
			at = leveller->group_count ? group_of(leveller, row, at) : LEVEL_GROUPS;
			if (at == LEVEL_GROUPS && leveller->group_count == LEVEL_GROUPS)
				return false;
			if (at == LEVEL_GROUPS) {
				at = leveller->group_count++;
				leveller->groups[at] = (struct level){.component = NO_COMPONENT};
			}
			add_to(&leveller->groups[at], row);
		}
		row->group = (uint8_t)at;
	}
	return leveller->group_count > 1;
}

static bool stands(const struct leveller *leveller, size_t group)
{
	const struct vapro_config *config = leveller->grower->config;

	return leveller->groups[group].cells >= config->min_cells &&
	       leveller->groups[group].lost >= config->min_lost_s * 1e9;
}

/* Groups that are not worth a draft join the one that lost most, which keeps its component. */
static size_t finalize(struct leveller *leveller)
{
	size_t most = 0, standing = 0;

	for (size_t i = 1; i < leveller->group_count; i++) {
		if (leveller->groups[i].lost > leveller->groups[most].lost)
			most = i;
	}
	for (size_t i = 0; i < leveller->group_count; i++)
		standing += stands(leveller, i);
	for (size_t i = 0; i < leveller->row_count; i++) {
		if (!stands(leveller, leveller->rows[i].group))
			leveller->rows[i].group = (uint8_t)most;
	}
	return standing;
}

/* All groups become components of their own. */
static int part(struct leveller *leveller, const uint32_t *cells)
{
	struct grower *grower = leveller->grower;

	for (size_t i = 0; i < leveller->row_count; i++) {
		const struct level *row = &leveller->rows[i];
		uint32_t *component = &leveller->groups[row->group].component;

		for (size_t k = row->from; k < row->to; k++) {
			uint32_t id = (uint32_t)grower->count;

			if (region__component(grower, cells[k] / grower->bins, cells[k] % grower->bins,
					      leveller->layer))
				return -ENOMEM;
			if (*component == NO_COMPONENT)
				*component = id;
			region__join(grower, *component, id);
			grower->of[leveller->layer][cells[k]] = *component;
		}
	}
	return 0;
}

int region__level(struct grower *grower, enum layer layer)
{
	struct leveller leveller = {.grower = grower, .layer = layer};
	struct region_list list;
	int error = 0;

	leveller.rows = malloc(grower->job->row_count * sizeof(*leveller.rows));
	if (!leveller.rows || region__list(grower, layer, &list)) {
		free(leveller.rows);
		return -ENOMEM;
	}
	for (uint32_t id = 0; id < list.count && !error; id++) {
		const uint32_t *cells = &list.cells[list.first[id]];
		size_t count = list.first[id + 1] - list.first[id];

		if (count < 2 * LEVEL_CELLS || cells[0] / grower->bins == cells[count - 1] / grower->bins)
			continue;
		find_rows(&leveller, cells, count);
		if (find_groups(&leveller) && finalize(&leveller) > 1)
			error = part(&leveller, cells);
	}
	region__unlist(&list);
	free(leveller.rows);
	return error;
}
