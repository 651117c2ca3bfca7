// SPDX-License-Identifier: GPL-2.0-or-later
/* Since when and until when sets of ranks last: see sets.h. */
#include "detect/sets.h"

#include "model/grow.h"

#include <math.h>

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

/* Where a new set begins: as far back as its rows together are slower than half of what they are now. */
static void find_begin(struct rank_set *set, const struct heatmap *map)
{
	double half = 1 - (1 - 1 / set->ratio) / 2;
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
}

/* Where a set that is no more has ended: as find_begin, from where it was known to last. */
static void find_end(struct rank_set *set, const struct heatmap *map)
{
	double half = 1 - (1 - 1 / set->ratio) / 2;
	uint64_t gap = 0;

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
}

/* Sets that were found before and are not now: they stay as long as the map has a part of them. */
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

/* Takes over from before since when each set lasts. */
static void join_before(struct sets *sets, struct sets *before, const struct stg_job *job, const struct heatmap *map)
{
	for (size_t i = 0; i < sets->count; i++) {
		struct rank_set *old = NULL;

		for (size_t k = 0; k < before->count && !old; k++) {
			if (before->items[k].rows && !before->items[k].over &&
			    same_rows(&sets->items[i], &before->items[k], job))
				old = &before->items[k];
		}
		if (!old) {
			find_begin(&sets->items[i], map);
			/* A few outliers in one view look the same: ranks of no common place must last into the next.
			 */
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
