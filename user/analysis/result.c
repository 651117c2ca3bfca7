/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arranges the findings of one window as include/vapro/analysis.h promises them. */
#include "analysis/result.h"

#include "analysis/clock_shift.h"

#include "diagnose/advice.h"
#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SITES 0.2 /* share of the loss of the call-site that loses most */
#define INSIDE_MAX 256 /* places where a computation ran */
#define START_BINS 10  /* attaching takes a while, and so do the first fragments */

static int build_ranks(const struct builder *builder, struct job_result *result)
{
	int32_t *ranks = result__take(builder, builder->about->row_count, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (size_t place = 0; place < builder->about->row_count; place++) {
		const struct stg_row *row = &builder->about->rows[builder->about->order[place]];

		/* Threads of a rank, and rows without a rank, are emitted once. */
		if (result__alive(builder, row) && (!result->rank_count || ranks[result->rank_count - 1] != row->rank))
			ranks[result->rank_count++] = row->rank;
	}
	result->ranks = ranks;
	return 0;
}

/* Sums of a variance's time in one state. */
struct state_sum {
	const struct stg_state *state;
	double lost, dur, ref; /* lost: of the series that lost */
};

int result__compare_sites(const void *a, const void *b)
{
	const struct result_site *left = a, *right = b;

	if (left->lost_seconds != right->lost_seconds)
		return left->lost_seconds > right->lost_seconds ? -1 : 1;
	return (left->state->id > right->state->id) - (left->state->id < right->state->id);
}

static int compare_sums(const void *a, const void *b)
{
	const struct state_sum *left = a, *right = b;

	return (left->state->about.id > right->state->about.id) - (left->state->about.id < right->state->about.id);
}

/* Sums by state over all ranks, also those that lost nothing there. Returns the number of sums, or SIZE_MAX. */
static size_t sum_states(const struct builder *builder, const struct tally *tally, struct state_sum **sums)
{
	struct state_sum *out = result__take(builder, tally->series_count, sizeof(*out));
	size_t live = 0;

	if (!out)
		return SIZE_MAX;
	for (size_t i = 0; i < tally->series_count; i++) {
		const struct tally_series *at = &tally->series[i];
		const struct series *series = &builder->context->series.series[at->series];

		out[i] = (struct state_sum){stg__state(builder->context->stg, series->state), fmax(0, at->lost),
					    at->dur, at->ref};
	}
	if (tally->series_count)
		qsort(out, tally->series_count, sizeof(*out), compare_sums);
	for (size_t i = 0; i < tally->series_count; i++) {
		if (!live || out[live - 1].state != out[i].state) {
			out[live++] = out[i];
			continue;
		}
		out[live - 1].lost += out[i].lost;
		out[live - 1].dur += out[i].dur;
		out[live - 1].ref += out[i].ref;
	}
	*sums = out;
	return live;
}

/*
 * Returns slow time over expected time: a fault that only one kind of work meets (slow memory) has the strength that it
 * has there, however much other work is beside it.
 */
static double ratio_slow(const struct state_sum *sums, size_t count, const struct result_variance *variance)
{
	double dur = 0, ref = 0;

	for (size_t i = 0; i < count; i++) {
		if (sums[i].state->about.class != variance->class || sums[i].dur < SET_RATIO * sums[i].ref)
			continue;
		dur += sums[i].dur;
		ref += sums[i].ref;
	}
	return variance->slow_path || ref <= 0 ? 1 / variance->performance : dur / ref;
}

static int build_sites(const struct builder *builder, const struct variance *variance, struct result_variance *out)
{
	const struct tally *tally = &variance->total;
	struct result_site *sites = result__take(builder, tally->series_count, sizeof(*sites));
	struct state_sum *sums;
	size_t count = sum_states(builder, tally, &sums), live = 0;

	if (!sites || count == SIZE_MAX)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (sums[i].lost > 0)
			sites[live++] = (struct result_site){&sums[i].state->about, sums[i].lost / 1e9,
							     sums[i].ref > 0 ? sums[i].dur / sums[i].ref : NAN};
	}
	if (live)
		qsort(sites, live, sizeof(*sites), result__compare_sites);
	out->sites = sites;
	out->site_count = (uint32_t)(live < SITES_MAX ? live : SITES_MAX);
	out->ratio_slow = ratio_slow(sums, count, out);
	return 0;
}

int result__inside(const struct builder *builder, const uint32_t *rows, size_t row_count, struct result_variance *out)
{
	const struct analysis_context *context = builder->context;
	struct result_inside places[INSIDE_MAX], *found;
	const char *from[SITES_MAX];
	uint32_t count = 0;

	if (out->class != VAPRO_COMPUTATION)
		return 0;
	for (uint32_t i = 0; i < out->site_count; i++)
		if (out->sites[i].state->class == VAPRO_COMPUTATION && out->sites[i].state->from)
			from[count++] = out->sites[i].state->from;
	out->inside_count = inside__find(context->inside, context->stg, builder->job->id, rows, row_count, from, count,
					 places, INSIDE_MAX, &out->inside_samples);
	if (!out->inside_count)
		return 0;
	found = result__take(builder, out->inside_count, sizeof(*found));
	if (!found)
		return -ENOMEM;
	memcpy(found, places, out->inside_count * sizeof(*found));
	out->inside = found;
	return 0;
}

static int build_exemplars(const struct builder *builder, const struct variance *variance, struct result_variance *out)
{
	const struct tally *tally = &variance->total;
	struct result_exemplar *exemplars = result__take(builder, tally->worst_count, sizeof(*exemplars));

	if (!exemplars)
		return -ENOMEM;
	for (unsigned i = 0; i < tally->worst_count; i++) {
		const struct tally_worst *worst = &tally->worst[i];
		const struct series *series = &builder->context->series.series[worst->series];
		const struct vapro_thread *thread = &stg__thread(builder->context->stg, series->thread)->about;

		exemplars[i] = (struct result_exemplar){
		    .rank = thread->rank,
		    .thread = thread->thread,
		    .tid = thread->tid,
		    .start_ns = worst->start_ns,
		    .duration_ns = (uint64_t)worst->dur,
		    .state = &stg__state(builder->context->stg, series->state)->about,
		};
		for (int f = 0; f < VAPRO_FACTORS; f++)
			exemplars[i].factor[f] = worst->factor[f];
	}
	out->exemplars = exemplars;
	out->exemplar_count = tally->worst_count;
	return 0;
}

/* Only the slow calls count for a slow path: calls made elsewhere say nothing about the path. */
static double performance_of(const struct variance *variance)
{
	const struct tally *tally = &variance->total;
	double judged = variance__judged(variance), dur = 0, ref = 0, most = 0;

	for (size_t i = 0; i < tally->series_count; i++)
		most = fmax(most, tally->series[i].lost);
	if (!variance->path || most <= 0)
		return judged > 0 ? fmin(1, fmax(0, 1 - variance__lost(variance) / judged)) : 1;
	for (size_t i = 0; i < tally->series_count; i++) {
		dur += tally->series[i].lost >= PATH_SITES * most ? tally->series[i].dur : 0;
		ref += tally->series[i].lost >= PATH_SITES * most ? tally->series[i].ref : 0;
	}
	return dur > 0 ? fmin(1, fmax(0, ref / dur)) : 1;
}

/* Whether the variance began with the job, as far as the job was seen. */
static bool from_start(const struct builder *builder, const struct variance *variance)
{
	uint64_t first = UINT64_MAX;

	for (size_t row = 0; row < builder->about->row_count; row++) {
		uint64_t from = builder->about->rows[row].from_ns;

		first = from && from < first ? from : first;
	}
	return first != UINT64_MAX && variance->begin <= first / VAPRO_BIN_NS + START_BINS;
}

/* Builds the sets of ranks that always differ, with the facts that they share. */
static int build_imbalances(const struct builder *builder, struct job_result *result)
{
	const struct sets *sets = &builder->job->sets;
	struct result_imbalance *imbalances = result__take(builder, sets->count, sizeof(*imbalances));

	if (!imbalances)
		return -ENOMEM;
	for (size_t i = 0; i < sets->count; i++) {
		const struct rank_set *set = &sets->items[i];
		const struct series *slow = &builder->context->series.series[set->slow];
		const struct series *fast = &builder->context->series.series[set->fast];
		struct result_imbalance *out = &imbalances[result->imbalance_count];
		int32_t *ranks = result__take(builder, set->count, sizeof(*ranks));

		if (!ranks)
			return -ENOMEM;
		if (set->over)
			continue;
		*out = (struct result_imbalance){
		    .state = &stg__state(builder->context->stg, slow->state)->about,
		    .fast_rank = builder->about->rows[fast->row].rank,
		    .slow_rank = builder->about->rows[slow->row].rank,
		    .fast_ns = set->fast_ns,
		    .slow_ns = set->slow_ns,
		    .share = set->share,
		    .ranks = ranks,
		    .ratio = set->ratio,
		    .ratio_least = set->ratio_least,
		    .ratio_most = set->ratio_most,
		    .ratio_slow = set->ratio_slow,
		    .lost_seconds = set->lost_ns / 1e9,
		    .states = set->states,
		    .certain = set->certain,
		};
		for (size_t k = 0; k < set->count; k++) {
			int32_t rank = builder->about->rows[set->rows[k]].rank;

			if (!out->rank_count || ranks[out->rank_count - 1] != rank)
				ranks[out->rank_count++] = rank;
		}
		if (set->variance && heatmap__has(&builder->job->map, builder->span->end - 1))
			out->variance =
			    heatmap__owner(&builder->job->map, set->rows[0], builder->span->end - 1, VAPRO_COMPUTATION);
		if (result__shared(builder, set->rows, set->count, &out->shared, &out->shared_count))
			return -ENOMEM;
		result->imbalance_count++;
	}
	result->imbalances = imbalances;
	return 0;
}

/* Sets the time around a variance in which nothing was seen of its ranks, while these ran. */
static void add_unseen(const struct builder *builder, const struct variance *variance, struct result_variance *out)
{
	const struct heatmap *map = &builder->job->map;
	uint64_t from = UINT64_MAX, to = 0;

	for (size_t i = 0; i < variance->row_count; i++) {
		const struct stg_row *row = &builder->about->rows[variance->rows[i]];
		uint64_t begin = row->from_ns / VAPRO_BIN_NS + 1;
		uint64_t end = row->to_ns ? row->to_ns / VAPRO_BIN_NS : map->end;

		from = begin < from ? begin : from;
		to = end > to ? end : to;
	}
	out->unseen_before_seconds = (double)variance__unseen_before(variance, map, from) * VAPRO_BIN_NS / 1e9;
	out->unseen_after_seconds = (double)variance__unseen_after(variance, map, to) * VAPRO_BIN_NS / 1e9;
}

static int build_variance(const struct builder *builder, const struct emitted_variance *emitted,
			  struct result_variance *out)
{
	const struct variance *variance = emitted->variance;
	const struct tally *tally = &variance->total;
	double observed = variance__observed(variance, &builder->job->map);
	int32_t *ranks = result__take(builder, variance->row_count, sizeof(*ranks));
	struct result_thread *threads = result__take(builder, variance->row_count, sizeof(*threads));
	struct diagnosis_of *item;
	char who[128];

	if (!ranks || !threads)
		return -ENOMEM;
	*out = (struct result_variance){
	    .id = variance->id,
	    .revision = variance->revision,
	    .state = variance->state,
	    .class = variance->class,
	    .begin_ns = variance->begin * VAPRO_BIN_NS,
	    .end_ns = variance->end * VAPRO_BIN_NS,
	    .ranks = ranks,
	    .threads = threads,
	    .confirmed = variance->confirmed,
	    .slow_path = variance->path,
	    .work_unknown = tally->account > 0.5 * tally->lost[variance->class],
	    .caused_seconds = variance->caused_ns / 1e9,
	    .share = variance->share,
	    .rated_share = variance->rated_share,
	    .denominator_seconds = variance->denominator_ns / 1e9,
	    .judged_seconds = variance__judged(variance) / 1e9,
	    .confidence = variance->confirmed  ? VAPRO_CONFIRMED
			  : variance->by_place ? VAPRO_PLACE
					       : VAPRO_UNCONFIRMED,
	    .severity = variance->matched ? variance->severity : VAPRO_INFO,
	    .from_start = from_start(builder, variance),
	    .alarm = variance->alarm,
	    .effect_of = variance->effect_of,
	    .still_open = tally->open,
	    .lost_seconds = emitted->lost_seconds,
	    .observed = observed,
	    .whole_lost_seconds =
		variance->matched ? variance__whole_loss(variance, observed) / 1e9 : emitted->lost_seconds,
	    .culprits = emitted->culprits,
	    .culprit_count = emitted->culprit_count,
	    .entered_last = emitted->entered_last,
	    .performance = performance_of(variance),
	};
	for (size_t i = 0; i < variance->row_count; i++) {
		const struct stg_row *row = &builder->about->rows[variance->rows[i]];
		int32_t rank = row->rank;

		if (result__several_rows(builder->about, row))
			threads[out->thread_count++] = (struct result_thread){rank, row->thread, row->pid, row->tid};
		if (!out->rank_count || ranks[out->rank_count - 1] != rank)
			ranks[out->rank_count++] = rank;
	}
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		out->lost_by_class[class] = fmax(0, tally->lost[class]) / 1e9;
		out->also[class] = variance->has[class] && class != (int)variance->class;
	}
	add_unseen(builder, variance, out);
	out->evidence = arena__copy(&builder->context->arena, variance->evidence);
	out->team_unseen = result__team_unseen(builder, variance);
	advice__who(out, result__split_up(builder, variance), who, sizeof(who));
	out->who = arena__copy(&builder->context->arena, who);
	if (!out->evidence || !out->who || build_sites(builder, variance, out) ||
	    result__inside(builder, variance->rows, variance->row_count, out) ||
	    build_exemplars(builder, variance, out))
		return -ENOMEM;
	item = diagnoses__find(&builder->job->diagnoses, variance->id);
	if (result__diagnosis(builder, item, variance->rows, variance->row_count, variance, out))
		return -ENOMEM;
	out->diagnosis.same = result__diagnosis_emitted(item, out);
	return 0;
}

static int compare_variances(const void *a, const void *b)
{
	const struct result_variance *left = a, *right = b;

	if (left->lost_seconds != right->lost_seconds)
		return left->lost_seconds > right->lost_seconds ? -1 : 1;
	return (left->id > right->id) - (left->id < right->id);
}

static bool alive(const void *arg, uint32_t row)
{
	const struct builder *builder = arg;

	return result__alive(builder, &builder->about->rows[row]);
}

/* Counts a variance that costs too little, once over all windows, as region__filter does. */
static void count_small(const struct builder *builder, const struct variance *variance, struct job_result *result)
{
	uint64_t from = builder->span->view, to = builder->span->last ? builder->span->end : builder->span->retire;
	uint64_t begin = variance->begin > from ? variance->begin : from, end = variance->end < to ? variance->end : to;

	result->small_count += variance->begin >= from && variance->begin < to;
	if (begin < end)
		result->small_seconds +=
		    variance__lost(variance) / 1e9 * (double)(end - begin) / (double)(variance->end - variance->begin);
}

/* Finds the variances of the book to emit. */
static int find_emitted(const struct builder *builder, struct emitted_variance **emitted, size_t *count,
			struct job_result *result)
{
	struct variance_book *book = &builder->job->book;
	size_t capacity = 0;

	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];

		/* waiting without a cause is small where it is more, too: ranks wait for each other all the time */
		if (variance->small && variance->matched && !variance->emitted_once &&
		    variance->share < builder->context->config.min_share)
			count_small(builder, variance, result);
		if (!variance__emit(variance, variance__least_s(&builder->context->config)))
			continue;
		if (grow(emitted, &capacity, *count + 1, sizeof(**emitted)))
			return -ENOMEM;
		(*emitted)[(*count)++] = (struct emitted_variance){
		    .variance = variance,
		    /* A withdrawn or merged variance has nothing left, but was emitted with a loss. */
		    .lost_seconds = variance->matched ? variance__lost(variance) / 1e9 : variance->emitted.lost_seconds,
		};
	}
	return 0;
}

static int build_variances(struct builder *builder, struct job_result *result)
{
	struct emitted_variance *emitted = NULL;
	struct result_variance *variances = NULL;
	size_t count = 0;
	int error = find_emitted(builder, &emitted, &count, result);

	if (!error && (count || builder->job->sets.count)) {
		variances = result__take(builder, count, sizeof(*variances));
		builder->where = where_index__new(&builder->context->places, builder->context->stg, builder->job->id,
						  alive, builder);
		error = variances && builder->where ? result__culprits(builder, emitted, count) : -ENOMEM;
	}
	for (size_t i = 0; i < count && !error; i++)
		error = build_variance(builder, &emitted[i], &variances[i]);
	if (!error && count)
		qsort(variances, count, sizeof(*variances), compare_variances);
	if (!error && builder->where)
		error = build_imbalances(builder, result);
	result->variances = variances;
	result->variance_count = (uint32_t)count;
	where_index__free(builder->where);
	builder->where = NULL;
	free(emitted);
	return error;
}

/* The performance of covered time. Work that is shorter than usual makes up for no time without a CPU. */
static double window_performance(const struct coverage *coverage, enum vapro_class class)
{
	double dur = coverage->dur_ns[class], most = dur;

	if (dur <= 0)
		return NAN;
	if (class == VAPRO_COMPUTATION)
		most = fmax(0, dur - coverage->attributed_ns);
	return fmin(most, fmax(0, coverage->ref_ns[class])) / dur;
}

int analysis_result__build(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span,
			   struct job_result *result)
{
	struct builder builder = {context, job, stg__job(context->stg, job->id), span, NULL};
	const struct coverage *coverage = &job->coverage;
	const struct coverage_facts *facts = &job->facts;
	uint32_t seen = 0;

	*result = (struct job_result){
	    .job = builder.about->name,
	    .user = builder.about->user,
	    .begin_ns = span->begin_ns,
	    .end_ns = span->end_ns,
	    .world_size = builder.about->world_size,
	    .bundles = job->bundles,
	    .fragments = job->fragments,
	    .open = job->open_count,
	    .shed = facts->shed,
	    .overhead_pct_mean = facts->processes ? facts->overhead_sum_pct / facts->processes : 0,
	    .overhead_pct_max = facts->overhead_max_pct,
	    .overhead_pid_max = facts->overhead_max_pid,
	    .uncovered = coverage->uncovered,
	    .uncovered_count = (uint32_t)coverage->uncovered_count,
	    .drifts = job->spatial.drifts,
	    .drift_count = (uint32_t)job->spatial.drift_count,
	    .rares = job->spatial.rares,
	    .rare_count = (uint32_t)job->spatial.rare_count,
	    .clusters = job->spatial.clusters,
	    .account = account__window(&job->account, span->end),
	    .sensing = job->sensing.sum,
	    .small_count = job->small_count,
	    .small_seconds = job->small_ns / 1e9,
	};
	memcpy(result->lost, facts->lost, sizeof(result->lost));
	for (size_t row = 0; row < builder.about->row_count; row++)
		seen += builder.about->rows[row].rank >= 0 && !builder.about->rows[row].thread;
	result->partial = seen < builder.about->world_size;
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		if (coverage->wall_ns > 0)
			result->coverage[class] = fmin(1, coverage->covered_ns[class] / coverage->wall_ns);
		result->coverage_total += result->coverage[class];
		result->performance[class] = window_performance(coverage, (enum vapro_class) class);
	}
	result->coverage_total = fmin(1, result->coverage_total);
	result->covered_before_s = coverage->before_ns / 1e9;
	if (build_ranks(&builder, result) || clock_shift__list(context, job, builder.about, result) ||
	    result__heatmaps(&builder, result))
		return -ENOMEM;
	if (build_variances(&builder, result) || result__selections(&builder, result))
		return -ENOMEM;
	return result__hang(&builder, result) || result__noise(&builder, result) ||
		       result__profiles(&builder, result) || result__variability(&builder, result)
		   ? -ENOMEM
		   : 0;
}
