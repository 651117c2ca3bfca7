/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows that only touch a draft are another one. */
#include "detect/region_private.h"

#include <errno.h>
#include <stdlib.h>

#define NEXT_TO_NOTHING 0.2 /* share of the mean row's loss */
#define LITTLE 0.5	    /* the same, of a row that is in the draft for less than ... */
#define SHORT_PART 0.5	    /* ... this share of the draft's time */

/* A draft, by the component that stands for it; ns and bins. */
struct whole {
	double lost;
	size_t rows;
	size_t begin, end;
	uint32_t component; /* one of its components */
	uint32_t touching;  /* the component that stands for rows that only touch it; NO_COMPONENT: none so far */
	bool several;	    /* it has several components */
	bool calls;	    /* it has waiting or slow paths, whose rows are compared as they grow (region__trim) */
};

/* What one row has of a draft. */
struct part {
	double lost;
	size_t begin, end;
	bool seen;
};

struct sharer {
	struct grower *grower;
	struct whole *wholes;
	struct part *parts; /* of one row, by draft */
	uint32_t *touched;  /* drafts that the row has cells of */
	size_t touched_count;
};

static void add_cell(struct sharer *sharer, size_t place, size_t b, enum layer layer)
{
	uint32_t root = region__root(sharer->grower, sharer->grower->of[layer][place * sharer->grower->bins + b]);
	uint32_t draft = region__draft(sharer->grower, root);
	struct part *part = &sharer->parts[draft];
	struct whole *whole = &sharer->wholes[draft];

	if (!part->seen) {
		*part = (struct part){.begin = b, .seen = true};
		sharer->touched[sharer->touched_count++] = draft;
	}
	if (whole->component == NO_COMPONENT)
		whole->component = root;
	whole->several |= whole->component != root;
	whole->calls |= layer == LAYER_WAITING || layer == LAYER_PATH;
	part->lost += region__lost(sharer->grower, place, b, layer);
	part->begin = b < part->begin ? b : part->begin;
	part->end = b + 1 > part->end ? b + 1 : part->end;
}

/* Sums up what a row has of each draft. */
static void sum_row(struct sharer *sharer, size_t place)
{
	for (size_t i = 0; i < sharer->touched_count; i++)
		sharer->parts[sharer->touched[i]].seen = false;
	sharer->touched_count = 0;
	for (int layer = 0; layer < LAYERS; layer++) {
		const uint32_t *of = sharer->grower->of[layer];

		for (size_t b = 0; of && b < sharer->grower->bins; b++) {
			if (of[place * sharer->grower->bins + b] != NO_COMPONENT)
				add_cell(sharer, place, b, (enum layer)layer);
		}
	}
}

/* Adds a row that was summed up to the drafts. */
static void add_row(struct sharer *sharer)
{
	for (size_t i = 0; i < sharer->touched_count; i++) {
		const struct part *part = &sharer->parts[sharer->touched[i]];
		struct whole *whole = &sharer->wholes[sharer->touched[i]];

		whole->begin = !whole->rows || part->begin < whole->begin ? part->begin : whole->begin;
		whole->end = part->end > whole->end ? part->end : whole->end;
		whole->lost += part->lost;
		whole->rows++;
	}
}

/* Whether the row only touches the draft. */
static bool is_apart(const struct part *part, const struct whole *whole)
{
	double mean = whole->lost / (double)whole->rows;

	if (whole->calls || whole->rows < 2)
		return false;
	return part->lost < NEXT_TO_NOTHING * mean ||
	       (whole->several && part->lost < LITTLE * mean &&
		(double)(part->end - part->begin) < SHORT_PART * (double)(whole->end - whole->begin));
}

/* Takes the row's cells out of drafts that it only touches. Returns 0 or -ENOMEM. */
static int part_row(struct sharer *sharer, size_t place)
{
	struct grower *grower = sharer->grower;

	for (int layer = 0; layer < LAYERS; layer++) {
		uint32_t *of = grower->of[layer];

		for (size_t b = 0; of && b < grower->bins; b++) {
			uint32_t *at = &of[place * grower->bins + b], draft, id = (uint32_t)grower->count;

			if (*at == NO_COMPONENT)
				continue;
			draft = region__draft(grower, region__root(grower, *at));
			if (!is_apart(&sharer->parts[draft], &sharer->wholes[draft]))
				continue;
			if (region__component(grower, place, b, (enum layer)layer))
				return -ENOMEM;
			if (sharer->wholes[draft].touching == NO_COMPONENT)
				sharer->wholes[draft].touching = id;
			grower->components[id].draft = sharer->wholes[draft].touching;
			*at = id;
		}
	}
	return 0;
}

int region__part_rows(struct grower *grower)
{
	struct sharer sharer = {.grower = grower};
	size_t count = grower->count;
	int error = 0;

	if (!count)
		return 0;
	sharer.wholes = calloc(count, sizeof(*sharer.wholes));
	sharer.parts = calloc(count, sizeof(*sharer.parts));
	sharer.touched = malloc(count * sizeof(*sharer.touched));
	if (!sharer.wholes || !sharer.parts || !sharer.touched)
		error = -ENOMEM;
	for (size_t i = 0; !error && i < count; i++)
		sharer.wholes[i].component = sharer.wholes[i].touching = NO_COMPONENT;
	for (size_t place = 0; !error && place < grower->job->row_count; place++) {
		sum_row(&sharer, place);
		add_row(&sharer);
	}
	for (size_t place = 0; !error && place < grower->job->row_count; place++) {
		sum_row(&sharer, place);
		error = part_row(&sharer, place);
	}
	free(sharer.wholes);
	free(sharer.parts);
	free(sharer.touched);
	return error;
}
