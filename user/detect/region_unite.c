// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "detect/region_private.h"
#include "model/judgement.h"

#define SAME_TIME 0.7	  /* overlap of components of one thing, as share of the time of both */
#define SAME_RATIO 0.15	  /* part of the greater share of time lost by which components of one thing differ */
#define SAME_PLACE 0.67	  /* share of the rows of a host or socket in one draft */
enum { SOCKETS = 64 };	  /* sockets of a host */
enum { NEIGHBOURS = 16 }; /* things on a host at one time that a component is compared with */

uint32_t region__draft(struct grower *grower, uint32_t component)
{
	struct component *components = grower->components;

	while (components[component].draft != component) {
		components[component].draft = components[components[component].draft].draft;
		component = components[component].draft;
	}
	return component;
}

/* The main cause of a loss: other tasks of this machine; the hypervisor, with these tasks; sleep. */
enum suspender { SUSPENDED_BY_NONE, SUSPENDED_BY_OTHERS, SUSPENDED_BY_HYPERVISOR, SUSPENDED_BY_SLEEP };

static enum suspender suspended_by(const struct component *component)
{
	if (component->layer == LAYER_WAITING || component->layer == LAYER_PATH || component->layer == LAYER_TRANSFER ||
	    component->lost <= 0)
		return SUSPENDED_BY_NONE;
	if (component->preempted >= SHARE_MOST * component->lost)
		return SUSPENDED_BY_OTHERS;
	if (component->cpu >= SHARE_MOST * component->lost)
		return SUSPENDED_BY_HYPERVISOR;
	if (component->layer != LAYER_SUSPENDED && component->blocked >= SHARE_MOST * component->lost)
		return SUSPENDED_BY_SLEEP;
	return SUSPENDED_BY_NONE;
}

static void unite(struct grower *grower, uint32_t a, uint32_t b)
{
	a = region__draft(grower, a);
	b = region__draft(grower, b);
	if (a < b)
		grower->components[b].draft = a;
	else
		grower->components[a].draft = b;
}

static bool is_near(uint64_t a, uint64_t b)
{
	return a <= b + REGION_GAP && b <= a + REGION_GAP;
}

/*
 * Whether IO of one row sleeps, or waits for the CPU after that, for as long as others have the CPU: what it waits for,
 * the file system's threads and the interrupts of its device, has the same CPU.
 */
static bool sleeps_meanwhile(const struct component *io, const struct component *preempted)
{
	return io->layer == LAYER_IO && io->cells <= io->end - io->begin &&
	       io->blocked + io->preempted >= SHARE_MOST * io->lost && suspended_by(preempted) == SUSPENDED_BY_OTHERS &&
	       is_near(io->begin, preempted->begin) && is_near(io->end, preempted->end);
}

static void unite_suspended(struct grower *grower, uint32_t a, uint32_t b)
{
	const struct component *first, *second;
	enum suspender by;

	a = region__root(grower, a);
	b = region__root(grower, b);
	first = &grower->components[a];
	second = &grower->components[b];
	by = suspended_by(first);
	if ((by && by == suspended_by(second)) || sleeps_meanwhile(first, second) || sleeps_meanwhile(second, first))
		unite(grower, a, b);
}

/* The component that a cell belongs to in a layer. */
static uint32_t component_at(const struct grower *grower, int layer, size_t place, size_t b)
{
	return grower->of[layer] ? grower->of[layer][place * grower->bins + b] : NO_COMPONENT;
}

static void unite_classes(struct grower *grower)
{
	for (size_t place = 0; place < grower->job->row_count; place++) {
		/* The last bin in a component, by layer. */
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
						unite_suspended(grower, here,
								component_at(grower, other, place, last[other]));
				}
			}
		}
	}
}

/* A component, or several that are one thing. */
struct summary {
	uint32_t root; /* root of the first */
	uint32_t host;
	int32_t socket; /* -1: unknown or several */
	enum layer layer;
	size_t rows, place;	      /* place: of the first row */
	double lost, dur, begin, end; /* begin and end: of the first */
	size_t thing;		      /* index of the thing on its host and layer */
};

static int32_t socket_of(const struct grower *grower, size_t place)
{
	const struct stg_row *rows = grower->job->rows;

	return rows[rows[grower->job->neighbours[place]].leader].socket;
}

static uint32_t host_of(const struct grower *grower, size_t place)
{
	return grower->job->rows[grower->job->neighbours[place]].host_number;
}

/* Returns false for a component on several hosts. */
static bool sum_up(const struct grower *grower, enum layer layer, const uint32_t *cells, size_t count,
		   struct summary *out)
{
	size_t bins = grower->bins, first = cells[0] / bins, last = SIZE_MAX;

	*out = (struct summary){.root = grower->of[layer][cells[0]],
				.host = host_of(grower, first),
				.socket = socket_of(grower, first),
				.place = first,
				.layer = layer,
				.begin = INFINITY};
	for (size_t i = 0; i < count; i++) {
		size_t place = cells[i] / bins, b = cells[i] % bins;
		struct cell cell = region__cell(grower, place, b, layer);

		if (place != last) {
			if (host_of(grower, place) != out->host)
				return false;
			if (socket_of(grower, place) != out->socket)
				out->socket = -1;
			out->rows++;
		}
		last = place;
		out->begin = fmin(out->begin, (double)b);
		out->end = fmax(out->end, (double)b + 1);
		out->lost += cell__lost(&cell);
		out->dur += cell__dur(&cell);
	}
	return true;
}

static int compare_summaries(const void *a, const void *b)
{
	const struct summary *left = a, *right = b;

	if (left->layer != right->layer)
		return left->layer < right->layer ? -1 : 1;
	if (left->host != right->host)
		return left->host < right->host ? -1 : 1;
	if (left->begin != right->begin)
		return left->begin < right->begin ? -1 : 1;
	return (left->root > right->root) - (left->root < right->root);
}

static bool agree_in_time(const struct summary *a, const struct summary *b)
{
	double begin = fabs(a->begin - b->begin), end = fabs(a->end - b->end);
	double both = fmin(a->end, b->end) - fmax(a->begin, b->begin);
	double any = fmax(a->end, b->end) - fmin(a->begin, b->begin);

	return (begin <= REGION_GAP && end <= REGION_GAP && both > 0) || both >= SAME_TIME * any;
}

/*
 * How much of its time a rank loses to slow transfers depends on how long it usually waits in these calls, which is
 * part of their reference: transfers agree in time alone.
 */
static bool agree(const struct summary *a, const struct summary *b)
{
	double left = a->lost / a->dur, right = b->lost / b->dur;

	return agree_in_time(a, b) &&
	       (a->layer == LAYER_TRANSFER || fabs(left - right) <= SAME_RATIO * fmax(left, right));
}

/* Rows of a host that are alive on the map. */
struct row_counts {
	size_t all, socket[SOCKETS];
};

static struct row_counts count_rows(const struct grower *grower, size_t first)
{
	uint64_t from_ns = grower->map->begin * VAPRO_BIN_NS;
	struct row_counts counts = {0};

	for (size_t place = first; place < grower->job->row_count && host_of(grower, place) == host_of(grower, first);
	     place++) {
		const struct stg_row *row = &grower->job->rows[grower->job->neighbours[place]];
		int32_t socket = socket_of(grower, place);

		if (row->to_ns && row->to_ns <= from_ns)
			continue;
		counts.all++;
		if (socket >= 0 && socket < SOCKETS)
			counts.socket[socket]++;
	}
	return counts;
}

/* Things with few calm rows beside them on their host or socket are one draft each. */
static void unite_things(struct grower *grower, const struct summary *members, size_t count,
			 const struct summary *things, const struct row_counts *counts)
{
	for (size_t i = 0; i < count; i++) {
		const struct summary *thing = &things[members[i].thing];
		bool known = thing->socket >= 0 && thing->socket < SOCKETS;

		if (thing->root != members[i].root &&
		    (double)thing->rows >= SAME_PLACE * (double)(known ? counts->socket[thing->socket] : counts->all))
			unite(grower, thing->root, members[i].root);
	}
}

/* Compares components of one layer on one host, by time, with those that began last. first: the host's place. */
static void unite_host(struct grower *grower, struct summary *members, size_t count, struct summary *things,
		       size_t first)
{
	size_t thing_count = 0;
	struct row_counts counts;

	for (size_t i = 0; i < count; i++) {
		size_t at = thing_count;

		while (at && thing_count - at < NEIGHBOURS && !agree(&things[at - 1], &members[i]))
			at--;
		if (!at || !agree(&things[at - 1], &members[i])) {
			members[i].thing = thing_count;
			things[thing_count++] = members[i];
			continue;
		}
		members[i].thing = at - 1;
		things[at - 1].rows += members[i].rows;
		things[at - 1].lost += members[i].lost;
		things[at - 1].dur += members[i].dur;
		if (things[at - 1].socket != members[i].socket)
			things[at - 1].socket = -1;
	}
	if (thing_count == count)
		return;
	counts = count_rows(grower, first);
	unite_things(grower, members, count, things, &counts);
}

static int find_summaries(struct grower *grower, enum layer layer, struct summary **summaries, size_t *capacity,
			  size_t *count)
{
	struct region_list list;
	int error = region__list(grower, layer, &list);

	for (uint32_t id = 0; !error && id < list.count; id++) {
		size_t cells = list.first[id + 1] - list.first[id];

		if (!cells)
			continue;
		error = grow(summaries, capacity, *count + 1, sizeof(**summaries));
		if (!error && sum_up(grower, layer, &list.cells[list.first[id]], cells, &(*summaries)[*count]))
			*count += (*summaries)[*count].dur > 0 && (*summaries)[*count].lost > 0;
	}
	region__unlist(&list);
	return error;
}

/*
 * Slow paths of most rows of a host, one beside or shortly after the other, are one: its adapter, cable or switch port.
 * members: of one host, by begin. Packets are lost at random, so that rows neither begin nor end together.
 */
static void unite_paths(struct grower *grower, const struct summary *members, size_t count, size_t first)
{
	size_t rows = count_rows(grower, first).all;

	for (size_t i = 0, next; i < count; i = next) {
		double end = members[i].end;
		size_t seen = 0;

		for (next = i; next < count && members[next].begin <= end + REGION_SPARSE; next++)
			end = fmax(end, members[next].end);
		for (size_t place = first; place < first + rows && place < grower->job->row_count; place++) {
			size_t k = i;

			while (k < next && (place < members[k].place || place >= members[k].place + members[k].rows))
				k++;
			seen += k < next;
		}
		for (size_t k = i + 1; seen > 1 && (double)seen >= SAME_PLACE * (double)rows && k < next; k++)
			unite(grower, members[i].root, members[k].root);
	}
}

static int unite_places(struct grower *grower, unsigned layers)
{
	struct summary *summaries = NULL, *things = NULL;
	size_t *hosts = NULL; /* first place of each host */
	size_t count = 0, capacity = 0;
	int error = -ENOMEM;

	for (int layer = 0; layer < LAYERS; layer++) {
		if (layers & 1U << layer && layer != LAYER_WAITING &&
		    find_summaries(grower, (enum layer)layer, &summaries, &capacity, &count))
			goto cleanup;
	}
	things = malloc((count + 1) * sizeof(*things));
	hosts = malloc((grower->job->host_count + 1) * sizeof(*hosts));
	if (!things || !hosts)
		goto cleanup;
	for (size_t place = grower->job->row_count; place-- > 0;)
		hosts[host_of(grower, place)] = place;
	if (count)
		qsort(summaries, count, sizeof(*summaries), compare_summaries);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && summaries[next].layer == summaries[i].layer &&
				   summaries[next].host == summaries[i].host;)
			next++;
		if (summaries[i].layer == LAYER_PATH)
			unite_paths(grower, &summaries[i], next - i, hosts[summaries[i].host]);
		unite_host(grower, &summaries[i], next - i, things, hosts[summaries[i].host]);
	}
	error = 0;
cleanup:
	free(hosts);
	free(things);
	free(summaries);
	return error;
}

/* A summary of a component on any hosts. */
static struct summary summary_of(const struct grower *grower, enum layer layer, const uint32_t *cells, size_t count)
{
	struct summary out = {.root = grower->of[layer][cells[0]], .layer = layer, .begin = INFINITY};

	for (size_t i = 0; i < count; i++) {
		struct cell cell = region__cell(grower, cells[i] / grower->bins, cells[i] % grower->bins, layer);
		double b = (double)(cells[i] % grower->bins);

		out.begin = fmin(out.begin, b);
		out.end = fmax(out.end, b + 1);
		out.lost += cell__lost(&cell);
		out.dur += cell__dur(&cell);
	}
	return out;
}

/*
 * Unites components of a layer, each worth a draft, that agree wherever they are: what ranks write to and what they
 * send through is shared by ranks of any host.
 */
static int unite_alike(struct grower *grower, enum layer layer)
{
	struct summary *summaries = NULL;
	size_t count = 0, capacity = 0;
	struct region_list list;
	/* by draft: it has other layers, too, such as a hog's; what is alike beside that is no part of it */
	bool *mixed = calloc(grower->count + 1, sizeof(*mixed));
	int error = region__list(grower, layer, &list);

	error = mixed ? error : -ENOMEM;
	for (uint32_t i = 0; !error && i < grower->count; i++) {
		if (grower->components[i].layer != layer)
			mixed[region__draft(grower, region__root(grower, i))] = true;
	}
	for (uint32_t id = 0; !error && id < list.count; id++) {
		size_t cells = list.first[id + 1] - list.first[id];
		struct summary summary;

		if (cells < grower->config->min_cells || mixed[region__draft(grower, id)])
			continue;
		summary = summary_of(grower, layer, &list.cells[list.first[id]], cells);
		if (summary.dur <= 0 || summary.lost < grower->config->min_lost_s * 1e9)
			continue;
		error = grow(&summaries, &capacity, count + 1, sizeof(*summaries));
		for (size_t i = count; !error && i-- > 0 && count - i <= NEIGHBOURS;) {
			if (agree(&summaries[i], &summary))
				unite(grower, summaries[i].root, summary.root);
		}
		if (!error)
			summaries[count++] = summary;
	}
	region__unlist(&list);
	free(mixed);
	free(summaries);
	return error;
}

int region__unite(struct grower *grower, unsigned layers)
{
	static const enum layer shared[] = {LAYER_TRANSFER, LAYER_IO};
	int error;

	for (uint32_t i = 0; i < grower->count; i++)
		grower->components[i].draft = i;
	if (layers & (layers - 1))
		unite_classes(grower);
	error = unite_places(grower, layers);
	for (size_t i = 0; !error && i < sizeof(shared) / sizeof(*shared); i++)
		error = layers & 1U << shared[i] ? unite_alike(grower, shared[i]) : 0;
	return error;
}

/* Makes drafts of cells that grew together. */

static double attributed_at(const struct grower *grower, size_t place, size_t b, enum layer layer)
{
	struct cell cell = region__cell(grower, place, b, layer);

	if (layer == LAYER_TRANSFER)
		return 0;
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
				draft->waiting |= layer == LAYER_WAITING || layer == LAYER_TRANSFER;
				draft->transfers |= layer == LAYER_TRANSFER;
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

	return !draft->waiting && draft->attributed >= SHARE_MOST * lost &&
	       lost >= fmax(config->min_share * stride, least);
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
