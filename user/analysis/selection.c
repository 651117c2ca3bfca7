/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A region chosen by hand gets the same diagnosis as a variance, one for each class. */
#include "analysis/diagnose.h"
#include "analysis/result.h"

#include "diagnose/advice.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void analysis__finalize_selection(struct selection_of *selection, uint64_t begin_ns)
{
	if (!selection->relative)
		return;
	selection->relative = false;
	selection->begin_ns += begin_ns;
	if (selection->end_ns != UINT64_MAX)
		selection->end_ns += begin_ns;
}

bool analysis__row_selected(const struct selection_of *selection, const struct stg_row *row)
{
	for (uint32_t i = 0; i < selection->range_count; i++) {
		if (row->rank >= selection->ranks[i][0] && row->rank <= selection->ranks[i][1])
			return true;
	}
	return !selection->range_count;
}

/* Returns the share of a bundle in the selected time; a merged one lies at the middle of its last bin. */
static double share_of(const struct selection_of *selection, const struct bundle_rec *rec)
{
	uint64_t from = rec->start_ns, to = rec->end_ns,
		 middle = bundle_rec__bin(rec) * VAPRO_BIN_NS + VAPRO_BIN_NS / 2;

	if (rec->n != 1 || to <= from)
		return middle >= selection->begin_ns && middle < selection->end_ns ? 1 : 0;
	if (from < selection->begin_ns)
		from = selection->begin_ns;
	if (to > selection->end_ns)
		to = selection->end_ns;
	return to > from ? (double)(to - from) / (double)(rec->end_ns - rec->start_ns) : 0;
}

double analysis__share_selected(const struct selection_of *selection, const struct stg_row *row,
				const struct bundle_rec *rec)
{
	return analysis__row_selected(selection, row) ? share_of(selection, rec) : 0;
}

static int add_bundle(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span,
		      const struct stg_job *about, const struct bundle_rec *rec, bool open)
{
	const struct series *series = &context->series.series[rec->series];
	const struct selection_of *selection = &context->selection;
	struct diagnosis_of *item;
	struct contribution *into;
	struct contribution_row row;
	struct series_pile pile;
	bool retiring;
	double share;

	if (!rec->covered || (!open && bundle_rec__bin(rec) >= span->end))
		return 0;
	share = analysis__share_selected(selection, &about->rows[series->row], rec);
	if (share <= 0 && !(analysis__priceable(series) && analysis__normal(context, rec)))
		return 0;
	item = diagnoses__get(&job->chosen, series->class + 1);
	if (!item)
		return -ENOMEM;
	/* bundles of the account are made again in each window */
	retiring =
	    rec->account ? rec->account == BUNDLE_FROM_ACCOUNT_RETIRING : !open && bundle_rec__bin(rec) < span->retire;
	into = diagnoses__part(item, retiring ? CASE_RETIRING : CASE_STAYING);
	if (!into)
		return -ENOMEM;
	pile = analysis__normal_pile(context, rec);
	if (share > 0) {
		contribution__add(into, rec, series->class, share, contribution__abnormal(rec, &context->config), &pile,
				  &context->config);
		if (chosen_sites__add(&job->chosen_sites, series->state, retiring, rec->sum_ns * share,
				      (double)rec->reference * rec->n * share))
			return -ENOMEM;
	}
	if (analysis__priceable(series) && contribution__row(rec, &pile, &row))
		contribution__add_row(into, &row, 1);
	return 0;
}

/* Adds the tasks that ran instead in the time and the rows, whatever ran there. */
static int add_interference(struct analysis_context *context, struct analysis_job *job,
			    const struct analysis_span *span, const struct stg_job *about)
{
	for (size_t i = 0; i < job->interference_count; i++) {
		const struct interference_rec *at = &job->interference[i];
		uint64_t middle = at->bin * VAPRO_BIN_NS + VAPRO_BIN_NS / 2;
		struct result_interferer task;

		if (middle < context->selection.begin_ns || middle >= context->selection.end_ns ||
		    !analysis__row_selected(&context->selection, &about->rows[at->row]))
			continue;
		/* an interference is added once: in the window where it is new */
		if (at->bin < span->begin || at->bin >= span->end)
			continue;
		task = analysis__task(context, at);
		for (size_t k = 0; k < job->chosen.count; k++) {
			if (diagnoses__interfere(job->chosen.items[k], CASE_RETIRING, &task, at->row, at->bin))
				return -ENOMEM;
		}
	}
	return 0;
}

int analysis__diagnose_selection(struct analysis_context *context, struct analysis_job *job,
				 const struct analysis_span *span)
{
	const struct stg_job *about = stg__job(context->stg, job->id);

	if (!context->selection.active)
		return 0;
	chosen_sites__begin(&job->chosen_sites);
	for (size_t i = 0; i < job->rec_count; i++) {
		if (add_bundle(context, job, span, about, &job->recs[i], false))
			return -ENOMEM;
	}
	for (size_t i = 0; i < job->open_count; i++) {
		if (add_bundle(context, job, span, about, &job->open[i], true))
			return -ENOMEM;
	}
	for (size_t i = 0; i < job->account.rec_count; i++) {
		if (add_bundle(context, job, span, about, &job->account.recs[i], false))
			return -ENOMEM;
	}
	if (add_interference(context, job, span, about) || diagnoses__sum(&job->chosen))
		return -ENOMEM;
	for (size_t i = 0; i < job->chosen.count; i++)
		breakdown__make(diagnoses__sum_of(job->chosen.items[i]), &context->config,
				&job->chosen.items[i]->breakdown);
	return 0;
}

/* Lists the call-sites of a class that lost time, most first. 0 or -ENOMEM. */
static int build_sites(const struct builder *builder, struct result_variance *out)
{
	const struct chosen_sites *chosen = &builder->job->chosen_sites;
	struct result_site *sites = result__take(builder, chosen->count, sizeof(*sites));
	size_t count = 0;

	if (!sites)
		return -ENOMEM;
	for (size_t i = 0; i < chosen->count; i++) {
		const struct stg_state *state = stg__state(builder->context->stg, chosen->items[i].state);
		double dur = chosen->items[i].dur[0] + chosen->items[i].dur[1];
		double ref = chosen->items[i].ref[0] + chosen->items[i].ref[1];

		if (state->about.class == out->class && dur > ref)
			sites[count++] =
			    (struct result_site){&state->about, (dur - ref) / 1e9, ref > 0 ? dur / ref : NAN};
	}
	if (count)
		qsort(sites, count, sizeof(*sites), result__compare_sites);
	out->sites = sites;
	out->site_count = (uint32_t)(count < SITES_MAX ? count : SITES_MAX);
	return 0;
}

static int build_selection(const struct builder *builder, const struct diagnosis_of *item, struct result_variance *out)
{
	const struct selection_of *selection = &builder->context->selection;
	const struct stg_job *about = builder->about;
	int32_t *ranks = result__take(builder, about->row_count, sizeof(*ranks));
	uint32_t *rows = result__take(builder, about->row_count, sizeof(*rows));
	size_t row_count = 0;
	const struct contribution *sum;
	char who[128];

	if (!ranks || !rows)
		return -ENOMEM;
	sum = diagnoses__sum_of(item);
	*out = (struct result_variance){
	    .class = (enum vapro_class)(item->id - 1),
	    .state = VAPRO_REGION_CLOSED,
	    .begin_ns = selection->begin_ns,
	    .end_ns = selection->end_ns < builder->span->end_ns ? selection->end_ns : builder->span->end_ns,
	    .ranks = ranks,
	    .performance = sum->dur > 0 ? fmin(1, fmax(0, sum->ref / sum->dur)) : 1,
	    .lost_seconds = fmax(0, sum->dur - sum->ref) / 1e9,
	};
	for (size_t place = 0; place < about->row_count; place++) {
		const struct stg_row *row = &about->rows[about->order[place]];

		if (!analysis__row_selected(selection, row))
			continue;
		rows[row_count++] = about->order[place];
		if (!out->rank_count || ranks[out->rank_count - 1] != row->rank)
			ranks[out->rank_count++] = row->rank;
	}
	advice__who(out, false, who, sizeof(who));
	out->who = arena__copy(&builder->context->arena, who);
	return out->who && !build_sites(builder, out) && !result__inside(builder, rows, row_count, out)
		   ? result__diagnosis(builder, item, rows, row_count, NULL, out)
		   : -ENOMEM;
}

/* Accepts rows that have ended too: the region may be older. */
static bool every_row(const void *arg, uint32_t row)
{
	(void)arg;
	(void)row;
	return true;
}

int result__selections(const struct builder *builder, struct job_result *result)
{
	const struct diagnoses *diagnoses = &builder->job->chosen;
	struct result_variance *selections;
	struct builder all = *builder;
	int error = 0;

	if (!builder->context->selection.active || !builder->span->last)
		return 0;
	selections = result__take(builder, diagnoses->count, sizeof(*selections));
	all.where =
	    where_index__new(&builder->context->places, builder->context->stg, builder->job->id, every_row, NULL);
	if (!selections || !all.where)
		error = -ENOMEM;
	for (size_t i = 0; !error && i < diagnoses->count; i++) {
		/* Observations alone, from other times and ranks, are no region. */
		if (diagnoses__sum_of(diagnoses->items[i])->dur <= 0)
			continue;
		error = build_selection(&all, diagnoses->items[i], &selections[result->selection_count]);
		result->selection_count++;
	}
	where_index__free(all.where);
	result->selections = selections;
	return error;
}
