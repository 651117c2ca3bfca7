/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Noise components as they are emitted: those that cost a thread enough, and changed. */
#include "analysis/noise_hits.h"
#include "analysis/window_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Fills the hits of a component by rank. Returns their number. */
static size_t find_hits(const struct builder *builder, uint32_t component, struct noise_hit *hits)
{
	const struct noise *noise = &builder->job->noise;
	size_t count = 0;

	for (size_t i = 0; i < noise->part_count; i++) {
		const struct noise_part *part = &noise->parts[i];

		if (part->component != component)
			continue;
		hits[count] = noise_hits__of(builder, stg__thread(builder->context->stg, part->thread));
		hits[count].slices = part->slices;
		hits[count++].ns = part->ns;
	}
	return noise_hits__merge(hits, count);
}

/* Fills for each component the greatest share that it has of a thread's time. */
static void find_shares(const struct builder *builder, double *shares)
{
	const struct noise *noise = &builder->job->noise;

	memset(shares, 0, noise->count * sizeof(*shares));
	for (size_t i = 0; i < noise->part_count; i++) {
		const struct noise_part *part = &noise->parts[i];
		double observed = noise_hits__observed_ns(builder, stg__thread(builder->context->stg, part->thread));
		double share = observed > 0 ? (double)part->ns / observed : 0;

		shares[part->component] = share > shares[part->component] ? share : shares[part->component];
	}
}

static bool is_due(const struct noise_component *component, bool over)
{
	if (over && !component->final)
		return true;
	return !component->id ||
	       noise_hits__changed(component->slices, component->ns, component->emitted_slices, component->emitted_ns);
}

struct candidate {
	struct noise_component *component;
	double share;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->share != right->share)
		return left->share > right->share ? -1 : 1;
	if (strcmp(left->component->name, right->component->name))
		return strcmp(left->component->name, right->component->name);
	return (left->component->relation > right->component->relation) -
	       (left->component->relation < right->component->relation);
}

/* Lists the components that cost enough, and those emitted before, the greatest share first. Returns their number. */
static size_t find_candidates(const struct builder *builder, struct candidate *candidates, size_t most)
{
	const struct vapro_config *config = &builder->context->config;
	struct noise *noise = &builder->job->noise;
	double shares[NOISE_NAMES];
	size_t count = 0;

	find_shares(builder, shares);
	for (size_t i = 0; i < noise->count; i++) {
		struct noise_component *component = &noise->components[i];

		if (component->id ||
		    (shares[i] >= config->noise_share && (double)component->ns >= config->min_lost_s * 1e9))
			candidates[count++] = (struct candidate){component, shares[i]};
	}
	if (count)
		qsort(candidates, count, sizeof(*candidates), compare_candidates);
	return count < most ? count : most;
}

static int build(const struct builder *builder, struct noise_component *component, struct noise_hit *hits, bool over,
		 struct result_noise *out)
{
	struct noise *noise = &builder->job->noise;
	size_t count = find_hits(builder, (uint32_t)(component - noise->components), hits);

	if (!component->id)
		component->id = ++noise->last_id;
	component->revision++;
	component->emitted_slices = component->slices;
	component->emitted_ns = component->ns;
	component->final = over;
	*out = (struct result_noise){
	    .id = component->id,
	    .revision = component->revision,
	    .final = over,
	    .what = component->name,
	    .relation = component->relation,
	    .pid = component->process,
	    .slices = component->slices,
	    .lost_s = (double)component->ns / 1e9,
	    .longest_s = component->longest_us / 1e6,
	    .begin_ns = component->begin * VAPRO_BIN_NS,
	    .end_ns = component->end * VAPRO_BIN_NS,
	    .forgotten_s = (double)noise->forgotten_ns / 1e9,
	};
	return noise_hits__describe(builder, hits, count, out);
}

int result__noise(const struct builder *builder, struct job_result *result)
{
	struct candidate candidates[NOISE_NAMES];
	struct result_noise *list = result__take(builder, NOISE_EMITTED, sizeof(*list));
	bool over = analysis__job_over(builder->about, builder->span);
	struct noise_hit *hits;
	size_t count;
	int error;

	if (!list)
		return -ENOMEM;
	result->noise = list;
	error = result__stalls(builder, over, list, &result->noise_count);
	if (error || !builder->job->noise.count)
		return error;
	count = find_candidates(builder, candidates, NOISE_EMITTED - builder->job->stall_list.count);
	hits = calloc(builder->job->noise.part_count + 1, sizeof(*hits));
	error = hits ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && !error; i++) {
		if (is_due(candidates[i].component, over))
			error = build(builder, candidates[i].component, hits, over, &list[result->noise_count++]);
	}
	free(hits);
	return error;
}
