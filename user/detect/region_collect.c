/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes drafts of cells that grew together. */
#include "detect/region_private.h"

#include "base/grow.h"

#include <math.h>

static double attributed_at(const struct grower *grower, size_t place, size_t b, enum layer layer)
{
	struct cell cell = region__cell(grower, place, b, layer);

	/* A program sleeps at will: sleep is attributed in IO only. */
	return layer == LAYER_IO ? cell__attributed(&cell, VAPRO_IO) : (double)cell.closed.cpu + cell.open.cpu;
}

int region__collect(struct grower *grower, struct region_result *result)
{
	size_t *draft_of = malloc((grower->count ? grower->count : 1) * sizeof(*draft_of));
	int error = -ENOMEM;

	if (!draft_of)
		return -ENOMEM;
	for (size_t i = 0; i < grower->count; i++)
		draft_of[i] = SIZE_MAX;
	for (int layer = 0; layer < LAYERS; layer++) {
		for (size_t place = 0; grower->of[layer] && place < grower->job->row_count; place++) {
			for (size_t b = 0; b < grower->bins; b++) {
				uint32_t id = grower->of[layer][place * grower->bins + b];
				enum vapro_class class = region__class[layer];
				struct draft *draft;

				if (id == NO_COMPONENT)
					continue;
				id = region__draft(grower, region__root(grower, id));
				if (draft_of[id] == SIZE_MAX) {
					if (grow(&result->drafts, &result->capacity, result->count + 1,
						 sizeof(*result->drafts)))
						goto cleanup;
					draft_of[id] = result->count++;
					result->drafts[draft_of[id]] = (struct draft){.begin = UINT64_MAX};
				}
				draft = &result->drafts[draft_of[id]];
				if (grow(&draft->cells, &draft->cell_capacity, draft->cell_count + 1,
					 sizeof(*draft->cells)))
					goto cleanup;
				draft->cells[draft->cell_count++] = (struct region_cell){
				    .row = grower->job->neighbours[place],
				    .class = class,
				    .bin = grower->map->begin + b,
				};
				draft->lost[class] += region__lost(grower, place, b, layer);
				draft->attributed += attributed_at(grower, place, b, layer);
				draft->has[class] = true;
				draft->waiting |= layer == LAYER_WAITING;
				draft->path |= layer == LAYER_PATH;
				if (grower->map->begin + b < draft->begin)
					draft->begin = grower->map->begin + b;
				if (grower->map->begin + b + 1 > draft->end)
					draft->end = grower->map->begin + b + 1;
			}
		}
	}
	error = 0;
cleanup:
	free(draft_of);
	return error;
}

/*
 * Whether the loss, with all the waiting that it may cause, can be worth a variance, and is no work of the program. The
 * loss must be at least what makes one whole bin slow, since attributed cells count as slow for less.
 */
static bool may_weigh(const struct draft *draft, double lost, const struct vapro_config *config)
{
	double stride = config->window_s * 2 / 3 * 1e9, least = (1 - config->threshold) * (double)VAPRO_BIN_NS;

	return !draft->waiting && draft->attributed >= MOSTLY * lost && lost >= fmax(config->min_share * stride, least);
}

/* Counts what costs too little, once over all windows: by the bins that no later window views as its own. */
static void count_small(struct region_result *result, const struct draft *draft, double lost)
{
	size_t inside = 0;

	for (size_t i = 0; i < draft->cell_count; i++)
		inside += draft->cells[i].bin >= result->small_from && draft->cells[i].bin < result->small_to;
	result->small_count += draft->begin >= result->small_from && draft->begin < result->small_to;
	if (inside)
		result->small_ns += fmax(0, lost) * (double)inside / (double)draft->cell_count;
}

void region__filter(struct region_result *result, const struct vapro_config *config)
{
	size_t live = 0;

	for (size_t i = 0; i < result->count; i++) {
		struct draft *draft = &result->drafts[i];
		double lost = 0;

		for (int class = 0; class < VAPRO_CLASSES; class ++)
			lost += draft->lost[class];
		/* One bin seen in two classes is one cell. */
		if (draft->cell_count >= config->min_cells &&
		    (draft->end - draft->begin > 1 || draft->cell_count >= 2 * config->min_cells ||
		     draft->cells[0].row != draft->cells[draft->cell_count - 1].row) &&
		    lost >= config->min_lost_s * 1e9) {
			result->drafts[live++] = *draft;
		} else if (may_weigh(draft, lost, config)) {
			result->drafts[live++] = *draft;
		} else {
			count_small(result, draft, lost);
			free(draft->cells);
		}
	}
	/* The slots that were moved from must not be freed twice. */
	memset(&result->drafts[live], 0, (result->count - live) * sizeof(*result->drafts));
	result->count = live;
}
