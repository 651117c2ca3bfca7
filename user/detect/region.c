/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/region_private.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <math.h>
#include <string.h>

const enum vapro_class region__class[LAYERS] = {
    [LAYER_COMPUTATION] = VAPRO_COMPUTATION, [LAYER_SUSPENDED] = VAPRO_COMMUNICATION,
    [LAYER_WAITING] = VAPRO_COMMUNICATION,   [LAYER_PATH] = VAPRO_COMMUNICATION,
    [LAYER_TRANSFER] = VAPRO_COMMUNICATION,  [LAYER_IO] = VAPRO_IO,
};

#define CERTAIN 0.8	 /* share of a cell's loss, attributed by the kernel, from which the cell is certain */
#define CERTAIN_PART 0.7 /* part of the usual loss from which a certain cell is slow */
#define GOES_ON_LIKE 0.4 /* part of the mean loss of a component's cells with which it goes on */
#define STRONG_CELL 0.25 /* lost share of a bin with which a single cell borders on a gap */
#define LEAST_PART 0.02	 /* share of a bin that a loss takes at least, which is known by itself */
#define OTHER_CALLS (1U << LAYER_SUSPENDED | 1U << LAYER_WAITING | 1U << LAYER_PATH)

/* The transfers in the calls of a cell: without the time in which ranks waited for other ones. */
static struct cell transfers_in(const struct heatmap *map, uint32_t row, uint64_t bin, const struct cell *calls)
{
	double transfer = heatmap__wait(map, HEATMAP_TRANSFER, row, bin);
	double waited = heatmap__late(map, row, bin) + heatmap__wait(map, HEATMAP_PATH, row, bin);
	double dur = fmax(transfer, cell__dur(calls) - waited);

	return (struct cell){.closed = {.dur = (float)dur, .ref = (float)(dur - transfer)}};
}

/* The calls of a cell without their transfers. */
static struct cell without_transfers(const struct heatmap *map, uint32_t row, uint64_t bin, struct cell calls)
{
	calls.closed.dur -= (float)heatmap__wait(map, HEATMAP_TRANSFER, row, bin);
	return calls;
}

struct cell region__cell(const struct grower *grower, size_t place, size_t b, enum layer layer)
{
	uint64_t bin = grower->map->begin + b;
	uint32_t row = grower->job->neighbours[place];
	struct cell cell = heatmap__cell(grower->map, row, bin, region__class[layer]);

	unsigned slow = grower->slow[place * grower->bins + b];

	/* the rest of a cell that is not slow by itself is what ranks wait for each other's transfers */
	if (layer == LAYER_TRANSFER)
		return slow & OTHER_CALLS || !(slow & 1U << LAYER_TRANSFER) ? transfers_in(grower->map, row, bin, &cell)
									    : cell;
	if (region__class[layer] == VAPRO_COMMUNICATION && slow & 1U << LAYER_TRANSFER)
		return without_transfers(grower->map, row, bin, cell);
	return cell;
}

double region__lost(const struct grower *grower, size_t place, size_t b, enum layer layer)
{
	struct cell cell = region__cell(grower, place, b, layer);

	return cell__lost(&cell);
}

uint64_t region__gap(const struct heatmap *map)
{
	uint64_t bins = (uint64_t)(2 * map->fragment_ns / (double)VAPRO_BIN_NS);

	bins = bins ? REGION_GAP + bins : REGION_GAP;
	return bins < REGION_GAP_MOST ? bins : REGION_GAP_MOST;
}

uint32_t region__root(struct grower *grower, uint32_t component)
{
	struct component *components = grower->components;

	while (components[component].parent != component) {
		components[component].parent = components[components[component].parent].parent;
		component = components[component].parent;
	}
	return component;
}

void region__join(struct grower *grower, uint32_t a, uint32_t b)
{
	struct component *into, *from;

	a = region__root(grower, a);
	b = region__root(grower, b);
	if (a == b)
		return;
	into = &grower->components[a < b ? a : b];
	from = &grower->components[a < b ? b : a];
	from->parent = a < b ? a : b;
	into->cells += from->cells;
	into->lost += from->lost;
	into->cpu += from->cpu;
	into->preempted += from->preempted;
	into->blocked += from->blocked;
	into->begin = from->begin < into->begin ? from->begin : into->begin;
	into->end = from->end > into->end ? from->end : into->end;
}

/* The layer that a slow cell of a class belongs to. */
static enum layer layer_of(const struct heatmap *map, uint32_t row, uint64_t bin, const struct cell *cell,
			   enum vapro_class class)
{
	if (class != VAPRO_COMMUNICATION)
		return class == VAPRO_IO ? LAYER_IO : LAYER_COMPUTATION;
	if (cell__attributed(cell, class) >= SHARE_MOST * cell__lost(cell))
		return LAYER_SUSPENDED;
	return heatmap__wait(map, HEATMAP_PATH, row, bin) >= SHARE_MOST * cell__lost(cell) ? LAYER_PATH : LAYER_WAITING;
}

/* Whether others had the CPU in a cell, as the kernel attributes: that is no jitter, however short. */
static bool is_certain(const struct cell *cell)
{
	return (double)cell->closed.cpu + cell->open.cpu >= CERTAIN * cell__lost(cell);
}

/* A cell is slow below the threshold, or a little above it where the loss is certain. */
static bool is_slow(const struct vapro_config *config, const struct cell *cell)
{
	double performance = cell__performance(cell, config);

	if (!(performance < 1 - CERTAIN_PART * (1 - config->threshold)))
		return false;
	return performance < config->threshold || is_certain(cell);
}

/*
 * Whether part of a cell's loss makes it slow though its calls fill less of the bin than others need (valid_bin): each
 * operation was looked at by itself, and IO takes as little of a bin as the program likes.
 */
static bool is_slow_part(const struct vapro_config *config, const struct cell *cell, double lost)
{
	return lost >= LEAST_PART * (double)VAPRO_BIN_NS && lost > (1 - config->threshold) * cell__dur(cell);
}

/* Whether some row is slow in its computation or IO in a bin. */
static bool any_slow_work(const struct grower *grower, uint64_t bin)
{
	static const enum vapro_class classes[] = {VAPRO_COMPUTATION, VAPRO_IO};
	void *const *parts = heatmap__bin(grower->map, bin)->parts;

	for (int i = 0; i < 2; i++) {
		if (!parts[HEATMAP_CLOSED + classes[i]] && !parts[HEATMAP_OPEN + classes[i]])
			continue;
		for (uint32_t row = 0; row < grower->job->row_count; row++) {
			struct cell cell = heatmap__cell(grower->map, row, bin, classes[i]);

			if (is_slow(grower->config, &cell))
				return true;
		}
	}
	return false;
}

/* Whether ranks may wait in a bin for one that was slow in its work, there or as short before as gaps are bridged. */
static bool may_wait(const struct grower *grower, uint64_t bin)
{
	uint64_t from = bin > grower->map->begin + grower->gap ? bin - grower->gap : grower->map->begin;
	unsigned char *known = &grower->waits[bin - grower->map->begin];

	for (uint64_t at = from; !*known && at <= bin; at++)
		*known = any_slow_work(grower, at) ? 2 : 0;
	*known = *known ? *known : 1;
	return *known == 2;
}

/*
 * The layers that a cell belongs to, as bits. Beside slow transfers the rest of the calls is another thing where it is
 * more than they are, or where ranks wait for a slow one (`waits`): else it is what they wait for each other's
 * transfers.
 */
static unsigned layers_of(const struct grower *grower, uint32_t row, uint64_t bin, enum vapro_class class, bool waits)
{
	const struct heatmap *map = grower->map;
	struct cell cell = heatmap__cell(map, row, bin, class);
	unsigned layers = 0;

	if (class == VAPRO_COMMUNICATION && heatmap__wait(map, HEATMAP_TRANSFER, row, bin) > 0) {
		struct cell transfers = transfers_in(map, row, bin, &cell);

		if (is_slow_part(grower->config, &transfers, cell__lost(&transfers))) {
			layers = 1U << LAYER_TRANSFER;
			cell = without_transfers(map, row, bin, cell);
			if (!waits && cell__lost(&cell) <= cell__lost(&transfers))
				return layers;
		}
	}
	if (is_slow(grower->config, &cell) ||
	    (class == VAPRO_IO && is_slow_part(grower->config, &cell, cell__lost(&cell))))
		return layers | 1U << layer_of(map, row, bin, &cell, class);
	return layers;
}

/*
 * Gives calls beside slow transfers, which show none themselves, to these: when transfers became slow, or fast again,
 * not all ranks were in such a call. Not where ranks may wait for a slow one.
 */
static void take_borders(const struct grower *grower)
{
	const unsigned waiting = 1U << LAYER_WAITING, transfer = 1U << LAYER_TRANSFER;

	for (size_t place = 0; place < grower->job->row_count; place++) {
		unsigned char *slow = &grower->slow[place * grower->bins];

		for (int forward = 0; forward < 2; forward++) {
			size_t near = 0; /* bins that are left beside the last transfers */

			for (size_t i = 0; i < grower->bins; i++) {
				size_t b = forward ? i : grower->bins - 1 - i;

				if (slow[b] & transfer)
					near = grower->gap + 1;
				else if (near && near-- && slow[b] & waiting &&
					 !may_wait(grower, grower->map->begin + b))
					slow[b] ^= waiting | transfer;
			}
		}
	}
}

/* Marks slow cells in memory order, each read once, since most are not slow. Returns the layers with any. */
static unsigned find_slow(struct grower *grower)
{
	const struct heatmap *map = grower->map;
	unsigned all = 0;

	for (size_t b = 0; b < grower->bins; b++) {
		void *const *parts = heatmap__bin(map, map->begin + b)->parts;
		bool waits = parts[HEATMAP_TRANSFER] && may_wait(grower, map->begin + b);

		for (int class = 0; class < VAPRO_CLASSES; class ++) {
			if (!parts[HEATMAP_CLOSED + class] && !parts[HEATMAP_OPEN + class])
				continue;
			for (uint32_t row = 0; row < grower->job->row_count; row++) {
				unsigned layers =
				    layers_of(grower, row, map->begin + b, (enum vapro_class) class, waits);

				if (!layers)
					continue;
				grower->slow[grower->place[row] * grower->bins + b] |= (unsigned char)layers;
				all |= layers;
			}
		}
	}
	if (all & 1U << LAYER_TRANSFER)
		take_borders(grower);
	return all;
}

int region__component(struct grower *grower, size_t place, size_t b, enum layer layer)
{
	struct cell cell = region__cell(grower, place, b, layer);

	if (grow(&grower->components, &grower->capacity, grower->count + 1, sizeof(*grower->components)))
		return -ENOMEM;
	grower->components[grower->count] = (struct component){
	    .parent = (uint32_t)grower->count,
	    .layer = layer,
	    .cells = 1,
	    .lost = cell__lost(&cell),
	    .cpu = (double)cell.closed.cpu + cell.open.cpu,
	    .preempted = cell__preempted(&cell),
	    .blocked = (double)cell.closed.blocked + cell.open.blocked,
	    .begin = b,
	    .end = b + 1,
	};
	grower->count++;
	return 0;
}

/* Grows cells of a layer that have no component. They join each other, and none that grew before. Returns 0 or -ENOMEM.
 */
static int grow_layer(struct grower *grower, enum layer layer)
{
	uint32_t *of = grower->of[layer], first = (uint32_t)grower->count;

	for (size_t place = 0; place < grower->job->row_count; place++) {
		for (size_t b = 0; b < grower->bins; b++) {
			size_t at = place * grower->bins + b;
			uint32_t id = (uint32_t)grower->count;

			if (of[at] != NO_COMPONENT || !(grower->slow[at] & 1U << layer))
				continue;
			if (region__component(grower, place, b, layer))
				return -ENOMEM;
			of[at] = id;
			if (b && of[at - 1] != NO_COMPONENT && of[at - 1] >= first)
				region__join(grower, of[at - 1], id);
			if (place && of[at - grower->bins] != NO_COMPONENT && of[at - grower->bins] >= first)
				region__join(grower, of[at - grower->bins], id);
		}
	}
	return 0;
}

/* Whether a cell may be one side of a bridge. */
static bool qualifies(struct grower *grower, size_t place, size_t b, enum layer layer)
{
	uint32_t id = grower->of[layer][place * grower->bins + b];
	const struct component *component = &grower->components[region__root(grower, id)];

	/*
	 * All ranks' calls separated the path from waiting: each of its cells counts. A program writes as seldom as it
	 * likes: parts of slow IO that are small by themselves are worth a region together.
	 */
	if (layer == LAYER_PATH || layer == LAYER_IO)
		return true;

	return (component->cells >= grower->config->min_cells && component->lost >= grower->config->min_lost_s * 1e9) ||
	       region__lost(grower, place, b, layer) >= STRONG_CELL * (double)VAPRO_BIN_NS;
}

/*
 * Whether a cell continues a component: others had its CPU for half of what makes a cell slow, and for not much less
 * than the component's cells lose. A light disturbance before a hog is not the hog's.
 */
static bool goes_on(struct grower *grower, size_t place, size_t b, enum layer layer, uint32_t id)
{
	const struct component *component = &grower->components[region__root(grower, id)];
	struct cell cell = region__cell(grower, place, b, layer);

	return cell__performance(&cell, grower->config) < 1 - SHARE_MOST * (1 - grower->config->threshold) &&
	       cell__lost(&cell) >= GOES_ON_LIKE * component->lost / (double)component->cells && is_certain(&cell);
}

/*
 * Adds cells beside slow ones of a row that lose less, but as certainly: a loss near the threshold varies around it.
 * `forward` in time, or backward. Returns 0 or -ENOMEM.
 */
static int follow(struct grower *grower, enum layer layer, bool forward)
{
	for (size_t place = 0; place < grower->job->row_count; place++) {
		uint32_t *of = &grower->of[layer][place * grower->bins];

		for (size_t i = 1; i < grower->bins; i++) {
			size_t b = forward ? i : grower->bins - 1 - i, before = forward ? b - 1 : b + 1;
			size_t after = forward ? b + 1 : b - 1; /* beyond either end: no bin */

			if (of[before] == NO_COMPONENT || of[b] != NO_COMPONENT ||
			    !goes_on(grower, place, b, layer, of[before]))
				continue;
			of[b] = (uint32_t)grower->count;
			if (region__component(grower, place, b, layer))
				return -ENOMEM;
			region__join(grower, of[before], of[b]);
			if (after < grower->bins && of[after] != NO_COMPONENT)
				region__join(grower, of[b], of[after]);
		}
	}
	return 0;
}

/*
 * Whether a slow path that is worth a region goes on between two bins: the bins between, each of which may have too few
 * calls to be judged, are on it together, by half of what makes a cell slow.
 */
static bool is_slow_together(struct grower *grower, size_t place, size_t from, size_t to)
{
	uint32_t row = grower->job->neighbours[place];
	uint32_t before = region__root(grower, grower->of[LAYER_PATH][place * grower->bins + from]);
	double path = 0, dur = 0;

	if (grower->components[before].lost < grower->config->min_lost_s * 1e9)
		return false;
	for (size_t b = from + 1; b < to; b++) {
		struct cell cell = region__cell(grower, place, b, LAYER_PATH);

		path += heatmap__wait(grower->map, HEATMAP_PATH, row, grower->map->begin + b);
		dur += cell__dur(&cell);
	}
	return path > SHARE_MOST * (1 - grower->config->threshold) * dur;
}

/*
 * Whether a row was better in only few bins between two of its cells. Bins without such a call are no
 * evidence either way, where they are not too many.
 */
static bool narrow(struct grower *grower, size_t place, size_t from, size_t to, enum layer layer)
{
	size_t better = 0;

	if (to - from <= grower->gap + 1)
		return true;
	/* A computation that is not seen is not known. */
	if (layer == LAYER_COMPUTATION)
		return false;
	if (layer == LAYER_PATH && is_slow_together(grower, place, from, to))
		return true;
	for (size_t b = from + 1; to - from <= REGION_SPARSE + 1 && b < to; b++) {
		struct cell cell = region__cell(grower, place, b, layer);

		better += layer == LAYER_TRANSFER || layer == LAYER_IO
			      ? cell__dur(&cell) > 0 && !(grower->slow[place * grower->bins + b] & 1U << layer)
			      : !isnan(cell__performance(&cell, grower->config));
	}
	/* Other calls are not slow on a slow path: they say nothing about slow calls. */
	return to - from <= REGION_SPARSE + 1 && (better <= grower->gap || layer == LAYER_PATH);
}

/* Whether the row computed in no bin between two, perhaps waiting for another row: no bin shows it faster. */
static bool is_unseen(const struct grower *grower, size_t place, size_t from, size_t to, enum layer layer)
{
	for (size_t b = from + 1; b < to; b++) {
		struct cell cell = region__cell(grower, place, b, layer);

		if (!isnan(cell__performance(&cell, grower->config)))
			return false;
	}
	return true;
}

/* Whether two cells of a row belong together although the bins between them are not slow. */
static bool bridges(struct grower *grower, size_t place, size_t from, size_t to, enum layer layer)
{
	struct cell first = region__cell(grower, place, from, layer), last = region__cell(grower, place, to, layer);

	if (!narrow(grower, place, from, to, layer))
		return false;
	if (qualifies(grower, place, from, layer) && qualifies(grower, place, to, layer))
		return true;
	return layer == LAYER_COMPUTATION && is_certain(&first) && is_certain(&last) &&
	       is_unseen(grower, place, from, to, layer);
}

/* Whether a cell between two others of a slow path has too few calls to be judged, which are on it as well. */
static bool is_on_path(const struct grower *grower, size_t place, size_t b, enum layer layer)
{
	struct cell cell = region__cell(grower, place, b, layer);
	double path = layer == LAYER_PATH ? heatmap__wait(grower->map, HEATMAP_PATH, grower->job->neighbours[place],
							  grower->map->begin + b)
					  : 0;

	return path > 0 && path >= SHARE_MOST * cell__lost(&cell);
}

static void bridge(struct grower *grower, enum layer layer)
{
	for (size_t place = 0; place < grower->job->row_count; place++) {
		uint32_t *of = &grower->of[layer][place * grower->bins];
		size_t last = SIZE_MAX;

		for (size_t b = 0; b < grower->bins; b++) {
			uint32_t here = of[b];

			if (here == NO_COMPONENT)
				continue;
			if (last != SIZE_MAX && b - last > 1 && bridges(grower, place, last, b, layer)) {
				region__join(grower, of[last], here);
				for (size_t gap = last + 1; gap < b; gap++) {
					if (b - last <= grower->gap + 1 || is_on_path(grower, place, gap, layer))
						of[gap] = here;
				}
			}
			last = b;
		}
	}
}

void region__clear(struct region_result *result)
{
	for (size_t i = 0; i < result->count; i++)
		free(result->drafts[i].cells);
	free(result->drafts);
	*result = (struct region_result){0};
}

/* Finds the components of a layer, and cuts off what only touches them. Returns 0 or -ENOMEM. */
static int find_components(struct grower *grower, enum layer layer)
{
	size_t size = grower->job->row_count * grower->bins * sizeof(**grower->of);

	grower->of[layer] = malloc(size);
	if (!grower->of[layer])
		return -ENOMEM;
	memset(grower->of[layer], 0xff, size); /* NO_COMPONENT */
	if (grow_layer(grower, layer))
		return -ENOMEM;
	if (layer == LAYER_COMPUTATION && (follow(grower, layer, true) || follow(grower, layer, false)))
		return -ENOMEM;
	bridge(grower, layer);
	if (region__trim(grower, layer))
		return -ENOMEM;
	/* what ranks waited beside a region may be one of its own */
	return layer == LAYER_WAITING || layer == LAYER_TRANSFER ? grow_layer(grower, layer) : 0;
}

/* Adds the loss of slow cells that no draft has, which only touch a region, to what costs too little. */
static void count_cut(const struct grower *grower, struct region_result *result)
{
	uint64_t from = result->small_from > grower->map->begin ? result->small_from - grower->map->begin : 0;
	uint64_t to = result->small_to > grower->map->begin ? result->small_to - grower->map->begin : 0;

	for (int layer = 0; layer < LAYERS; layer++) {
		const uint32_t *of = grower->of[layer];

		for (size_t place = 0; of && place < grower->job->row_count; place++) {
			for (size_t b = from; b < to && b < grower->bins; b++) {
				size_t at = place * grower->bins + b;

				if (grower->slow[at] & 1U << layer && of[at] == NO_COMPONENT)
					result->small_ns += fmax(0, region__lost(grower, place, b, (enum layer)layer));
			}
		}
	}
}

int region__grow(const struct heatmap *map, const struct stg_job *job, const struct vapro_config *config,
		 enum vapro_workload_source source, struct region_result *result)
{
	struct grower grower = {
	    .map = map, .job = job, .config = config, .bins = map->end - map->begin, .gap = region__gap(map)};
	unsigned layers;
	int error = -ENOMEM;

	if (!grower.bins || !job->row_count)
		return 0;
	grower.slow = calloc(job->row_count, grower.bins);
	grower.waits = calloc(grower.bins, 1);
	grower.place = malloc(job->row_count * sizeof(*grower.place));
	if (!grower.slow || !grower.waits || !grower.place)
		goto cleanup;
	for (size_t place = 0; place < job->row_count; place++)
		grower.place[job->neighbours[place]] = (uint32_t)place;
	layers = find_slow(&grower);
	for (int layer = 0; layer < LAYERS; layer++) {
		if (layers & 1U << layer && find_components(&grower, (enum layer)layer))
			goto cleanup;
	}
	/* equal counts are evidence enough */
	if (source != VAPRO_BY_INSTRUCTIONS && layers & 1U << LAYER_COMPUTATION &&
	    region__split(&grower, LAYER_COMPUTATION, REGION_PREEMPTED))
		goto cleanup;
	if (layers & 1U << LAYER_IO &&
	    (region__split(&grower, LAYER_IO, REGION_STALLED) || region__split(&grower, LAYER_IO, REGION_PREEMPTED)))
		goto cleanup;
	for (int layer = 0; layer < LAYERS; layer++) {
		if (layers & 1U << layer && layer != LAYER_WAITING && region__level(&grower, layer))
			goto cleanup;
	}
	if (region__unite(&grower, layers) || region__part_rows(&grower))
		goto cleanup;
	error = region__collect(&grower, result);
	if (!error)
		count_cut(&grower, result);
	if (!error && result->count)
		region__filter(result, config);
cleanup:
	free(grower.place);
	for (int layer = 0; layer < LAYERS; layer++)
		free(grower.of[layer]);
	free(grower.slow);
	free(grower.waits);
	free(grower.components);
	if (error)
		region__clear(result);
	return error;
}
