/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/history.h"

#include "base/grow.h"

#define SHRINK 0.8 /* share of what would just fit: bundles are not spread evenly over time */
#define SPARE 8	   /* spare room is 1/SPARE of the elements: arrays that double would cost twice the bound */

static int resize(void *items, size_t *capacity, size_t count, size_t size)
{
	void *old, *new;

	memcpy(&old, items, sizeof(old));
	new = realloc(old, (count + !count) * size);
	if (!new)
		return -ENOMEM;
	memcpy(items, &new, sizeof(new));
	*capacity = count;
	return 0;
}

/* Makes room as grow() does, but without doubling. */
static int reserve(void *items, size_t *capacity, size_t need, size_t size)
{
	return need <= *capacity ? 0 : resize(items, capacity, need + need / SPARE + SPARE, size);
}

/* Frees room that is no longer needed; where that fails, the room stays. */
static void give_back(void *items, size_t *capacity, size_t count, size_t size)
{
	if (*capacity > count + 2 * (count / SPARE) + SPARE)
		(void)resize(items, capacity, count, size);
}

int history__hold(struct analysis_context *context, struct history *history, const struct bundle_rec *rec)
{
	if (reserve(&history->recs, &history->rec_capacity, history->rec_count + 1, sizeof(*history->recs))) {
		series__drop(&context->series, rec);
		return -ENOMEM;
	}
	history->recs[history->rec_count++] = *rec;
	return 0;
}

int history__add_interference(const struct analysis_context *context, struct history *history,
			      const struct interference_rec *interference)
{
	if (!context->remember_bins)
		return 0;
	if (reserve(&history->interference, &history->interference_capacity, history->interference_count + 1,
		    sizeof(*history->interference)))
		return -ENOMEM;
	history->interference[history->interference_count] = *interference;
	/* the number of a job that is over is given again */
	history->interference[history->interference_count++].other_job = STG_NONE;
	return 0;
}

static void drop(struct analysis_context *context, const struct bundle_rec *rec, size_t count)
{
	for (size_t i = 0; i < count; i++)
		series__drop(&context->series, &rec[i]);
}

static void drop_open(struct analysis_context *context, struct history *history)
{
	drop(context, history->open, history->open_count);
	history->open_count = 0;
}

int history__hold_open(struct analysis_context *context, struct analysis_job *job)
{
	struct history *history = &job->history;
	size_t count = job->open_count;

	drop_open(context, history);
	job->open_count = 0;
	if (context->remember_bins &&
	    !reserve(&history->open, &history->open_capacity, count, sizeof(*history->open))) {
		if (count)
			memcpy(history->open, job->open, count * sizeof(*history->open));
		history->open_count = count;
		return 0;
	}
	drop(context, job->open, count);
	return context->remember_bins ? -ENOMEM : 0;
}

int history__add_all(struct analysis_context *context, struct analysis_job *job)
{
	int error = 0;

	for (size_t i = 0; i < job->rec_count; i++)
		error |= history__add(context, &job->history, &job->recs[i]);
	job->rec_count = 0;
	for (size_t i = 0; i < job->interference_count; i++)
		error |= history__add_interference(context, &job->history, &job->interference[i]);
	drop(context, job->open, job->open_count);
	job->open_count = 0;
	drop_open(context, &job->history);
	return error ? -ENOMEM : 0;
}

static void cut(struct analysis_context *context, struct history *history, uint64_t from)
{
	size_t live = 0;

	for (size_t i = 0; i < history->rec_count; i++) {
		if (bundle_rec__bin(&history->recs[i]) >= from)
			history->recs[live++] = history->recs[i];
		else
			series__drop(&context->series, &history->recs[i]);
	}
	history->rec_count = live;
	live = 0;
	for (size_t i = 0; i < history->interference_count; i++) {
		if (history->interference[i].bin >= from)
			history->interference[live++] = history->interference[i];
	}
	history->interference_count = live;
	give_back(&history->recs, &history->rec_capacity, history->rec_count, sizeof(*history->recs));
	give_back(&history->interference, &history->interference_capacity, history->interference_count,
		  sizeof(*history->interference));
	if (from > history->from)
		history->from = from;
}

void history__trim(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span)
{
	uint64_t oldest = span->end > context->remember_bins ? span->end - context->remember_bins : 0;

	cut(context, &job->history, oldest < span->retire ? oldest : span->retire);
}

size_t history__forget(struct analysis_context *context, struct history *history)
{
	size_t count = history->rec_count;
	uint64_t latest = history->from;

	for (size_t i = 0; i < count; i++) {
		uint64_t after = bundle_rec__bin(&history->recs[i]) + 1;

		latest = after > latest ? after : latest;
	}
	cut(context, history, latest);
	return count;
}

static uint64_t bytes_of(const struct history *history)
{
	uint64_t bytes = history->rec_count * sizeof(*history->recs) + history->open_count * sizeof(*history->open) +
			 history->interference_count * sizeof(*history->interference);

	for (size_t i = 0; i < history->rec_count; i++)
		bytes += history->recs[i].factor == bundle_rec_no_factors
			     ? 0
			     : VAPRO_FACTORS * sizeof(*history->recs[i].factor);
	return bytes;
}

void history__bound(struct analysis_context *context, struct analysis_job *jobs, size_t count, uint64_t end)
{
	uint64_t bins = context->remember_bins;

	while (bins) {
		uint64_t bytes = 0;

		for (size_t i = 0; i < count; i++)
			bytes += bytes_of(&jobs[i].history);
		if (bytes <= context->remember_bytes)
			return;
		bins = (uint64_t)((double)bins * SHRINK * (double)context->remember_bytes / (double)bytes);
		for (size_t i = 0; i < count; i++)
			cut(context, &jobs[i].history, end > bins ? end - bins : 0);
	}
}

void history__clear(struct analysis_context *context, struct history *history)
{
	drop(context, history->recs, history->rec_count);
	drop_open(context, history);
	free(history->recs);
	free(history->open);
	free(history->interference);
	*history = (struct history){0};
}
