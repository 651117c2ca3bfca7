/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Serves a query between windows: what the job still has, past and present, is put together and judged,
 * and the region is diagnosed as one chosen by hand. The state before the query is not restored.
 */
#include "analysis/diagnose.h"
#include "analysis/result.h"

#include "base/grow.h"
#include "detect/unseen_waits.h"
#include "model/judge.h"

#include <math.h>

/* Finds when threads were last seen at work: a fragment open before that has ended since. Returns 0 or -ENOMEM. */
static int find_last(const struct analysis_context *context, const struct analysis_job *job, uint64_t **last)
{
	*last = calloc(stg__threads(context->stg) + 1, sizeof(**last));
	if (!*last)
		return -ENOMEM;
	for (size_t i = 0; i < job->rec_count; i++) {
		uint64_t *at = &(*last)[context->series.series[job->recs[i].series].thread];

		if (job->recs[i].end_ns > *at)
			*at = job->recs[i].end_ns;
	}
	return 0;
}

/*
 * Adds the fragments open at the last window's end whose threads were not seen since: they are still open.
 * No bundle reports the time since then yet.
 */
static int add_open(struct analysis_context *context, struct analysis_job *job)
{
	struct history *history = &job->history;
	uint64_t *last;

	if (grow(&job->open, &job->open_capacity, job->open_count + history->open_count, sizeof(*job->open)) ||
	    find_last(context, job, &last))
		return -ENOMEM;
	for (size_t i = 0; i < history->open_count; i++) {
		const struct bundle_rec *open = &history->open[i];

		if (last[context->series.series[open->series].thread] >= open->end_ns)
			series__drop(&context->series, open);
		else
			job->open[job->open_count++] = *open;
	}
	history->open_count = 0;
	free(last);
	return 0;
}

/* Adds dropped bundles again, after the present ones have shown what is normal: dropped ones did so before. */
static int add_past(struct analysis_context *context, struct analysis_job *job)
{
	struct history *history = &job->history;
	size_t live = job->rec_count + history->rec_count;
	size_t interference = job->interference_count + history->interference_count;

	if (grow(&job->recs, &job->rec_capacity, live, sizeof(*job->recs)) ||
	    grow(&job->interference, &job->interference_capacity, interference, sizeof(*job->interference)))
		return -ENOMEM;
	for (size_t i = 0; i < history->rec_count; i++) {
		judge__bundle(&context->series, &history->recs[i]);
		bundle_rec__set_usual(&history->recs[i], BUNDLE_USUAL_BLOCKED,
				      context->series.series[history->recs[i].series].usual_blocked);
		job->recs[job->rec_count++] = history->recs[i];
	}
	history->rec_count = 0;
	if (history->interference_count)
		memcpy(job->interference + job->interference_count, history->interference,
		       history->interference_count * sizeof(*history->interference));
	job->interference_count = interference;
	return 0;
}

/* Adds the time known from the kernel's account alone. */
static int add_account(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span)
{
	account__forget_past(&job->account);
	if (account__rows(&job->account, context->stg, span->end))
		return -ENOMEM;
	account__carry(&job->account, &context->series, job->recs, job->rec_count);
	account__carry(&job->account, &context->series, job->open, job->open_count);
	if (unseen_waits__find(&job->account, &context->series, stg__job(context->stg, job->id), job->recs,
			       job->rec_count, job->open, job->open_count))
		return -ENOMEM;
	return account__make(&job->account, &context->series, span->end, 0);
}

/* Returns the time since which nothing is missing, UTC ns. */
static uint64_t retained_from(const struct analysis_job *job, const struct stg_job *about)
{
	uint64_t first = UINT64_MAX, from = job->history.from * VAPRO_BIN_NS;

	for (size_t i = 0; i < about->row_count; i++) {
		if (about->rows[i].from_ns && about->rows[i].from_ns < first)
			first = about->rows[i].from_ns;
	}
	return first != UINT64_MAX && first > from ? first : from;
}

static int add_ranks(const struct builder *builder, struct job_result *result)
{
	int32_t *ranks = result__take(builder, builder->about->row_count, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < builder->about->row_count; i++) {
		const struct stg_row *row = &builder->about->rows[builder->about->order[i]];

		if (!result->rank_count || ranks[result->rank_count - 1] != row->rank)
			ranks[result->rank_count++] = row->rank;
	}
	result->ranks = ranks;
	return 0;
}

/* Adds the region's fragments, coverage, and uncovered time by reason. */
static int add_coverage(const struct builder *builder, struct job_result *result)
{
	struct result_uncovered *list = result__take(builder, VAPRO_UNCOVERED_REASONS, sizeof(*list));
	const struct analysis_job *job = builder->job;
	double time[VAPRO_UNCOVERED_REASONS] = {0}, all = 0, fragments = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < job->rec_count + job->open_count; i++) {
		const struct bundle_rec *rec = i < job->rec_count ? &job->recs[i] : &job->open[i - job->rec_count];
		const struct stg_row *row = &builder->about->rows[builder->context->series.series[rec->series].row];
		double share = analysis__share_selected(&builder->context->selection, row, rec);

		fragments += share * rec->n;
		all += share * rec->sum_ns;
		time[rec->covered && !rec->attributed_only ? VAPRO_COVERED : rec->reason] += share * rec->sum_ns;
	}
	result->fragments = (uint64_t)llround(fragments);
	result->coverage_total = all > 0 ? time[VAPRO_COVERED] / all : 0;
	for (int reason = VAPRO_COVERED + 1; reason < VAPRO_UNCOVERED_REASONS; reason++) {
		if (time[reason] > 0.005 * all)
			list[result->uncovered_count++] = (struct result_uncovered){
			    .share = time[reason] / all, .reason = (enum vapro_uncovered_reason)reason};
	}
	result->uncovered = list;
	return 0;
}

int analysis__respond(struct analysis_context *context, struct analysis_job *job, uint64_t now_ns, bool wanted,
		      struct job_result *result)
{
	struct analysis_span span = {.end_ns = now_ns, .end = (now_ns + VAPRO_BIN_NS - 1) / VAPRO_BIN_NS, .last = true};
	struct builder builder = {context, job, stg__job(context->stg, job->id), &span, NULL};
	struct selection_of *selection = &context->selection, whole = *selection;
	int error;

	span.begin_ns = retained_from(job, builder.about);
	*result = (struct job_result){
	    .job = builder.about->name, .user = builder.about->user, .begin_ns = span.begin_ns, .end_ns = now_ns};
	if (add_ranks(&builder, result))
		return -ENOMEM;
	if (!wanted)
		return 0;
	if (selection->begin_ns < span.begin_ns)
		selection->begin_ns = span.begin_ns;
	if (selection->end_ns > now_ns)
		selection->end_ns = now_ns;
	diagnoses__free(&job->chosen);
	chosen_sites__free(&job->chosen_sites);
	error = add_open(context, job);
	if (!error)
		error = analysis_window__judge(context, job, &span);
	if (!error)
		error = add_past(context, job);
	if (!error)
		error = add_account(context, job, &span);
	if (!error && selection->begin_ns < selection->end_ns)
		error =
		    analysis__forget_normal(context) || analysis__diagnose_selection(context, job, &span) ? -ENOMEM : 0;
	if (!error)
		error = add_coverage(&builder, result) || result__selections(&builder, result) ? -ENOMEM : 0;
	*selection = whole;
	return error;
}
