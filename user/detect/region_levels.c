/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/region_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LEVEL_CELLS 5	 /* cells of a row: fewer do not show how slow it is */
#define LEVEL_RATIO 1.5	 /* ratio of the shares of time that two rows lose */
#define LEVEL_SIGMAS 4	 /* distance of these shares, in standard errors of their means */
#define LEVEL_BINS 5	 /* begins or ends that differ by more are two things ... */
#define LEVEL_EXTENT 0.2 /* ... where it is more than this share of the time of both */
#define LEVEL_GROUPS 4	 /* more in one component are not separate: each row is slow in its own way */

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
	       fabs(a - b) > LEVEL_SIGMAS * sqrt(error_of(row) + error_of(group));
}

static bool other_time(const struct level *row, const struct level *group)
{
	double begin = group->begin / (double)group->rows, end = group->end / (double)group->rows;
	double apart = fmax(fabs(row->begin - begin), fabs(row->end - end));

	return apart > LEVEL_BINS && apart > LEVEL_EXTENT * (fmax(row->end, end) - fmin(row->begin, begin));
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

		if (!other_level(row, &leveller->groups[at]) && !other_time(row, &leveller->groups[at]))
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
