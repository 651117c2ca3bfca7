/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/region_private.h"

#include "model/judgement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREEMPTED_LITTLE 0.25 /* share of a loss by the other kind of suspension */
#define STALLED_BORDER 0.6    /* lost share of the bins in which a stall begins and ends */
#define STALLED_PART 0.7      /* lost share of a stretch that is stalled */
#define BORDER_BINS 1	      /* beside a marked cell: what it shows begins or ends there */
#define MARKED_PARTS 2	      /* marked parts of a component that are separate stretches in any case */
#define PART_PERIOD 15	      /* cells of a component for each marked part: with fewer two causes alternate */

/* Cells that have the mark by which a component is split, and the others. */
enum kind { KIND_NONE, KIND_MARKED, KIND_REST };

struct mark {
	bool (*has_cell)(const struct cell *cell, double threshold);
	bool (*may_begin)(const struct cell *cell); /* of a cell beside one that has the mark; NULL: none */
	bool (*has_part)(const struct component *part);
};

struct splitter {
	struct grower *grower;
	enum layer layer;
	const struct mark *mark;
	uint32_t *of;	      /* components of the layer */
	unsigned char *kinds; /* [place][bin] -> enum kind */
	uint32_t *parts;      /* [place][bin] -> component of cells of one kind */
};

/* Whether the CPU time that others had, as the kernel reports, is enough to make a cell slow. */
static bool cell_is_preempted(const struct cell *cell, double threshold)
{
	double preempted = cell__preempted(cell);

	return preempted > 0 && preempted >= (1 - threshold) * cell__dur(cell);
}

static bool part_is_preempted(const struct component *part)
{
	return part->preempted > PREEMPTED_LITTLE * part->lost;
}

static bool loses(const struct cell *cell, double share)
{
	double dur = cell__dur(cell);

	return dur > 0 && cell__lost(cell) >= share * dur;
}

static bool cell_is_stalled(const struct cell *cell, double threshold)
{
	(void)threshold;
	return loses(cell, SHARE_NEARLY_ALL);
}

static bool cell_begins_stall(const struct cell *cell)
{
	return loses(cell, STALLED_BORDER);
}

static bool part_is_stalled(const struct component *part)
{
	return part->lost > STALLED_PART * (double)part->cells * (double)VAPRO_BIN_NS;
}

static const struct mark marks[] = {
    [REGION_PREEMPTED] = {.has_cell = cell_is_preempted, .has_part = part_is_preempted},
    [REGION_STALLED] = {.has_cell = cell_is_stalled, .may_begin = cell_begins_stall, .has_part = part_is_stalled},
};

static bool has_mark(const struct splitter *splitter, size_t place, size_t b)
{
	struct cell cell = region__cell(splitter->grower, place, b, splitter->layer);

	return splitter->mark->has_cell(&cell, splitter->grower->config->threshold);
}

/* Marks the cells in which what the marked ones show begins or ends. */
static void mark_borders(const struct splitter *splitter, size_t place)
{
	size_t bins = splitter->grower->bins;
	unsigned char *kinds = &splitter->kinds[place * bins];
	bool marked = false; /* the cell before has the mark itself */

	for (size_t b = 0; b < bins; b++) {
		bool itself = kinds[b] == KIND_MARKED;
		bool beside = marked || (b + 1 < bins && kinds[b + 1] == KIND_MARKED);
		struct cell cell = region__cell(splitter->grower, place, b, splitter->layer);

		if (kinds[b] == KIND_REST && beside && splitter->mark->may_begin(&cell))
			kinds[b] = KIND_MARKED;
		marked = itself;
	}
}

/* Returns whether both kinds occur. A hog's share of a bin varies: short gaps in preempted cells are preempted. */
static bool find_kinds(struct splitter *splitter)
{
	size_t bins = splitter->grower->bins, marked = 0, rest = 0;

	for (size_t place = 0; place < splitter->grower->job->row_count; place++) {
		const uint32_t *of = &splitter->of[place * bins];
		unsigned char *kinds = &splitter->kinds[place * bins];
		size_t last = SIZE_MAX; /* last marked bin; all since are of its component */

		for (size_t b = 0; b < bins; b++) {
			if (of[b] == NO_COMPONENT) {
				last = SIZE_MAX;
				continue;
			}
			kinds[b] = has_mark(splitter, place, b) ? KIND_MARKED : KIND_REST;
			marked += kinds[b] == KIND_MARKED;
			rest += kinds[b] == KIND_REST;
			if (kinds[b] != KIND_MARKED)
				continue;
			if (last != SIZE_MAX && b - last <= REGION_GAP + 1)
				memset(&kinds[last], KIND_MARKED, b - last);
			last = b;
		}
		if (splitter->mark->may_begin)
			mark_borders(splitter, place);
	}
	return marked && rest;
}

static bool of_one_component(const struct splitter *splitter, size_t a, size_t b)
{
	return region__root(splitter->grower, splitter->of[a]) == region__root(splitter->grower, splitter->of[b]);
}

/* Grows neighbours of one kind and component together. */
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
			if (b && splitter->kinds[at - 1] == kind && of_one_component(splitter, at - 1, at))
				region__join(grower, splitter->parts[at - 1], id);
			if (place && splitter->kinds[at - bins] == kind && of_one_component(splitter, at - bins, at))
				region__join(grower, splitter->parts[at - bins], id);
		}
	}
	return 0;
}

/* Whether a part can be a variance of its own, and the mark sets it apart. */
static bool stands(const struct splitter *splitter, const struct component *part, enum kind kind)
{
	const struct vapro_config *config = splitter->grower->config;

	return part->cells >= config->min_cells && part->end - part->begin > 1 &&
	       part->lost >= config->min_lost_s * 1e9 && (kind == KIND_MARKED || !splitter->mark->has_part(part));
}

/* Whether a cell has nothing of the mark, and its part is too small to stand alone. */
static bool is_noise(const struct splitter *splitter, size_t at)
{
	const struct component *part =
	    &splitter->grower->components[region__root(splitter->grower, splitter->parts[at])];

	return !stands(splitter, part, KIND_REST) && !splitter->mark->has_part(part);
}

/* Noise that touches marked cells at one end only is cut off, but for the bins in which what they show may end. */
static void cut_noise(struct splitter *splitter, size_t place)
{
	size_t bins = splitter->grower->bins;
	unsigned char *kinds = &splitter->kinds[place * bins];
	uint32_t *of = &splitter->of[place * bins];

	for (size_t from = 0, to; from < bins; from = to) {
		bool after, before = from && kinds[from - 1] == KIND_MARKED;

		for (to = from; to < bins && kinds[to] == KIND_REST; to++)
			;
		after = to < bins && kinds[to] == KIND_MARKED;
		for (size_t b = from; before != after && b < to; b++) {
			if ((before ? b - from : to - 1 - b) < BORDER_BINS || !is_noise(splitter, place * bins + b))
				continue;
			kinds[b] = KIND_NONE;
			of[b] = NO_COMPONENT;
		}
		to += to == from;
	}
}

/* Parts that cannot stand alone join the cells around them. */
static void give_up(struct splitter *splitter, enum kind kind)
{
	struct grower *grower = splitter->grower;

	for (size_t at = 0; at < grower->job->row_count * grower->bins; at++) {
		if (splitter->kinds[at] == kind &&
		    !stands(splitter, &grower->components[region__root(grower, splitter->parts[at])], kind))
			splitter->kinds[at] = kind == KIND_MARKED ? KIND_REST : KIND_MARKED;
	}
}

/* Whether the marked parts of a component, whose number is given, are separate stretches: else two causes alternate. */
static bool are_separate(const struct component *whole, uint32_t marked)
{
	return marked && (marked <= MARKED_PARTS || whole->cells >= PART_PERIOD * marked);
}

/* Moves cells of components that have parts of both kinds to these parts. */
static int take_over(struct splitter *splitter)
{
	struct grower *grower = splitter->grower;
	size_t cells = grower->job->row_count * grower->bins;
	/* by component: its parts with the mark, and whether it has others; by part: whether it was counted */
	uint32_t *marked = calloc(grower->count, sizeof(*marked));
	bool *rest = calloc(grower->count, sizeof(*rest)), *counted = calloc(grower->count, sizeof(*counted));
	int error = -ENOMEM;

	if (!marked || !rest || !counted)
		goto cleanup;
	for (size_t at = 0; at < cells; at++) {
		uint32_t part, whole;

		if (splitter->kinds[at] == KIND_NONE)
			continue;
		part = region__root(grower, splitter->parts[at]);
		whole = region__root(grower, splitter->of[at]);
		if (splitter->kinds[at] == KIND_REST)
			rest[whole] = true;
		else if (!counted[part]) /* it may also be one of the other kind that could not stand alone */
			marked[whole] += splitter->mark->has_part(&grower->components[part]);
		counted[part] = true;
	}
	for (size_t at = 0; at < cells; at++) {
		uint32_t whole = splitter->kinds[at] != KIND_NONE ? region__root(grower, splitter->of[at]) : 0;

		if (splitter->kinds[at] != KIND_NONE && rest[whole] &&
		    are_separate(&grower->components[whole], marked[whole]))
			splitter->of[at] = splitter->parts[at];
	}
	error = 0;
cleanup:
	free(marked);
	free(rest);
	free(counted);
	return error;
}

int region__split(struct grower *grower, enum layer layer, enum region_mark mark)
{
	size_t cells = grower->job->row_count * grower->bins;
	struct splitter splitter = {.grower = grower,
				    .layer = layer,
				    .mark = &marks[mark],
				    .of = grower->of[layer],
				    .kinds = calloc(cells, 1),
				    .parts = malloc(cells * sizeof(*splitter.parts))};
	int error = -ENOMEM;

	if (!splitter.kinds || !splitter.parts)
		goto cleanup;
	error = 0;
	if (!find_kinds(&splitter))
		goto cleanup;
	error = grow_kind(&splitter, KIND_MARKED);
	if (error)
		goto cleanup;
	give_up(&splitter, KIND_MARKED);
	error = grow_kind(&splitter, KIND_REST);
	if (error)
		goto cleanup;
	for (size_t place = 0; place < grower->job->row_count; place++)
		cut_noise(&splitter, place);
	give_up(&splitter, KIND_REST);
	error = grow_kind(&splitter, KIND_MARKED);
	if (!error)
		error = take_over(&splitter);
cleanup:
	free(splitter.kinds);
	free(splitter.parts);
	return error;
}

/* Rows that only touch a draft are another one. */

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
	return part->lost < REGION_WEAK * mean ||
	       (whole->several && part->lost < SHARE_MOST * mean &&
		(double)(part->end - part->begin) < SHARE_MOST * (double)(whole->end - whole->begin));
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
