// SPDX-License-Identifier: GPL-2.0-or-later
/* What histories take over from bundles: before a window is judged, and when its bundles are dropped. */
#include "analysis/diagnose.h"
#include "analysis/history.h"
#include "analysis/window_private.h"
#include "model/groups.h"
#include "model/job_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool any_alarm(const struct variance_book *book)
{
	for (size_t i = 0; i < book->count; i++) {
		if (book->variances[i].alarm || book->variances[i].effect_of)
			return true;
	}
	return false;
}

/* Whether an alarm, or another variance's effect, owned a bundle's time when the last window ended. */
static bool disturbed(const struct analysis_job *job, const struct series *series, const struct bundle_rec *rec,
		      uint64_t last)
{
	uint64_t bins[] = {last, rec->n == 1 ? bundle_rec__first_bin(rec) : last};

	for (int i = 0; i < 1 + (bins[1] != last); i++) {
		enum vapro_class owned[] = {series->class, HEATMAP_TRANSFERS};

		for (int k = 0; heatmap__has(&job->map, bins[i]) && k < 1 + (series->class == VAPRO_COMMUNICATION);
		     k++) {
			uint32_t owner = heatmap__owner(&job->map, series->row, bins[i], owned[k]);
			const struct variance *variance = owner ? variance__find(&job->book, owner) : NULL;

			if (variance && (variance->alarm || variance->effect_of))
				return true;
		}
	}
	return false;
}

/* Makes the job's histories forget what they know of the view. */
static void begin_view(struct series_book *book, struct series_ids ids)
{
	for (size_t i = 0; i < ids.count; i++) {
		struct series *series = &book->series[ids.ids[i]];

		series->view_n = series->view_bundles = series->view_squares = 0;
		memset(series->third_n, 0, sizeof(series->third_n));
		memset(series->third_ns, 0, sizeof(series->third_ns));
		if (!series->batches_live.count)
			continue;
		batches__empty(&series->batches_live);
		book->workloads[series->workload].dirty = true;
	}
}

/* Sets the first bins of the second and of the last third of the bins [view, end). */
static void set_thirds(uint64_t view, uint64_t end, uint64_t begins[static SERIES_THIRDS - 1])
{
	uint64_t all = end - view, rest = all % SERIES_THIRDS;

	for (uint64_t third = 1; third < SERIES_THIRDS; third++)
		begins[third - 1] =
		    view + all / SERIES_THIRDS * third + (rest * third + SERIES_THIRDS - 1) / SERIES_THIRDS;
}

/*
 * Returns the part of a computation in the bins [view, end). Where fragments are long, a whole one that only ends or
 * begins in the view would make a rank that computes more or less than others.
 */
static double computed_in(const struct bundle_rec *rec, uint64_t view, uint64_t end)
{
	uint64_t from = view * VAPRO_BIN_NS, to = end * VAPRO_BIN_NS;

	if (rec->n != 1)
		return rec->end_ns > from && rec->end_ns <= to ? rec->sum_ns : 0;
	from = rec->start_ns > from ? rec->start_ns : from;
	to = rec->end_ns < to ? rec->end_ns : to;
	return to > from ? (double)(to - from) : 0;
}

static void add_to_view(struct series *series, const struct bundle_rec *rec, int third)
{
	double ns = series__compared_ns(series->class, rec);

	series->third_n[third] += bundle_rec__units(rec);
	series->third_ns[third] += ns;
	series->view_bundles++;
	series->view_squares += ns * ns / bundle_rec__units(rec);
}

/* Sums over a view, by row. */
struct view_sums {
	double *computing, *calls; /* time of computation, and calls */
	double *on_cpu, *saved;	   /* see stg__set_speed */
	double all, weighted;	   /* of all rows: time of computation, and times the length of its fragments */
};

/* Makes room for the sums of rows; computing is to be freed. Returns 0 or -ENOMEM. */
static int begin_sums(struct view_sums *sums, size_t rows)
{
	*sums = (struct view_sums){.computing = calloc(4 * (rows + 1), sizeof(*sums->computing))};
	if (!sums->computing)
		return -ENOMEM;
	sums->calls = sums->computing + rows + 1;
	sums->on_cpu = sums->calls + rows + 1;
	sums->saved = sums->on_cpu + rows + 1;
	return 0;
}

static void add_computation(struct view_sums *sums, const struct bundle_rec *rec, uint32_t row)
{
	sums->all += rec->sum_ns;
	sums->weighted += rec->sum_ns * rec->sum_ns / rec->n;
	sums->on_cpu[row] += bundle_rec__on_cpu(rec);
	sums->saved[row] += rec->factor[VAPRO_FREQUENCY];
}

int analysis_window__learn(struct analysis_context *context, struct analysis_job *job, uint64_t view, uint64_t end)
{
	const struct stg_job *about = stg__job(context->stg, job->id);
	struct series_ids ids = job_series__ids(&context->series, job->id);
	struct series *series = context->series.series;
	bool alarms = any_alarm(&job->book);
	uint64_t thirds[SERIES_THIRDS - 1];
	struct view_sums sums;
	int error = begin_sums(&sums, about->row_count);

	set_thirds(view, end, thirds);
	begin_view(&context->series, ids);
	for (size_t i = 0; !error && i < job->rec_count; i++) {
		struct bundle_rec *rec = &job->recs[i];
		struct series *at = &series[rec->series];
		uint64_t bin = bundle_rec__bin(rec);

		series__fetch(series, job->recs, i, job->rec_count, offsetof(struct series, batches),
			      offsetof(struct series, window_ns));
		series__fetch_batches(series, job->recs, i, job->rec_count, offsetof(struct series, batches_live));
		if (at->class == VAPRO_COMPUTATION)
			sums.computing[at->row] += computed_in(rec, view, end);
		else if (at->class == VAPRO_COMMUNICATION && bin >= view && bin < end)
			sums.calls[at->row] += rec->n;
		if (bin >= end)
			continue;
		rec->ratio = groups__ratio(at, rec);
		rec->disturbed = rec->waited_ns > 0 || (alarms && disturbed(job, at, rec, bin));
		/* A verdict can rest on a bundle that is held for a verdict; the view excludes such a bundle. */
		if (series__learns(at, rec, rec->disturbed))
			error = series__learn(&context->series, rec, bin, true);
		if (rec->retained)
			continue;
		if (at->class == VAPRO_COMPUTATION)
			add_computation(&sums, rec, at->row);
		at->view_n += rec->n;
		if (bin >= view && !rec->warm_up)
			add_to_view(at, rec, (bin >= thirds[0]) + (bin >= thirds[1]));
	}
	for (size_t i = 0; !error && i < ids.count; i++)
		error = batches__close(&series[ids.ids[i]].batches_live);
	for (size_t i = 0; !error && i < job->open_count; i++) {
		if (series[job->open[i].series].class == VAPRO_COMPUTATION)
			sums.computing[series[job->open[i].series].row] += computed_in(&job->open[i], view, end);
	}
	job->map.fragment_ns = sums.all > 0 ? sums.weighted / sums.all : 0;
	if (!error)
		error = stg__set_computing(context->stg, job->id, sums.computing, sums.calls);
	if (!error)
		error = stg__set_speed(context->stg, job->id, sums.on_cpu, sums.saved);
	free(sums.computing);
	return error;
}

static bool lives(void *arg, uint32_t id)
{
	return variance__find(arg, id) != NULL;
}

static bool always(void *arg, uint32_t id)
{
	(void)arg;
	(void)id;
	return true;
}

int analysis_window__retire(struct analysis_context *context, struct analysis_job *job,
			    const struct analysis_span *span)
{
	bool alarms = any_alarm(&job->book);
	size_t live = 0;
	int error = 0;

	for (size_t i = 0; i < job->rec_count; i++) {
		struct bundle_rec *at = &job->recs[i];
		struct series *series = &context->series.series[at->series];
		uint64_t bin = bundle_rec__bin(at);

		if (bin < span->retire) {
			fetch_sums(context->series.series, job->recs, i, job->rec_count, offsetof(struct series, usual),
				   offsetof(struct series, normal));
			series__fetch_batches(context->series.series, job->recs, i, job->rec_count,
					      offsetof(struct series, batches));
			series__fetch_variation(context->series.series, job->recs, i, job->rec_count);
		}
		if (bin < span->end)
			at->is_new = 0;
		if (bin >= span->retire) {
			job->recs[live++] = *at;
			continue;
		}
		/* Few fragments cost little to hold, and slow iterations deserve a verdict on their beginning too. */
		if (!at->covered && at->reason == VAPRO_FEW_FRAGMENTS && bundle_rec__first_bin(at) >= job->map.begin) {
			at->retained = 1;
			job->recs[live++] = *at;
			continue;
		}
		at->disturbed = at->waited_ns > 0 || (alarms && disturbed(job, series, at, bin));
		if (analysis__normal(context, at))
			add_pile(&series->normal, at);
		if (series__learns(series, at, at->disturbed)) {
			error |= series__learn(&context->series, at, bin, false);
			if (at->covered && !at->attributed_only)
				series__add_usual(&series->usual, series->class, at);
		}
		series->disturbed_n += at->disturbed ? at->n : 0;
		account__carry_past(&job->account, &context->series, at);
		if (!job->variability_known)
			error |= variability__add(&context->series, at, bin);
		error |= history__add(context, &job->history, at);
	}
	job->rec_count = live;
	live = 0;
	for (size_t i = 0; i < job->interference_count; i++) {
		/* No variance owns it yet: the fragments that it disturbed may still be held. */
		if (!job->interference[i].counted && job->interference[i].bin >= job->map.begin)
			job->interference[live++] = job->interference[i];
		else
			error |= history__add_interference(context, &job->history, &job->interference[i]);
	}
	job->interference_count = live;
	error |= history__hold_open(context, job);
	history__trim(context, job, span);
	account__retire(&job->account, account__retire_bin(&job->map, span->end));
	/* The next judgement counts what stayed again: the live piles start from zero there. */
	job->facts = (struct coverage_facts){0};
	job->bundles = job->fragments = 0;
	job->active = false;
	if (error || variance__retire(&job->book, &job->map))
		return -ENOMEM;
	return diagnoses__retire(&job->diagnoses, lives, &job->book) || diagnoses__retire(&job->chosen, always, NULL)
		   ? -ENOMEM
		   : 0;
}
