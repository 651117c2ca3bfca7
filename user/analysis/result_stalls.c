// SPDX-License-Identifier: GPL-2.0-or-later
/* Noise components of fragments as they are emitted: kinds of stalls that cost a rank enough, and changed. */
#include "analysis/noise_hits.h"

#include "detect/stall_facts.h"
#include "model/histogram.h"
#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBTED_MOST = 16 }; /* kinds of a class that are compared with each other */

/* Returns for how long a row was observed, as far as its stalls are counted. */
static double observed_ns(const struct builder *builder, uint32_t row)
{
	uint64_t until = builder->job->stalls.until * VAPRO_BIN_NS, from = builder->about->rows[row].from_ns;
	uint64_t to = builder->about->rows[row].to_ns;

	until = until < builder->span->end_ns ? until : builder->span->end_ns;
	to = to && to < until ? to : until;
	return from && from < to ? (double)(to - from) : 0;
}

/* Whether the fragments of a class are known to be equal work: calls of equal labels and bytes, equal instructions. */
static bool is_fixed(const struct builder *builder, enum vapro_class class)
{
	return class != VAPRO_COMPUTATION || builder->context->source == VAPRO_BY_INSTRUCTIONS;
}

/* Finds the emitted kind that a kind continues; NULL: none. */
static struct stall_emitted *find(struct stall_list *list, const struct stall_kind *kind)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct stall_kind *at = &list->items[i].kind;

		if (at->class == kind->class && at->low <= kind->high && kind->low <= at->high)
			return &list->items[i];
	}
	return NULL;
}

static void begin(struct stall_list *list, const struct stall_kind *kind)
{
	if (list->count < STALLS_EMITTED)
		list->items[list->count++] = (struct stall_emitted){.kind = *kind};
}

/* Kinds that are no noise by themselves. */
struct doubted {
	const struct stall_kind *kind;
	struct stall_facts facts;
};

/* Begins those of the doubted kinds that are noise together with another one. */
static void begin_together(struct stall_list *list, const struct doubted *doubted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool together = false;

		for (size_t k = 0; k < count && !together; k++)
			together = k != i && stall_facts__coincide(&doubted[i].facts, &doubted[k].facts);
		if (together)
			begin(list, doubted[i].kind);
	}
}

/* Takes over what was found now into the list. Returns 0 or -ENOMEM. */
static int update(const struct builder *builder, const struct stall_kind *kinds, size_t count)
{
	struct doubted doubted[DOUBTED_MOST];
	struct stall_list *list = &builder->job->stall_list;
	size_t doubted_count = 0;

	for (size_t i = 0; i < count; i++) {
		struct stall_emitted *emitted = find(list, &kinds[i]);
		struct stall_facts facts;

		if (emitted) {
			if (kinds[i].n >= emitted->kind.n)
				emitted->kind = kinds[i];
			continue;
		}
		if (list->count == STALLS_EMITTED)
			continue;
		if (stall_facts__find(&builder->job->stalls, &kinds[i], builder->about, &facts))
			return -ENOMEM;
		if (stall_facts__is_noise(&facts, is_fixed(builder, kinds[i].class)))
			begin(list, &kinds[i]);
		else if (doubted_count < DOUBTED_MOST)
			doubted[doubted_count++] = (struct doubted){&kinds[i], facts};
	}
	begin_together(list, doubted, doubted_count);
	return 0;
}

static int find_kinds(const struct builder *builder)
{
	const struct vapro_config *config = &builder->context->config;
	double *observed = calloc(builder->about->row_count + 1, sizeof(*observed));
	struct stall_view view = {.job = builder->about,
				  .observed_ns = observed,
				  .share = config->noise_share,
				  .least_ns = config->min_lost_s * 1e9};
	struct stall_kind kinds[STALL_KINDS];
	int error = observed ? 0 : -ENOMEM;

	for (uint32_t row = 0; !error && row < builder->about->row_count; row++)
		observed[row] = observed_ns(builder, row);
	for (int class = 0; class < VAPRO_CLASSES && !error; class ++) {
		size_t count;

		error = stall_kinds__find(&builder->job->stalls, &view, class, kinds, &count);
		if (!error)
			error = update(builder, kinds, count);
	}
	free(observed);
	return error;
}

/* Writes whom a kind hit. Returns 0 or -ENOMEM. */
static int describe_rows(const struct builder *builder, const struct stall_kind *kind, struct result_noise *out)
{
	struct noise_hit *hits = calloc(builder->about->row_count + 1, sizeof(*hits));
	size_t count = 0;
	int error = 0;

	if (!hits)
		return -ENOMEM;
	for (uint32_t row = 0; row < builder->about->row_count; row++) {
		const struct stg_row *at = &builder->about->rows[row];
		const struct stall_row *stalls = stalls__row(&builder->job->stalls, row, kind->class);
		uint64_t n, ns;

		stall_kinds__of_row(&builder->job->stalls, kind, row, &n, &ns);
		if (!n)
			continue;
		out->unresolved += stalls->unresolved;
		if (out->begin_ns > stalls->begin * VAPRO_BIN_NS)
			out->begin_ns = stalls->begin * VAPRO_BIN_NS;
		if (out->end_ns < stalls->end * VAPRO_BIN_NS)
			out->end_ns = stalls->end * VAPRO_BIN_NS;
		hits[count++] = (struct noise_hit){.rank = at->rank,
						   .pid = at->rank < 0 ? at->pid : 0,
						   .host = at->host,
						   .slices = n,
						   .ns = ns,
						   .observed_ns = observed_ns(builder, row)};
	}
	count = noise_hits__merge(hits, count);
	if (count)
		error = noise_hits__describe(builder, hits, count, out);
	free(hits);
	return error;
}

static int describe_sites(const struct builder *builder, const struct stall_facts *facts, struct result_noise *out)
{
	size_t count = 0;
	struct result_noise_site *sites = result__take(builder, STALL_SITES, sizeof(*sites));

	if (!sites)
		return -ENOMEM;
	for (size_t i = 0; i < STALL_SITES && facts->sites[i].stalls; i++)
		sites[count++] = (struct result_noise_site){
		    .state = &stg__state(builder->context->stg, facts->sites[i].state)->about,
		    .share = (double)facts->sites[i].stalls / (double)facts->stalls,
		};
	out->sites = sites;
	out->site_count = (uint32_t)count;
	return 0;
}

static int describe_exemplars(const struct builder *builder, const struct stall_facts *facts, struct result_noise *out)
{
	struct result_exemplar *exemplars = result__take(builder, STALL_EXEMPLARS, sizeof(*exemplars));

	if (!exemplars)
		return -ENOMEM;
	for (size_t i = 0; i < facts->exemplar_count; i++) {
		const struct stall *stall = &facts->exemplars[i];
		const struct stg_row *row = &builder->about->rows[facts->exemplar_rows[i]];

		exemplars[i] =
		    (struct result_exemplar){.rank = row->rank,
					     .thread = row->thread,
					     .tid = row->tid,
					     .start_ns = stall->start_ns,
					     .duration_ns = stall->end_ns - stall->start_ns,
					     .state = &stg__state(builder->context->stg, stall->state)->about};
	}
	out->exemplars = exemplars;
	out->exemplar_count = (uint32_t)facts->exemplar_count;
	return 0;
}

/* Returns the function in which most stalls were, or the class. */
static const char *name(const struct builder *builder, const struct stall_kind *kind, const struct result_noise *noise)
{
	char function[64] = "", *text;

	if (noise->site_count && noise->sites[0].share >= SHARE_MOST && noise->sites[0].state->labels)
		stg__label(noise->sites[0].state->labels, "function", function, sizeof(function));
	if (!*function)
		return vapro_class_name[kind->class];
	text = result__take(builder, strlen(function) + 1, 1);
	return text ? strcpy(text, function) : NULL;
}

/* Finds the longest stalls of a kind, and what others waited for all of them. */
static void describe_length(const struct stalls *stalls, const struct stall_kind *kind, size_t rows,
			    struct result_noise *out)
{
	for (uint32_t row = 0; row < rows; row++) {
		const struct stall_row *at = stalls__row(stalls, row, kind->class);
		uint64_t n, ns;

		stall_kinds__of_row(stalls, kind, row, &n, &ns);
		for (size_t i = 0; n && i < at->count; i++) {
			const struct stall_bucket *bucket = &at->buckets[i];

			if (bucket->index < kind->low || bucket->index > kind->high)
				continue;
			out->longest_s = fmax(out->longest_s, (double)bucket->ns / (double)bucket->n / 1e9);
			out->waited_s += (double)bucket->waited_ns / 1e9;
		}
	}
}

static int build(const struct builder *builder, struct stall_emitted *emitted, bool over, struct result_noise *out)
{
	const struct stall_kind *kind = &emitted->kind;
	struct stall_facts facts;

	if (stall_facts__find(&builder->job->stalls, kind, builder->about, &facts))
		return -ENOMEM;
	if (!emitted->id)
		emitted->id = ++builder->job->noise.last_id;
	emitted->revision++;
	emitted->emitted_n = kind->n;
	emitted->emitted_ns = kind->ns;
	emitted->final = over;
	*out = (struct result_noise){
	    .source = VAPRO_NOISE_FRAGMENTS,
	    .id = emitted->id,
	    .revision = emitted->revision,
	    .final = over,
	    .class = kind->class,
	    .slices = kind->n,
	    .lost_s = (double)kind->ns / 1e9,
	    .regularity = facts.regularity,
	    .together = (enum vapro_noise_together)facts.together,
	    .second = facts.second,
	    .begin_ns = UINT64_MAX,
	};
	describe_length(&builder->job->stalls, kind, builder->about->row_count, out);
	if (describe_rows(builder, kind, out) || describe_sites(builder, &facts, out) ||
	    describe_exemplars(builder, &facts, out))
		return -ENOMEM;
	out->what = name(builder, kind, out);
	return out->what ? 0 : -ENOMEM;
}

int result__stalls(const struct builder *builder, bool over, struct result_noise *list, uint32_t *count)
{
	struct stall_list *emitted = &builder->job->stall_list;
	int error = builder->job->stalls.count ? find_kinds(builder) : 0;

	for (size_t i = 0; !error && i < emitted->count; i++) {
		struct stall_emitted *at = &emitted->items[i];

		stall_kinds__sum(&builder->job->stalls, builder->about->row_count, &at->kind);
		if (!at->kind.n)
			continue;
		if (!at->id || (over && !at->final) ||
		    noise_hits__changed(at->kind.n, at->kind.ns, at->emitted_n, at->emitted_ns))
			error = build(builder, at, over, &list[(*count)++]);
	}
	return error;
}
