// SPDX-License-Identifier: GPL-2.0-or-later
/* Since when and until when sets of ranks last: see sets.h. */
#include "detect/sets.h"

#include "base/grow.h"

#include <math.h>

#define SURE_BINS 25 /* a third of a view: a set is slow in each third, so it begins and ends within one */

/* Whether two sets are mostly the same rows. */
static bool same_rows(const struct rank_set *a, const struct rank_set *b, const struct stg_job *job)
{
	size_t common = 0;

	for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
		uint32_t left = job->place[a->rows[i]], right = job->place[b->rows[k]];

		common += left == right;
		i += left <= right;
		k += right <= left;
	}
	return 3 * common >= 2 * (a->count + b->count - common);
}

/* Performance of the rows of a set in a bin, over all of them; NAN where none is covered. */
static double performance_in(const struct rank_set *set, const struct heatmap *map, uint64_t bin)
{
	double dur = 0, lost = 0;

	for (size_t i = 0; i < set->count; i++) {
		struct cell cell = heatmap__cell(map, set->rows[i], bin, VAPRO_COMPUTATION);

		dur += cell__dur(&cell);
		lost += cell__lost(&cell);
	}
	return dur > 0 ? 1 - lost / dur : NAN;
}

/* Performance half way between calm and that of a set. */
static double half_of(const struct rank_set *set)
{
	return 1 - (1 - 1 / set->ratio) / 2;
}

/*
 * Counts bins at the end or the begin of a set in which its rows were not slow: a set is found by its time in a whole
 * view, and may begin or end within it. A calm bin counts as 1, a bin as slow as the set as -1, so that the greatest
 * sum is the likeliest border, if more than `least` bins are before it.
 */
static uint64_t calm_bins(const struct rank_set *set, const struct heatmap *map, bool at_end, uint64_t least)
{
	uint64_t from = set->since > map->begin ? set->since : map->begin, calm = 0;
	uint64_t to = set->until < map->end ? set->until : map->end;
	double half = half_of(set), sum = 0, most = (double)least;

	for (uint64_t i = 0; from + i < to && sum > -SURE_BINS; i++) {
		double performance = performance_in(set, map, at_end ? to - 1 - i : from + i);

		if (isnan(performance))
			continue;
		sum += (performance - half) / (1 - half);
		if (sum > most) {
			most = sum;
			calm = i + 1;
		}
	}
	/* a set that is slow nowhere in the map has no border */
	return from + calm < to ? calm : 0;
}

/*
 * Finds the begin of a new set: as far back as its rows together are slow by more than half of the present, or within
 * the view.
 */
static void find_begin(struct rank_set *set, const struct heatmap *map)
{
	double half = half_of(set);
	uint64_t gap = 0;

	for (uint64_t bin = set->since; bin-- > map->begin && gap <= 2 * REGION_GAP;) {
		double performance = performance_in(set, map, bin);

		if (performance < half) {
			set->since = bin;
			gap = 0;
		} else if (!isnan(performance)) {
			gap++;
		}
	}
	set->since = set->since > map->begin ? set->since : map->begin;
	set->since += calm_bins(set, map, false, REGION_GAP);
}

static void trim_end(struct rank_set *set, const struct heatmap *map)
{
	/* fewer calm bins than may lie between two parts of one disturbance are no end yet */
	uint64_t calm = calm_bins(set, map, true, region__gap(map));
	uint64_t to = set->until < map->end ? set->until : map->end;

	if (calm)
		set->until = to - calm;
}

/* Finds the end of an ended set: as find_begin, from its last known bin on. */
static void find_end(struct rank_set *set, const struct heatmap *map)
{
	double half = half_of(set);
	uint64_t gap = 0, known;

	for (uint64_t bin = set->until; bin < map->end && gap <= REGION_GAP; bin++) {
		double performance = bin < map->begin ? NAN : performance_in(set, map, bin);

		if (performance < half) {
			set->until = bin + 1;
			gap = 0;
		} else if (!isnan(performance)) {
			gap++;
		}
	}
	set->over = true;
	known = set->until;
	/* the bins after the end are calm: a few calm bins before it belong to them */
	set->until += region__gap(map);
	trim_end(set, map);
	set->until = set->until < known ? set->until : known;
}

/* Retains sets that are not found any more as long as the map has a part of them. */
static int keep_over(struct sets *sets, struct sets *before, const struct heatmap *map)
{
	for (size_t i = 0; i < before->count; i++) {
		struct rank_set *old = &before->items[i];

		if (!old->rows || !old->variance || old->until <= map->begin)
			continue;
		if (!old->over)
			find_end(old, map);
		if (grow(&sets->items, &sets->capacity, sets->count + 1, sizeof(*sets->items)))
			return -ENOMEM;
		sets->items[sets->count++] = *old;
		old->rows = NULL;
	}
	return 0;
}

/* Takes over the begin of each set from former sets. */
static void join_before(struct sets *sets, struct sets *before, const struct stg_job *job, const struct heatmap *map)
{
	for (size_t i = 0; i < sets->count; i++) {
		struct rank_set *old = NULL;

		trim_end(&sets->items[i], map);
		for (size_t k = 0; k < before->count && !old; k++) {
			if (before->items[k].rows && !before->items[k].over &&
			    same_rows(&sets->items[i], &before->items[k], job))
				old = &before->items[k];
		}
		if (!old) {
			find_begin(&sets->items[i], map);
			/* A few outliers in one view look alike: ranks of no common place must last into the next. */
			sets->items[i].variance &= sets->items[i].place;
			continue;
		}
		sets->items[i].since = old->since;
		free(old->rows);
		old->rows = NULL;
	}
}

int sets__continue(struct sets *sets, struct sets *before, const struct stg_job *job, const struct heatmap *map)
{
	join_before(sets, before, job, map);
	return keep_over(sets, before, map);
}
