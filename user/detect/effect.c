/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/effect.h"

#include <math.h>

#define EXPLAINS 0.33

void effect__waits(struct variance *variance, const struct heatmap *map)
{
	double late = 0, transfer = 0;

	for (size_t i = 0; i < variance->row_count; i++) {
		for (uint64_t bin = variance->begin; bin < variance->end; bin++) {
			uint32_t row = variance->rows[i];

			if (!heatmap__has(map, bin) ||
			    heatmap__owner(map, row, bin, VAPRO_COMMUNICATION) != variance->id)
				continue;
			late += heatmap__late(map, row, bin);
			transfer += heatmap__wait(map, HEATMAP_TRANSFER, row, bin);
		}
	}
	variance->late = late;
	variance->transfer = transfer;
}

/* The waiting of the effect within the bins of the cause; a bin of slack since waits end after their cause. */
static double explained(const struct variance *effect, const struct variance *cause, const struct heatmap *map)
{
	double late = 0;

	for (size_t i = 0; i < effect->row_count; i++) {
		for (uint64_t bin = effect->begin; bin < effect->end; bin++) {
			uint32_t row = effect->rows[i];

			if (!heatmap__has(map, bin) || bin + 1 < cause->begin || bin > cause->end)
				continue;
			if (heatmap__owner(map, row, bin, VAPRO_COMMUNICATION) == effect->id)
				late += heatmap__late(map, row, bin);
		}
	}
	return late;
}

/* What a row lost to the cause in a bin, ns. */
static double lost_to(const struct variance *cause, const struct heatmap *map, uint32_t row, uint64_t bin)
{
	struct cell cell;

	if (heatmap__owner(map, row, bin, cause->class) != cause->id)
		return 0;
	cell = heatmap__cell(map, row, bin, cause->class);
	return fmax(0, cell__lost(&cell));
}

/*
 * The part of the effect's waiting in a bin that other rows' losses to the cause in `at` can account for. The
 * rows are gone through once each.
 */
static double accounted_in(const struct variance *effect, const struct variance *cause, const struct heatmap *map,
			   uint64_t bin, uint64_t at)
{
	double all = 0, sum = 0;

	if (!heatmap__has(map, bin) || !heatmap__has(map, at))
		return 0;
	for (size_t i = 0; i < cause->row_count; i++)
		all += lost_to(cause, map, cause->rows[i], at);
	for (size_t i = 0; i < effect->row_count && all > 0; i++) {
		uint32_t row = effect->rows[i];

		if (heatmap__owner(map, row, bin, VAPRO_COMMUNICATION) == effect->id)
			sum += fmin(heatmap__late(map, row, bin), all - lost_to(cause, map, row, at));
	}
	return sum;
}

/* The same of all bins: a long slow spell and a sharp one within it overlap the same waiting. A bin of slack as above.
 */
static double accounted(const struct variance *effect, const struct variance *cause, const struct heatmap *map)
{
	double sum = 0;

	for (uint64_t bin = effect->begin; bin < effect->end; bin++) {
		double part;

		if (bin + 1 < cause->begin || bin > cause->end)
			continue;
		part = accounted_in(effect, cause, map, bin, bin);
		if (part <= 0 && bin)
			part = accounted_in(effect, cause, map, bin, bin - 1);
		sum += part;
	}
	return sum;
}

static bool other_ranks(const struct variance *effect, const struct variance *cause, const struct stg_job *job)
{
	size_t at = 0;

	/* Both lists are in rank order. */
	for (size_t i = 0; i < cause->row_count; i++) {
		uint32_t place = job->place[cause->rows[i]];

		while (at < effect->row_count && job->place[effect->rows[at]] < place)
			at++;
		if (at == effect->row_count || effect->rows[at] != cause->rows[i])
			return true;
	}
	return false;
}

uint64_t effect__cause(const struct variance *effect, const struct heatmap *map, const struct stg_job *job,
		       const struct variance_book *book)
{
	const struct variance *best = NULL;
	double best_part = 0;
	bool best_other = false;

	for (size_t i = 0; i < book->count; i++) {
		const struct variance *cause = &book->variances[i];
		double part;
		bool other;

		if (cause->waiting || !cause->matched || cause == effect ||
		    explained(effect, cause, map) < EXPLAINS * effect->late)
			continue;
		other = other_ranks(effect, cause, job);
		part = accounted(effect, cause, map);
		if (!best || other > best_other || (other == best_other && part > best_part)) {
			best = cause;
			best_part = part;
			best_other = other;
		}
	}
	return best ? best->id : 0;
}
