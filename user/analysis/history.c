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

int past__add(struct analysis_context *context, struct past *past, const struct bundle_rec *rec)
{
	bool room = context->remember_bins &&
		    !reserve(&past->recs, &past->rec_capacity, past->rec_count + 1, sizeof(*past->recs));

	if (room)
		past->recs[past->rec_count++] = *rec;
	else
		series__drop(&context->series, rec);
	return room || !context->remember_bins ? 0 : -ENOMEM;
}

int past__add_interference(const struct analysis_context *context, struct past *past,
			   const struct interference_rec *interference)
{
	if (!context->remember_bins)
		return 0;
	if (reserve(&past->interference, &past->interference_capacity, past->interference_count + 1,
		    sizeof(*past->interference)))
		return -ENOMEM;
	past->interference[past->interference_count++] = *interference;
	return 0;
}

static void drop(struct analysis_context *context, const struct bundle_rec *rec, size_t count)
{
	for (size_t i = 0; i < count; i++)
		series__drop(&context->series, &rec[i]);
}

static void drop_open(struct analysis_context *context, struct past *past)
{
	drop(context, past->open, past->open_count);
	past->open_count = 0;
}

int past__hold_open(struct analysis_context *context, struct analysis_job *job)
{
	struct past *past = &job->past;
	size_t count = job->open_count;

	drop_open(context, past);
	job->open_count = 0;
	if (context->remember_bins && !reserve(&past->open, &past->open_capacity, count, sizeof(*past->open))) {
		if (count)
			memcpy(past->open, job->open, count * sizeof(*past->open));
		past->open_count = count;
		return 0;
	}
	drop(context, job->open, count);
	return context->remember_bins ? -ENOMEM : 0;
}

int past__add_all(struct analysis_context *context, struct analysis_job *job)
{
	int error = 0;

	for (size_t i = 0; i < job->rec_count; i++)
		error |= past__add(context, &job->past, &job->recs[i]);
	job->rec_count = 0;
	for (size_t i = 0; i < job->interference_count; i++)
		error |= past__add_interference(context, &job->past, &job->interference[i]);
	drop(context, job->open, job->open_count);
	job->open_count = 0;
	drop_open(context, &job->past);
	return error ? -ENOMEM : 0;
}

static void cut(struct analysis_context *context, struct past *past, uint64_t from)
{
	size_t live = 0;

	for (size_t i = 0; i < past->rec_count; i++) {
		if (bundle_rec__bin(&past->recs[i]) >= from)
			past->recs[live++] = past->recs[i];
		else
			series__drop(&context->series, &past->recs[i]);
	}
	past->rec_count = live;
	live = 0;
	for (size_t i = 0; i < past->interference_count; i++) {
		if (past->interference[i].bin >= from)
			past->interference[live++] = past->interference[i];
	}
	past->interference_count = live;
	give_back(&past->recs, &past->rec_capacity, past->rec_count, sizeof(*past->recs));
	give_back(&past->interference, &past->interference_capacity, past->interference_count,
		  sizeof(*past->interference));
	if (from > past->from)
		past->from = from;
}

void past__trim(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span)
{
	uint64_t oldest = span->end > context->remember_bins ? span->end - context->remember_bins : 0;

	cut(context, &job->past, oldest < span->retire ? oldest : span->retire);
}

size_t past__forget(struct analysis_context *context, struct past *past)
{
	size_t count = past->rec_count;
	uint64_t latest = past->from;

	for (size_t i = 0; i < count; i++) {
		uint64_t after = bundle_rec__bin(&past->recs[i]) + 1;

		latest = after > latest ? after : latest;
	}
	cut(context, past, latest);
	return count;
}

static uint64_t bytes_of(const struct past *past)
{
	uint64_t bytes = past->rec_count * sizeof(*past->recs) + past->open_count * sizeof(*past->open) +
			 past->interference_count * sizeof(*past->interference);

	for (size_t i = 0; i < past->rec_count; i++)
		bytes +=
		    past->recs[i].factor == bundle_rec_no_factors ? 0 : VAPRO_FACTORS * sizeof(*past->recs[i].factor);
	return bytes;
}

void past__bound(struct analysis_context *context, struct analysis_job *jobs, size_t count, uint64_t end)
{
	uint64_t bins = context->remember_bins;

	while (bins) {
		uint64_t bytes = 0;

		for (size_t i = 0; i < count; i++)
			bytes += bytes_of(&jobs[i].past);
		if (bytes <= context->remember_bytes)
			return;
		bins = (uint64_t)((double)bins * SHRINK * (double)context->remember_bytes / (double)bytes);
		for (size_t i = 0; i < count; i++)
			cut(context, &jobs[i].past, end > bins ? end - bins : 0);
	}
}

void past__clear(struct analysis_context *context, struct past *past)
{
	drop(context, past->recs, past->rec_count);
	drop_open(context, past);
	free(past->recs);
	free(past->open);
	free(past->interference);
	*past = (struct past){0};
}
