/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/region_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREEMPTED_LITTLE 0.25 /* share of a loss of the other kind */
#define PREEMPTED_PARTS 2     /* more of them are not separate stretches: two causes alternate */

/* Whether the CPU time that others had, as the kernel reports, is enough to make a cell slow. */
enum kind { KIND_NONE, KIND_PREEMPTED, KIND_REST };

struct splitter {
	struct grower *grower;
	enum layer layer;
	uint32_t *of;	      /* components of the layer */
	unsigned char *kinds; /* [place][bin] -> enum kind */
	uint32_t *parts;      /* [place][bin] -> component of cells of one kind */
};

static bool cell_is_preempted(const struct splitter *splitter, size_t place, size_t b)
{
	struct cell cell = region__cell(splitter->grower, place, b, splitter->layer);
	double preempted = cell__preempted(&cell);

	return preempted > 0 && preempted >= (1 - splitter->grower->config->threshold) * cell__dur(&cell);
}

/* Returns whether both kinds occur. A hog's share of a bin varies: short gaps in preempted cells are preempted. */
static bool find_kinds(struct splitter *splitter)
{
	size_t bins = splitter->grower->bins, preempted = 0, rest = 0;

	for (size_t place = 0; place < splitter->grower->job->row_count; place++) {
		const uint32_t *of = &splitter->of[place * bins];
		unsigned char *kinds = &splitter->kinds[place * bins];
		size_t last = SIZE_MAX; /* last preempted bin; all since are of its component */

		for (size_t b = 0; b < bins; b++) {
			if (of[b] == NO_COMPONENT) {
				last = SIZE_MAX;
				continue;
			}
			kinds[b] = cell_is_preempted(splitter, place, b) ? KIND_PREEMPTED : KIND_REST;
			preempted += kinds[b] == KIND_PREEMPTED;
			rest += kinds[b] == KIND_REST;
			if (kinds[b] != KIND_PREEMPTED)
				continue;
			if (last != SIZE_MAX && b - last <= REGION_GAP + 1)
				memset(&kinds[last], KIND_PREEMPTED, b - last);
			last = b;
		}
	}
	return preempted && rest;
}

/* Grows neighbours of one kind together. All neighbours were of one component before. */
static int grow_kind(struct splitter *splitter, enum kind kind)
{
	struct grower *grower = splitter->grower;
	size_t bins = grower->bins;

	for (size_t place = 0; place < grower->job->row_count; place++) {
		for (size_t b = 0; b < bins; b++) {
			size_t at = place * bins + b;
			uint32_t id = (uint32_t)grower->count;

			if (splitter->kinds[at] != kind)
				continue;
			if (region__component(grower, place, b, splitter->layer))
				return -ENOMEM;
			splitter->parts[at] = id;
			if (b && splitter->kinds[at - 1] == kind)
				region__join(grower, splitter->parts[at - 1], id);
			if (place && splitter->kinds[at - bins] == kind)
				region__join(grower, splitter->parts[at - bins], id);
		}
	}
	return 0;
}

/* Whether a part can be a variance of its own, and the kernel's attribution sets it apart. */
static bool stands(const struct component *part, enum kind kind, const struct vapro_config *config)
{
	return part->cells >= config->min_cells && part->end - part->begin > 1 &&
	       part->lost >= config->min_lost_s * 1e9 &&
	       (kind == KIND_PREEMPTED || part->preempted <= PREEMPTED_LITTLE * part->lost);
}

/* Parts that cannot stand alone join the cells around them. */
static void give_up(struct splitter *splitter, enum kind kind)
{
	struct grower *grower = splitter->grower;

	for (size_t at = 0; at < grower->job->row_count * grower->bins; at++) {
		if (splitter->kinds[at] == kind &&
		    !stands(&grower->components[region__root(grower, splitter->parts[at])], kind, grower->config))
			splitter->kinds[at] = kind == KIND_PREEMPTED ? KIND_REST : KIND_PREEMPTED;
	}
}

/* Whether others had the CPU in a part: it may also be one of the other kind that could not stand alone. */
static bool part_is_preempted(const struct component *part)
{
	return part->preempted > PREEMPTED_LITTLE * part->lost;
}

/* Moves cells of components that have parts of both kinds to these parts. */
static int take_over(struct splitter *splitter)
{
	struct grower *grower = splitter->grower;
	size_t cells = grower->job->row_count * grower->bins;
	/* by component: its preempted parts, and whether it has others; by part: whether it was counted */
	uint32_t *preempted = calloc(grower->count, sizeof(*preempted));
	bool *rest = calloc(grower->count, sizeof(*rest)), *counted = calloc(grower->count, sizeof(*counted));
	int error = -ENOMEM;

	if (!preempted || !rest || !counted)
		goto cleanup;
	for (size_t at = 0; at < cells; at++) {
		uint32_t part, whole;

		if (splitter->kinds[at] == KIND_NONE)
			continue;
		part = region__root(grower, splitter->parts[at]);
		whole = region__root(grower, splitter->of[at]);
		if (splitter->kinds[at] == KIND_REST)
			rest[whole] = true;
		else if (!counted[part])
			preempted[whole] += part_is_preempted(&grower->components[part]);
		counted[part] = true;
	}
	for (size_t at = 0; at < cells; at++) {
		uint32_t whole = splitter->kinds[at] != KIND_NONE ? region__root(grower, splitter->of[at]) : 0;

		if (splitter->kinds[at] != KIND_NONE && rest[whole] && preempted[whole] &&
		    preempted[whole] <= PREEMPTED_PARTS)
			splitter->of[at] = splitter->parts[at];
	}
	error = 0;
cleanup:
	free(preempted);
	free(rest);
	free(counted);
	return error;
}

int region__split(struct grower *grower, enum layer layer)
{
	size_t cells = grower->job->row_count * grower->bins;
	struct splitter splitter = {.grower = grower,
				    .layer = layer,
				    .of = grower->of[layer],
				    .kinds = calloc(cells, 1),
				    .parts = malloc(cells * sizeof(*splitter.parts))};
	int error = -ENOMEM;

	if (!splitter.kinds || !splitter.parts)
		goto cleanup;
	error = 0;
	if (!find_kinds(&splitter))
		goto cleanup;
	error = grow_kind(&splitter, KIND_PREEMPTED);
	if (error)
		goto cleanup;
	give_up(&splitter, KIND_PREEMPTED);
	error = grow_kind(&splitter, KIND_REST);
	if (error)
		goto cleanup;
	give_up(&splitter, KIND_REST);
	error = grow_kind(&splitter, KIND_PREEMPTED);
	if (!error)
		error = take_over(&splitter);
cleanup:
	free(splitter.kinds);
	free(splitter.parts);
	return error;
}
