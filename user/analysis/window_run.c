/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/diagnose.h"
#include "analysis/history.h"
#include "analysis/sharing.h"
#include "analysis/window_private.h"

#include "base/grow.h"
#include "detect/caused.h"
#include "detect/slept.h"
#include "detect/unseen_waits.h"
#include "model/groups.h"
#include "model/judge.h"
#include "model/job_series.h"
#include "model/occurrence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A smaller change of a reference leaves the two emitted digits of a performance as they are. */
#define REBASED_SHARE 0.005f

/* Leaves time stolen from work that is not known to be fixed to the kernel's account, which has such time by bin. */
static void leave_to_account(const struct analysis_job *job, struct bundle_rec *rec)
{
	if (!rec->attributed_only || !job->account.known)
		return;
	rec->covered = rec->attributed_only = 0;
	rec->reference = 0;
}

/* Empties the sums over the view and over the new part of the job's histories. */
static void begin_sums(struct series_book *book, uint32_t job)
{
	struct series_ids ids = job_series__ids(book, job);

	for (size_t i = 0; i < ids.count; i++) {
		struct series *series = &book->series[ids.ids[i]];

		series->normal_live = (struct series_pile){0};
		series->usual_live = (struct series_usual){0};
		series->window_ns = series->window_n = 0;
		memset(series->half_n, 0, sizeof(series->half_n));
		memset(series->half_net_ns, 0, sizeof(series->half_net_ns));
		memset(series->half_counted_ns, 0, sizeof(series->half_counted_ns));
		memset(series->half_reference_ns, 0, sizeof(series->half_reference_ns));
		memset(series->window_uncovered_ns, 0, sizeof(series->window_uncovered_ns));
	}
}

/* Bundles that are judged beside each other. */
struct occurrences {
	struct bundle_rec **recs;
	size_t count, capacity;
};

/* Adds a bundle where other ranks' calls at the same time may be its reference. Returns 0 or -ENOMEM. */
static int consider(struct occurrences *occurrences, const struct series_book *book, struct bundle_rec *rec)
{
	if (!occurrence__fits(book, rec))
		return 0;
	if (grow(&occurrences->recs, &occurrences->capacity, occurrences->count + 1, sizeof(*occurrences->recs)))
		return -ENOMEM;
	occurrences->recs[occurrences->count++] = rec;
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int judge(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span)
{
	struct series *series = context->series.series;
	struct occurrences occurrences = {0};
	int error = 0;

	begin_sums(&context->series, job->id);
	job->known_from = span->view;
	for (size_t i = 0; i < job->rec_count; i++) {
		/* what was emitted of it rests on this */
		bool emitted = !job->recs[i].is_new && job->recs[i].cell != BUNDLE_NO_CELL;
		float counted = emitted ? job->recs[i].reference - job->recs[i].waited_ns / (float)job->recs[i].n : 0;

		series__fetch(series, job->recs, i, job->rec_count, offsetof(struct series, cpu),
			      offsetof(struct series, size));
		fetch_sums(series, job->recs, i, job->rec_count, offsetof(struct series, usual_live),
			   offsetof(struct series, normal_live));
		judge__bundle(&context->series, &job->recs[i]);
		leave_to_account(job, &job->recs[i]);
		error = error ? error : consider(&occurrences, &context->series, &job->recs[i]);
		/* A faster member of the cluster, or moved borders, outdate what was emitted. */
		job->recs[i].rebased = emitted && fabsf(job->recs[i].reference - counted) > REBASED_SHARE * counted;
		/* The bundle's state has become known: the bundle's time before the view is emitted now. */
		if (job->recs[i].retained && job->recs[i].covered) {
			job->recs[i].is_new = 1;
			if (bundle_rec__first_bin(&job->recs[i]) < job->known_from)
				job->known_from = bundle_rec__first_bin(&job->recs[i]);
		}
		if (!pending(&job->recs[i], span) && analysis__normal(context, &job->recs[i]))
			add_pile(&series[job->recs[i].series].normal_live, &job->recs[i]);
	}
	judge__usual(&context->series, job->id);
	for (size_t i = 0; i < job->open_count; i++) {
		job->open[i].ratio = groups__ratio(&series[job->open[i].series], &job->open[i]);
		judge__bundle(&context->series, &job->open[i]);
		leave_to_account(job, &job->open[i]);
		bundle_rec__set_usual(&job->open[i], BUNDLE_USUAL_BLOCKED,
				      series[job->open[i].series].usual_blocked * job->open[i].ratio);
		/* An open fragment counts only once it lasts too long. */
		if (job->open[i].sum_ns * context->config.threshold <= job->open[i].reference)
			job->open[i].covered = 0;
		error = error ? error : consider(&occurrences, &context->series, &job->open[i]);
	}
	if (!error && occurrences.count)
		error = occurrence__judge(&context->series, occurrences.recs, occurrences.count);
	free(occurrences.recs);
	return error;
}

/* Adds a judged bundle to the usual sums, once the usual sleep is known. later: it ends after the window. */
static void add_usual(struct series *series, struct bundle_rec *rec, bool later)
{
	bundle_rec__set_usual(rec, BUNDLE_USUAL_BLOCKED, series->usual_blocked * rec->ratio);
	rec->learnt = !later && rec->covered && !rec->no_reference && !rec->attributed_only &&
		      series__learns(series, rec, rec->disturbed);
	if (rec->learnt)
		series__add_usual(&series->usual_live, series->class, rec);
}

int analysis_window__judge(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span)
{
	if (judge(context, job, span))
		return -ENOMEM;
	for (size_t i = 0; i < job->rec_count; i++)
		add_usual(&context->series.series[job->recs[i].series], &job->recs[i], pending(&job->recs[i], span));
	return 0;
}

static int mark_emitted_again(struct analysis_job *job, const struct stg_job *about, const struct series *series,
			      const struct bundle_rec *rec, const struct analysis_span *span)
{
	struct emitted_again *emitted_again = &job->emitted_again[series->class];
	uint64_t first = bundle_rec__first_bin(rec);

	/* Before the view the map is frozen for all but new bundles. */
	if (!rec->is_new && first < span->view)
		first = span->view;
	if (!(rec->covered || rec->rebased) || first >= span->begin || bundle_rec__bin(rec) < first)
		return 0;
	if (!emitted_again->rows) {
		emitted_again->rows = calloc(about->row_count, 1);
		if (!emitted_again->rows)
			return -ENOMEM;
	}
	emitted_again->rows[series->row] = 1;
	if (first < emitted_again->from)
		emitted_again->from = first;
	return 0;
}

/* Finds the waits of the job's bundles that no probe shows. */
static int find_waits(struct analysis_job *job, struct analysis_context *context)
{
	account__carry(&job->account, &context->series, job->recs, job->rec_count);
	account__carry(&job->account, &context->series, job->open, job->open_count);
	return unseen_waits__find(&job->account, &context->series, stg__job(context->stg, job->id), job->recs,
				  job->rec_count, job->open, job->open_count);
}

/* Adds time known from the kernel's account alone to the map, and to nothing that histories learn from. */
static int add_account(struct analysis_job *job, struct analysis_context *context, const struct analysis_span *span)
{
	if (account__make(&job->account, &context->series, span->end, account__retire_bin(&job->map, span->end)))
		return -ENOMEM;
	for (size_t i = 0; i < job->account.rec_count; i++) {
		const struct bundle_rec *rec = &job->account.recs[i];

		if (heatmap__add(&job->map, rec, context->series.series[rec->series].row, VAPRO_COMPUTATION, 0,
				 span->end))
			return -ENOMEM;
		waiting__reach(job->waiting, rec->max_ns);
	}
	return slept__enter(&job->account, &context->config, &job->map, span->view, span->end);
}

/* Adds all bundles to the map, to the coverage and to the usual sums in one pass. */
static int fill_map(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span)
{
	const struct stg_job *about = stg__job(context->stg, job->id);

	if (context->memory.short_history)
		heatmap__cut(&job->map);
	if (heatmap__rows(&job->map, about->row_count, span->end - span->view))
		return -ENOMEM;
	heatmap__advance(&job->map, span->view, span->end);
	heatmap__clear(&job->map, span->view);
	if (waiting__begin(job->waiting, &job->map, about->row_count, job->known_from, span->view, span->end) ||
	    sensing__begin(&job->sensing, about->row_count, span->begin, span->end))
		return -ENOMEM;
	for (size_t i = 0; i < job->rec_count + job->open_count; i++) {
		bool open = i >= job->rec_count;
		struct bundle_rec *rec = open ? &job->open[i - job->rec_count] : &job->recs[i];
		bool later = !open && pending(rec, span);
		struct series *series = &context->series.series[rec->series];
		/* Before the view the map is frozen; only what has just arrived may reach there. */
		uint64_t from = rec->is_new || open ? 0 : span->view;

		if (!open) {
			fetch_sums(context->series.series, job->recs, i, job->rec_count,
				   offsetof(struct series, window_ns), offsetof(struct series, usual_live));
			add_usual(series, rec, later);
		}
		if (later || (rec->retained && !rec->covered))
			continue;
		if (coverage__add(&job->coverage, series, rec, span->begin, span->end) ||
		    heatmap__add(&job->map, rec, series->row, series->class, from, span->end))
			return -ENOMEM;
		if (!open && rec->is_new)
			sensing__add(&job->sensing, about->rows[series->row].leader, rec);
		if (!open && (rec->is_new || rec->rebased) && mark_emitted_again(job, about, series, rec, span))
			return -ENOMEM;
		if (rec->covered && series->class != VAPRO_COMMUNICATION)
			waiting__reach(job->waiting, rec->max_ns);
		if (rec->covered && series->class == VAPRO_COMMUNICATION &&
		    waiting__add(job->waiting, rec, open ? WAITING_OPEN : (uint32_t)i, series,
				 stg__state(context->stg, series->state), from))
			return -ENOMEM;
	}
	sensing__end(&job->sensing, about, span->begin_ns, span->end_ns);
	coverage__count_threads(&job->coverage);
	coverage__explain(&job->coverage, &context->series, job->waiting);
	return add_account(job, context, span) || waiting__end(job->waiting, about, &context->series) ? -ENOMEM : 0;
}

static int find_variances(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span)
{
	const struct stg_job *about = stg__job(context->stg, job->id);
	struct sets_span sets = {
	    .view = span->view, .begin = span->begin, .end = span->end, .wall_ns = job->coverage.wall_ns};
	struct region_result drafts = {.small_from = span->view, .small_to = span->last ? span->end : span->retire};
	int error;

	job->book.last_id = &context->last_variance;
	error = region__grow(&job->map, about, &context->config, context->source, &drafts);
	if (!error)
		error = sets__find(&job->sets, &context->series, context->stg, job->id, &job->map, &sets);
	if (!error)
		error = sets__apply(&job->sets, &job->map, about, &context->config, &drafts);
	if (!error)
		error = variance__match(&job->book, &job->map, about, &drafts, span->end, span->last);
	job->small_count = drafts.small_count;
	job->small_ns = drafts.small_ns;
	region__clear(&drafts);
	return error;
}

struct result_interferer analysis__task(const struct analysis_context *context, const struct interference_rec *at)
{
	struct result_interferer task = at->task;

	if (at->other_job != STG_NONE && at->other_job < stg__jobs(context->stg))
		task.job = stg__job(context->stg, at->other_job)->name;
	return task;
}

uint32_t analysis__owner_of(const struct analysis_job *job, const struct interference_rec *at)
{
	uint32_t owner = 0;

	if (!heatmap__has(&job->map, at->bin))
		return 0;
	for (int class = 0; class < VAPRO_CLASSES && !owner; class ++)
		owner = heatmap__owner(&job->map, at->row, at->bin, class);
	return owner;
}

static int find_hang(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span,
		     bool partial)
{
	const struct hang_input input = {
	    .config = &context->config,
	    .stg = context->stg,
	    .job = job->id,
	    .series = &context->series,
	    .open = job->open,
	    .open_count = job->open_count,
	    .recs = job->recs,
	    .rec_count = job->rec_count,
	    .facts = &job->facts,
	    .partial = partial,
	    .last = span->last,
	    .begin_ns = span->begin_ns,
	    .end_ns = span->end_ns,
	    .last_id = &context->last_variance,
	};

	return hang__judge(&job->hang, &input);
}

static bool partial(const struct stg_job *about)
{
	uint32_t seen = 0;

	for (size_t row = 0; row < about->row_count; row++)
		seen += about->rows[row].rank >= 0 && !about->rows[row].thread;
	return seen < about->world_size;
}

/* Threads may have got rows of their own since. */
static void place_interference(const struct stg *stg, struct analysis_job *job)
{
	for (size_t i = 0; i < job->interference_count; i++)
		job->interference[i].row = stg__thread(stg, job->interference[i].thread)->row;
}

int analysis_window__run(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span)
{
	int status = account__rows(&job->account, context->stg, span->end);
	const struct stg_job *about = stg__job(context->stg, job->id);
	struct evidence_input input = {
	    .config = &context->config,
	    .map = &job->map,
	    .job = about,
	    .series = &context->series,
	    .stg = context->stg,
	    .source = context->source,
	    .recs = job->recs,
	    .rec_count = job->rec_count,
	    .begin = span->begin,
	    .end = span->end,
	    .partial = partial(about),
	};
	struct parts parts = {.view = span->view, .retire = span->retire, .end = span->end};
	const float *transfers;
	int error = -ENOMEM;

	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		free(job->emitted_again[class].rows);
		job->emitted_again[class] = (struct emitted_again){.from = UINT64_MAX};
	}
	if (status)
		return status;
	place_interference(context->stg, job);
	if (coverage__begin(&job->coverage, context->stg, job->id, span->begin_ns, span->end_ns))
		goto cleanup;
	if (judge(context, job, span) || find_waits(job, context) || fill_map(context, job, span) ||
	    analysis_window__add_stalls(context, job, span) || find_variances(context, job, span) ||
	    sharing__count_waits(context, job, span) || waiting__transfers(job->waiting, job->rec_count, &transfers))
		goto cleanup;
	/* without a variance no bundle is part of one */
	if (job->book.count &&
	    (bundle_shares__find(&parts, &job->map, &context->series, job->recs, transfers, job->rec_count, span->end,
				 span->retire) ||
	     bundle_shares__find(&parts, &job->map, &context->series, job->open, NULL, job->open_count, span->end,
				 span->retire) ||
	     bundle_shares__find(&parts, &job->map, &context->series, job->account.recs, NULL, job->account.rec_count,
				 span->end, account__retire_bin(&job->map, span->end)) ||
	     unseen_waits__tally(&job->book, &job->map, &context->series, job->recs, job->rec_count, span->end,
				 span->retire) ||
	     unseen_waits__tally(&job->book, &job->map, &context->series, job->open, job->open_count, span->end,
				 span->retire) ||
	     caused__divide(&job->book, &job->map, about, &context->series, &parts,
			    waiting__bins_of_reach(job->waiting)) ||
	     bundle_shares__tally(&parts, &job->book, &context->series)))
		goto cleanup;
	if (job->book.count &&
	    (evidence__pairs(&job->book, &input, job->recs, transfers, job->rec_count, span->view, span->retire) ||
	     evidence__pairs(&job->book, &input, job->open, NULL, job->open_count, span->view, 0)))
		goto cleanup;
	evidence__judge(&job->book, &input);
	if (weight__judge(&job->book, about, &context->config, span->end_ns) ||
	    analysis__diagnose(context, job, span, &parts))
		goto cleanup;
	if (coverage__end(&job->coverage, &context->series, job->id, &job->facts))
		goto cleanup;
	/* once its records are written the job's end is known */
	if (!job->variability_known && rank_profile__add(&job->profile, &context->series, job->id, &job->coverage))
		goto cleanup;
	spatial__window(&context->series, job->id);
	error = spatial__find(&job->spatial, &context->series, context->stg, job->id);
	if (!error)
		error = spatial__alike(&job->spatial, &job->book, &context->series, context->stg,
				       (uint64_t)(context->config.window_s * 2 / 3 * 1e9) / VAPRO_BIN_NS);
	if (!error)
		error = spatial__clusters(&job->spatial, &context->series, context->stg, job->id, job->recs,
					  job->rec_count, span->begin, span->end);
	if (!error)
		error = find_hang(context, job, span, input.partial);
cleanup:
	free(parts.items);
	return error;
}
