/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/effect.h"

#include <math.h>
#include <stdlib.h>

#define EXPLAINS 0.33 /* share of the late time that a cause must explain */

void effect__waits(struct variance *variance, const struct heatmap *map)
{
	double late = 0, transfer = 0;

	for (size_t i = 0; i < variance->row_count; i++) {
		for (uint64_t bin = variance->begin; bin < variance->end; bin++) {
			uint32_t row = variance->rows[i];

			if (!heatmap__has(map, bin) ||
			    heatmap__owner(map, row, bin, variance__calls(variance)) != variance->id)
				continue;
			late += variance->transfers ? 0 : heatmap__late(map, row, bin);
			/* transfers with an owner are that one's */
			if (variance->transfers || !heatmap__owner(map, row, bin, HEATMAP_TRANSFERS))
				transfer += heatmap__wait(map, HEATMAP_TRANSFER, row, bin);
		}
	}
	variance->late = late;
	variance->transfer = transfer;
}

/* The waiting of the effect by bin, from its beginning; NULL when out of memory. */
static double *late_by_bin(const struct variance *effect, const struct heatmap *map)
{
	double *late = calloc(effect->end - effect->begin + 1, sizeof(*late));

	for (uint64_t bin = effect->begin; late && bin < effect->end; bin++) {
		for (size_t i = 0; heatmap__has(map, bin) && i < effect->row_count; i++) {
			if (heatmap__owner(map, effect->rows[i], bin, VAPRO_COMMUNICATION) == effect->id)
				late[bin - effect->begin] += heatmap__late(map, effect->rows[i], bin);
		}
	}
	return late;
}

/* The bins of the effect that a cause may explain, [*from, *to): a bin of slack since waits end after their cause. */
static void common_bins(const struct variance *effect, const struct variance *cause, uint64_t *from, uint64_t *to)
{
	uint64_t first = cause->begin ? cause->begin - 1 : 0;

	*from = effect->begin > first ? effect->begin : first;
	*to = effect->end < cause->end + 1 ? effect->end : cause->end + 1;
}

/* The waiting of the effect within the bins of the cause. */
static double explained(const struct variance *effect, const struct variance *cause, const double *late)
{
	uint64_t from, to;
	double sum = 0;

	common_bins(effect, cause, &from, &to);
	for (uint64_t bin = from; bin < to; bin++)
		sum += late[bin - effect->begin];
	return sum;
}

/* The loss of a row to the cause in a bin, ns. */
static double lost_to(const struct variance *cause, const struct heatmap *map, uint32_t row, uint64_t bin)
{
	struct cell cell;

	if (cause->transfers)
		return heatmap__owner(map, row, bin, HEATMAP_TRANSFERS) == cause->id
			   ? heatmap__wait(map, HEATMAP_TRANSFER, row, bin)
			   : 0;
	if (heatmap__owner(map, row, bin, cause->class) != cause->id)
		return 0;
	cell = heatmap__cell(map, row, bin, cause->class);
	return fmax(0, cell__lost(&cell));
}

/*
 * The part of the effect's waiting in a bin that other rows' losses to the cause in `at` can account for. Each list of
 * rows is read once.
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

/* Sums up accounted_in: a long slow period and a sharp one within it overlap the same waiting. */
static double accounted(const struct variance *effect, const struct variance *cause, const struct heatmap *map)
{
	uint64_t from, to;
	double sum = 0;

	common_bins(effect, cause, &from, &to);
	for (uint64_t bin = from; bin < to; bin++) {
		double part = accounted_in(effect, cause, map, bin, bin);

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

bool effect__may_delay(const struct variance *variance, size_t rows)
{
	return !variance->waiting || (variance->transfers && variance->row_count < rows);
}

uint64_t effect__cause(const struct variance *effect, const struct heatmap *map, const struct stg_job *job,
		       const struct variance_book *book)
{
	const struct variance *best = NULL;
	double best_part = 0, *late = late_by_bin(effect, map);
	bool best_other = false;

	for (size_t i = 0; late && i < book->count; i++) {
		const struct variance *cause = &book->variances[i];
		double part;
		bool other;

		if (!effect__may_delay(cause, job->row_count) || !cause->matched || cause == effect ||
		    explained(effect, cause, late) < EXPLAINS * effect->late)
			continue;
		other = other_ranks(effect, cause, job);
		part = accounted(effect, cause, map);
		if (!best || other > best_other || (other == best_other && part > best_part)) {
			best = cause;
			best_part = part;
			best_other = other;
		}
	}
	free(late);
	return best ? best->id : 0;
}
