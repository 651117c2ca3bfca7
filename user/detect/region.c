/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/region_private.h"

#include "model/grow.h"

#include <math.h>

static const enum vapro_class layer_class[LAYERS] = {
    [LAYER_COMPUTATION] = VAPRO_COMPUTATION,
    [LAYER_SUSPENDED] = VAPRO_COMMUNICATION,
    [LAYER_WAITING] = VAPRO_COMMUNICATION,
    [LAYER_PATH] = VAPRO_COMMUNICATION,
    [LAYER_IO] = VAPRO_IO,
};

#define STRONG_CELL 0.25 /* of a bin lost */
#define WEAK_BORDER 0.2	 /* of the mean column or row */
#define MOSTLY 0.5	 /* of a loss told by the kernel */

struct cell region__cell(const struct grower *grower, size_t place, size_t b, enum layer layer)
{
	return heatmap__cell(grower->map, grower->job->order[place], grower->map->begin + b, layer_class[layer]);
}

static double lost_at(const struct grower *grower, size_t place, size_t b, enum layer layer)
{
	struct cell cell = region__cell(grower, place, b, layer);

	return cell__lost(&cell);
}

static double told_at(const struct grower *grower, size_t place, size_t b, enum layer layer)
{
	struct cell cell = region__cell(grower, place, b, layer);

	/* A program sleeps at will: only in IO it may be attributed. */
	return layer == LAYER_IO ? cell__told(&cell, VAPRO_IO) : (double)cell.closed.cpu + cell.open.cpu;
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
	into->taken += from->taken;
	into->blocked += from->blocked;
	into->begin = from->begin < into->begin ? from->begin : into->begin;
	into->end = from->end > into->end ? from->end : into->end;
}

static uint32_t draft_root(struct grower *grower, uint32_t component)
{
	while (grower->components[component].draft != component)
		component = grower->components[component].draft;
	return component;
}

/* The layer that a slow cell of a class belongs to. */
static enum layer layer_of(const struct heatmap *map, uint32_t row, uint64_t bin, const struct cell *cell,
			   enum vapro_class class)
{
	if (class != VAPRO_COMMUNICATION)
		return class == VAPRO_IO ? LAYER_IO : LAYER_COMPUTATION;
	if (cell__told(cell, class) >= MOSTLY * cell__lost(cell))
		return LAYER_SUSPENDED;
	return heatmap__wait(map, HEATMAP_PATH, row, bin) >= MOSTLY * cell__lost(cell) ? LAYER_PATH : LAYER_WAITING;
}

/* Most cells are not slow: they are looked at once, in the order in which they lie. Returns the layers with any. */
static unsigned find_slow(struct grower *grower)
{
	const struct heatmap *map = grower->map;
	unsigned all = 0;

	for (size_t b = 0; b < grower->bins; b++) {
		for (int class = 0; class < VAPRO_CLASSES; class ++) {
			void *const *parts = heatmap__bin(map, map->begin + b)->parts;

			if (!parts[HEATMAP_CLOSED + class] && !parts[HEATMAP_OPEN + class])
				continue;
			for (uint32_t row = 0; row < grower->job->row_count; row++) {
				struct cell cell = heatmap__cell(map, row, map->begin + b, class);
				unsigned bit;

				if (!(cell__performance(&cell, grower->config) < grower->config->threshold))
					continue;
				bit = 1U << layer_of(map, row, map->begin + b, &cell, class);
				grower->slow[grower->job->place[row] * grower->bins + b] |= (unsigned char)bit;
				all |= bit;
			}
		}
	}
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
	    .taken = cell__taken(&cell),
	    .blocked = (double)cell.closed.blocked + cell.open.blocked,
	    .begin = b,
	    .end = b + 1,
	};
	grower->count++;
	return 0;
}

static int grow_layer(struct grower *grower, enum layer layer)
{
	uint32_t *of = grower->of[layer];

	for (size_t place = 0; place < grower->job->row_count; place++) {
		for (size_t b = 0; b < grower->bins; b++) {
			uint32_t id = (uint32_t)grower->count;

			of[place * grower->bins + b] = NO_COMPONENT;
			if (!(grower->slow[place * grower->bins + b] & 1U << layer))
				continue;
			if (region__component(grower, place, b, layer))
				return -ENOMEM;
			of[place * grower->bins + b] = id;
			if (b && of[place * grower->bins + b - 1] != NO_COMPONENT)
				region__join(grower, of[place * grower->bins + b - 1], id);
			if (place && of[(place - 1) * grower->bins + b] != NO_COMPONENT)
				region__join(grower, of[(place - 1) * grower->bins + b], id);
		}
	}
	return 0;
}

/* Of a layer's cell at a border of what has grown. */
static bool qualifies(struct grower *grower, size_t place, size_t b, enum layer layer)
{
	uint32_t id = grower->of[layer][place * grower->bins + b];
	const struct component *component = &grower->components[region__root(grower, id)];

	return (component->cells >= grower->config->min_cells && component->lost >= grower->config->min_lost_s * 1e9) ||
	       lost_at(grower, place, b, layer) >= STRONG_CELL * (double)VAPRO_BIN_NS;
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
			if (last != SIZE_MAX && b - last > 1 && b - last <= REGION_GAP + 1 &&
			    qualifies(grower, place, last, layer) && qualifies(grower, place, b, layer)) {
				region__join(grower, of[last], here);
				for (size_t gap = last + 1; gap < b; gap++)
					of[gap] = here;
			}
			last = b;
		}
	}
}

/* Columns at either end that lose next to nothing are noise that happens to touch the region. */
static int trim(struct grower *grower, enum layer layer)
{
	double *columns = calloc(grower->bins, sizeof(*columns));
	uint32_t *of = grower->of[layer];

	if (!columns)
		return -ENOMEM;
	for (uint32_t id = 0; id < grower->count; id++) {
		struct component *component = &grower->components[id];
		uint64_t begin = component->begin, end = component->end;
		double mean;

		if (component->layer != layer || component->parent != id || end - begin < 3)
			continue;
		memset(columns, 0, grower->bins * sizeof(*columns));
		for (size_t place = 0; place < grower->job->row_count; place++) {
			for (size_t b = begin; b < end; b++) {
				uint32_t here = of[place * grower->bins + b];

				if (here != NO_COMPONENT && region__root(grower, here) == id)
					columns[b] += lost_at(grower, place, b, layer);
			}
		}
		mean = component->lost / (double)(end - begin);
		while (end - begin > 2 && columns[begin] < WEAK_BORDER * mean)
			begin++;
		while (end - begin > 2 && columns[end - 1] < WEAK_BORDER * mean)
			end--;
		if (begin == component->begin && end == component->end)
			continue;
		for (size_t place = 0; place < grower->job->row_count; place++) {
			for (size_t b = component->begin; b < component->end; b++) {
				uint32_t *here = &of[place * grower->bins + b];

				if ((b < begin || b >= end) && *here != NO_COMPONENT &&
				    region__root(grower, *here) == id)
					*here = NO_COMPONENT;
			}
		}
		component->begin = begin;
		component->end = end;
	}
	free(columns);
	return 0;
}

/* Whether a row as a whole is slow from begin to end, not only in the cells that grew together. */
static bool row_slow(const struct grower *grower, size_t place, const struct component *component)
{
	double lost = 0, dur = 0;

	for (size_t b = component->begin; b < component->end; b++) {
		struct cell cell = region__cell(grower, place, b, component->layer);

		lost += cell__lost(&cell);
		dur += cell__dur(&cell);
	}
	return dur > 0 && 1 - lost / dur < grower->config->threshold;
}

/* Rows that lose next to nothing beside the others only touch the region: noise of their own, or what spills over. */
static int trim_rows(struct grower *grower, enum layer layer)
{
	double *rows = calloc(grower->job->row_count, sizeof(*rows));
	uint32_t *of = grower->of[layer];

	if (!rows)
		return -ENOMEM;
	for (uint32_t id = 0; id < grower->count; id++) {
		struct component *component = &grower->components[id];
		size_t in = 0;

		if (component->layer != layer || component->parent != id || component->cells < 3)
			continue;
		memset(rows, 0, grower->job->row_count * sizeof(*rows));
		for (size_t place = 0; place < grower->job->row_count; place++) {
			for (size_t b = component->begin; b < component->end; b++) {
				uint32_t here = of[place * grower->bins + b];

				if (here != NO_COMPONENT && region__root(grower, here) == id)
					rows[place] += lost_at(grower, place, b, layer);
			}
			in += rows[place] > 0;
		}
		for (size_t place = 0; in > 1 && place < grower->job->row_count; place++) {
			double mean = component->lost / (double)in;

			if (rows[place] >= mean ||
			    (rows[place] >= WEAK_BORDER * mean && row_slow(grower, place, component)))
				continue;
			for (size_t b = component->begin; b < component->end; b++) {
				uint32_t *here = &of[place * grower->bins + b];

				if (*here != NO_COMPONENT && region__root(grower, *here) == id)
					*here = NO_COMPONENT;
			}
		}
	}
	free(rows);
	return 0;
}

/* What explains most of a loss: others on this machine, who had its CPUs; the hypervisor, with them; being asleep. */
enum suspender { SUSPENDED_BY_NONE, SUSPENDED_BY_OTHERS, SUSPENDED_BY_HYPERVISOR, SUSPENDED_BY_SLEEP };

static enum suspender suspended_by(const struct component *component)
{
	if (component->layer == LAYER_WAITING || component->layer == LAYER_PATH || component->lost <= 0)
		return SUSPENDED_BY_NONE;
	if (component->taken >= MOSTLY * component->lost)
		return SUSPENDED_BY_OTHERS;
	if (component->cpu >= MOSTLY * component->lost)
		return SUSPENDED_BY_HYPERVISOR;
	if (component->layer != LAYER_SUSPENDED && component->blocked >= MOSTLY * component->lost)
		return SUSPENDED_BY_SLEEP;
	return SUSPENDED_BY_NONE;
}

static void unite(struct grower *grower, uint32_t a, uint32_t b)
{
	enum suspender by;

	a = region__root(grower, a);
	b = region__root(grower, b);
	by = suspended_by(&grower->components[a]);
	if (!by || by != suspended_by(&grower->components[b]))
		return;
	a = draft_root(grower, a);
	b = draft_root(grower, b);
	if (a < b)
		grower->components[b].draft = a;
	else
		grower->components[a].draft = b;
}

/* The component that a cell belongs to in a layer. */
static uint32_t component_at(const struct grower *grower, int layer, size_t place, size_t b)
{
	return grower->of[layer] ? grower->of[layer][place * grower->bins + b] : NO_COMPONENT;
}

static void unite_classes(struct grower *grower)
{
	for (size_t place = 0; place < grower->job->row_count; place++) {
		/* Per layer the last bins that belonged to something. */
		size_t last[LAYERS];

		for (int layer = 0; layer < LAYERS; layer++)
			last[layer] = SIZE_MAX;
		for (size_t b = 0; b < grower->bins; b++) {
			for (int layer = 0; layer < LAYERS; layer++) {
				if (component_at(grower, layer, place, b) != NO_COMPONENT)
					last[layer] = b;
			}
			for (int layer = 0; layer < LAYERS; layer++) {
				uint32_t here = component_at(grower, layer, place, b);

				for (int other = 0; here != NO_COMPONENT && other < LAYERS; other++) {
					if (other != layer && last[other] != SIZE_MAX &&
					    b - last[other] <= REGION_GAP + 1)
						unite(grower, here, component_at(grower, other, place, last[other]));
				}
			}
		}
	}
}

static int collect(struct grower *grower, struct region_result *result)
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
				enum vapro_class class = layer_class[layer];
				struct draft *draft;

				if (id == NO_COMPONENT)
					continue;
				id = draft_root(grower, region__root(grower, id));
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
				    .row = grower->job->order[place],
				    .class = class,
				    .bin = grower->map->begin + b,
				};
				draft->lost[class] += lost_at(grower, place, b, layer);
				draft->attributed += told_at(grower, place, b, layer);
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

/* Whether the loss, with all the waiting that it may cause, can be worth a variance, and is no work of the program. */
static bool may_weigh(const struct draft *draft, double lost, const struct vapro_config *config)
{
	double stride = config->window_s * 2 / 3 * 1e9;

	return !draft->waiting && draft->attributed >= MOSTLY * lost && lost >= config->min_share * stride;
}

static void filter(struct region_result *result, const struct vapro_config *config)
{
	size_t kept = 0;

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
			result->drafts[kept++] = *draft;
		} else if (may_weigh(draft, lost, config)) {
			result->drafts[kept++] = *draft;
		} else {
			result->small_count++;
			result->small_ns += fmax(0, lost);
			free(draft->cells);
		}
	}
	/* The slots that were moved from must not be freed twice. */
	memset(&result->drafts[kept], 0, (result->count - kept) * sizeof(*result->drafts));
	result->count = kept;
}

void region__clear(struct region_result *result)
{
	for (size_t i = 0; i < result->count; i++)
		free(result->drafts[i].cells);
	free(result->drafts);
	*result = (struct region_result){0};
}

int region__grow(const struct heatmap *map, const struct stg_job *job, const struct vapro_config *config,
		 enum vapro_workload_source source, struct region_result *result)
{
	struct grower grower = {.map = map, .job = job, .config = config, .bins = map->end - map->begin};
	unsigned layers;
	int error = -ENOMEM;

	if (!grower.bins || !job->row_count)
		return 0;
	grower.slow = calloc(job->row_count, grower.bins);
	if (!grower.slow)
		return -ENOMEM;
	layers = find_slow(&grower);
	for (int layer = 0; layer < LAYERS; layer++) {
		if (!(layers & 1U << layer))
			continue;
		grower.of[layer] = malloc(job->row_count * grower.bins * sizeof(**grower.of));
		if (!grower.of[layer] || grow_layer(&grower, layer))
			goto cleanup;
		bridge(&grower, layer);
		if (trim(&grower, layer) || trim_rows(&grower, layer))
			goto cleanup;
	}
	/* equal counts are evidence enough */
	if (source != VAPRO_BY_INSTRUCTIONS && layers & 1U << LAYER_COMPUTATION &&
	    region__split(&grower, LAYER_COMPUTATION))
		goto cleanup;
	for (uint32_t i = 0; i < grower.count; i++)
		grower.components[i].draft = i;
	if (layers & (layers - 1))
		unite_classes(&grower);
	error = collect(&grower, result);
	if (!error && result->count)
		filter(result, config);
cleanup:
	for (int layer = 0; layer < LAYERS; layer++)
		free(grower.of[layer]);
	free(grower.slow);
	free(grower.components);
	if (error)
		region__clear(result);
	return error;
}
