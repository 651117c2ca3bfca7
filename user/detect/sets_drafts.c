// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets of ranks as drafts of variances: see sets.h. */
#include "detect/sets.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <math.h>

#define ABSORBED 1.3 /* times the set's ratio: slower drafts have a cause of their own */

/* Sums the time, the loss and the attributed loss of a draft's cells. */
static void sum_draft(const struct draft *draft, const struct heatmap *map, double *dur, double *lost,
		      double *attributed)
{
	*dur = *lost = *attributed = 0;
	for (size_t i = 0; i < draft->cell_count; i++) {
		const struct region_cell *at = &draft->cells[i];
		struct cell cell = heatmap__cell(map, at->row, at->bin, at->class);

		*dur += cell__dur(&cell);
		*lost += cell__lost(&cell);
		*attributed += cell__attributed(&cell, at->class);
	}
}

/* Whether a draft is nothing but the slowest cells of a set. */
static bool goes_up(const struct rank_set *set, const unsigned char *in, const struct draft *draft,
		    const struct heatmap *map)
{
	double dur, lost, attributed;

	if (draft->waiting || draft->path)
		return false;
	for (size_t i = 0; i < draft->cell_count; i++) {
		if (!in[draft->cells[i].row] || draft->cells[i].class != VAPRO_COMPUTATION)
			return false;
	}
	sum_draft(draft, map, &dur, &lost, &attributed);
	return attributed < lost / 2 && dur <= ABSORBED * set->ratio * (dur - lost);
}

/* Marks cells of a set's rows that drafts own. */
static void mark_owned(const struct region_result *drafts, const uint32_t *number, uint64_t begin, uint64_t bins,
		       unsigned char *owned)
{
	for (size_t d = 0; d < drafts->count; d++) {
		for (size_t i = 0; i < drafts->drafts[d].cell_count; i++) {
			const struct region_cell *at = &drafts->drafts[d].cells[i];

			if (at->class == VAPRO_COMPUTATION && number[at->row] && at->bin >= begin)
				owned[(number[at->row] - 1) * bins + (at->bin - begin)] = 1;
		}
	}
}

static int add_cells(struct draft *draft, const struct rank_set *set, const struct heatmap *map,
		     const struct vapro_config *config, uint64_t begin, const unsigned char *owned)
{
	uint64_t bins = map->end - begin;

	for (size_t i = 0; i < set->count; i++) {
		for (uint64_t bin = begin; bin < map->end; bin++) {
			struct cell cell = heatmap__cell(map, set->rows[i], bin, VAPRO_COMPUTATION);

			if (bin >= set->until || owned[i * bins + (bin - begin)] ||
			    isnan(cell__performance(&cell, config)))
				continue;
			if (grow(&draft->cells, &draft->cell_capacity, draft->cell_count + 1, sizeof(*draft->cells)))
				return -ENOMEM;
			draft->cells[draft->cell_count++] =
			    (struct region_cell){.row = set->rows[i], .class = VAPRO_COMPUTATION, .bin = bin};
			draft->lost[VAPRO_COMPUTATION] += cell__lost(&cell);
			draft->begin = bin < draft->begin ? bin : draft->begin;
			draft->end = bin + 1 > draft->end ? bin + 1 : draft->end;
		}
	}
	return 0;
}

/*
 * Whether the cells of a set show at least half of its excess. Ranks whose own references were learnt while slow lose
 * nothing against them, and a variance would show no loss: the set is only an imbalance. With instructions all ranks
 * have one reference.
 */
static bool shows(const struct rank_set *set, const struct heatmap *map)
{
	uint64_t begin = set->since > map->begin ? set->since : map->begin;
	double dur = 0, lost = 0;

	for (uint64_t bin = begin; bin < map->end && bin < set->until; bin++) {
		for (size_t i = 0; i < set->count; i++) {
			struct cell cell = heatmap__cell(map, set->rows[i], bin, VAPRO_COMPUTATION);

			dur += cell__dur(&cell);
			lost += cell__lost(&cell);
		}
	}
	return lost >= SHARE_MOST * (1 - 1 / set->ratio) * dur;
}

static int apply(const struct rank_set *set, const struct heatmap *map, const struct stg_job *job,
		 const struct vapro_config *config, struct region_result *drafts)
{
	uint64_t begin = set->since > map->begin ? set->since : map->begin, bins = map->end - begin;
	struct draft draft = {.begin = UINT64_MAX, .has[VAPRO_COMPUTATION] = true, .lasting = true};
	uint32_t *number = calloc(job->row_count + 1, sizeof(*number));
	unsigned char *in = calloc(job->row_count + 1, 1), *owned = calloc(set->count * bins + 1, 1);
	size_t left = 0;
	int error = -ENOMEM;

	if (!number || !in || !owned || grow(&drafts->drafts, &drafts->capacity, drafts->count + 1, sizeof(draft)))
		goto cleanup;
	for (size_t i = 0; i < set->count; i++) {
		number[set->rows[i]] = (uint32_t)i + 1;
		in[set->rows[i]] = 1;
	}
	for (size_t d = 0; d < drafts->count; d++) {
		if (goes_up(set, in, &drafts->drafts[d], map))
			free(drafts->drafts[d].cells);
		else
			drafts->drafts[left++] = drafts->drafts[d];
	}
	memset(&drafts->drafts[left], 0, (drafts->count - left) * sizeof(*drafts->drafts));
	drafts->count = left;
	mark_owned(drafts, number, begin, bins, owned);
	error = add_cells(&draft, set, map, config, begin, owned);
	if (!error && draft.cell_count)
		drafts->drafts[drafts->count++] = draft;
	else
		free(draft.cells);
cleanup:
	free(number);
	free(in);
	free(owned);
	return error;
}

int sets__apply(const struct sets *sets, const struct heatmap *map, const struct stg_job *job,
		const struct vapro_config *config, struct region_result *drafts)
{
	int error = 0;

	for (size_t i = 0; !error && i < sets->count; i++) {
		const struct rank_set *set = &sets->items[i];

		if (set->variance && set->since < map->end && (set->certain || shows(set, map)))
			error = apply(set, map, job, config, drafts);
	}
	return error;
}
