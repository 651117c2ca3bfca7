/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Noise components as they are emitted: those that cost a thread enough, and changed. */
#include "analysis/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOISE_EMITTED 32  /* components of a job, those with the greatest share of a thread's time */
#define NOISE_CHANGE 0.25 /* a component is emitted again once its slices or their time grew by this share */
#define NOISE_RANK 0.05	  /* a rank is named that lost this share of what the rank lost that lost most */

/* What a component took from one rank, or from one process of unknown rank. */
struct hit {
	int32_t rank;
	uint32_t pid; /* 0 where the rank is known */
	const char *host;
	uint64_t slices, ns;
	double observed_ns;
};

static int compare_hits(const void *a, const void *b)
{
	const struct hit *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return (left->pid > right->pid) - (left->pid < right->pid);
}

static int compare_numbers(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns for how long the scheduler's events of a thread were seen. */
static double observed_ns(const struct builder *builder, const struct stg_thread *thread)
{
	uint64_t end = thread->to_ns ? thread->to_ns : builder->span->end_ns;

	if (thread->work_from)
		return (double)(thread->work_to - thread->work_from) * VAPRO_BIN_NS;
	return thread->from_ns && thread->from_ns < end ? (double)(end - thread->from_ns) : 0;
}

/* Fills the hits of a component by rank. Returns their number. */
static size_t find_hits(const struct builder *builder, uint32_t component, struct hit *hits)
{
	const struct noise *noise = &builder->job->noise;
	size_t count = 0, merged = 0;

	for (size_t i = 0; i < noise->part_count; i++) {
		const struct noise_part *part = &noise->parts[i];
		const struct stg_thread *thread = stg__thread(builder->context->stg, part->thread);

		if (part->component != component)
			continue;
		hits[count++] = (struct hit){.rank = thread->about.rank,
					     .pid = thread->about.rank < 0 ? thread->about.pid : 0,
					     .host = thread->about.host,
					     .slices = part->slices,
					     .ns = part->ns,
					     .observed_ns = observed_ns(builder, thread)};
	}
	qsort(hits, count, sizeof(*hits), compare_hits);
	for (size_t i = 0; i < count; i++) {
		struct hit *into = merged ? &hits[merged - 1] : NULL;

		if (!into || compare_hits(into, &hits[i])) {
			hits[merged++] = hits[i];
			continue;
		}
		into->slices += hits[i].slices;
		into->ns += hits[i].ns;
		if (hits[i].observed_ns > into->observed_ns)
			into->observed_ns = hits[i].observed_ns;
	}
	return merged;
}

/* Fills for each component the greatest share that it has of a thread's time. */
static void find_shares(const struct builder *builder, double *shares)
{
	const struct noise *noise = &builder->job->noise;

	memset(shares, 0, noise->count * sizeof(*shares));
	for (size_t i = 0; i < noise->part_count; i++) {
		const struct noise_part *part = &noise->parts[i];
		double observed = observed_ns(builder, stg__thread(builder->context->stg, part->thread));
		double share = observed > 0 ? (double)part->ns / observed : 0;

		shares[part->component] = share > shares[part->component] ? share : shares[part->component];
	}
}

/* Writes the ranks, the hosts, and the periods of the ranks that lost most of it. Returns 0 or -ENOMEM. */
static int describe(const struct builder *builder, const struct hit *hits, size_t count, struct result_noise *out)
{
	int32_t *ranks = result__take(builder, count, sizeof(*ranks));
	const char **hosts = result__take(builder, count, sizeof(*hosts));
	double *periods = calloc(count, sizeof(*periods));
	double observed = 0;
	uint64_t most = 0, lost = 0;
	size_t named = 0;

	if (!ranks || !hosts || !periods) {
		free(periods);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		most = hits[i].ns > most ? hits[i].ns : most;
	for (size_t i = 0; i < count; i++) {
		if ((double)hits[i].ns < NOISE_RANK * (double)most)
			continue;
		lost += hits[i].ns;
		observed += hits[i].observed_ns;
		if (!out->rank_count || ranks[out->rank_count - 1] != hits[i].rank)
			ranks[out->rank_count++] = hits[i].rank;
		hosts[named] = hits[i].host;
		periods[named++] = hits[i].observed_ns / 1e9 / (double)hits[i].slices;
	}
	qsort(periods, named, sizeof(*periods), compare_numbers);
	qsort(hosts, named, sizeof(*hosts), compare_texts);
	for (size_t i = 0; i < named; i++) {
		if (!out->host_count || strcmp(hosts[out->host_count - 1], hosts[i]))
			hosts[out->host_count++] = hosts[i];
	}
	out->ranks = ranks;
	out->hosts = hosts;
	out->period_s = named % 2 ? periods[named / 2] : (periods[named / 2 - 1] + periods[named / 2]) / 2;
	out->period_least_s = periods[0];
	out->period_most_s = periods[named - 1];
	out->share = observed > 0 ? (double)lost / observed : 0;
	free(periods);
	return 0;
}

/* Returns whether all threads of the job are known to have ended by the end of the window. */
static bool is_over(const struct builder *builder)
{
	if (builder->span->last)
		return true;
	for (size_t row = 0; row < builder->about->row_count; row++) {
		const struct stg_row *at = &builder->about->rows[row];

		if (!at->to_ns || at->to_ns > builder->span->end_ns)
			return false;
	}
	return builder->about->row_count > 0;
}

static bool is_due(const struct noise_component *component, bool over)
{
	if (over && !component->final)
		return true;
	return !component->id ||
	       (double)(component->slices - component->emitted_slices) >
		   NOISE_CHANGE * (double)component->emitted_slices ||
	       (double)(component->ns - component->emitted_ns) > NOISE_CHANGE * (double)component->emitted_ns;
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
static size_t find_candidates(const struct builder *builder, struct candidate *candidates)
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
	return count < NOISE_EMITTED ? count : NOISE_EMITTED;
}

static int build(const struct builder *builder, struct noise_component *component, struct hit *hits, bool over,
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
	return describe(builder, hits, count, out);
}

int result__noise(const struct builder *builder, struct job_result *result)
{
	struct candidate candidates[NOISE_NAMES];
	size_t count = builder->job->noise.count ? find_candidates(builder, candidates) : 0;
	struct result_noise *list = count ? result__take(builder, count, sizeof(*list)) : NULL;
	struct hit *hits = count ? calloc(builder->job->noise.part_count, sizeof(*hits)) : NULL;
	bool over = is_over(builder);
	int error = count && (!list || !hits) ? -ENOMEM : 0;

	for (size_t i = 0; i < count && !error; i++) {
		if (is_due(candidates[i].component, over))
			error = build(builder, candidates[i].component, hits, over, &list[result->noise_count++]);
	}
	result->noise = list;
	free(hits);
	return error;
}
