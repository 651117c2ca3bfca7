/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The variability of a job's workloads, which is emitted when the job, or all input, is over. */
#include "analysis/result.h"

#include <errno.h>
#include <string.h>

int analysis__vary(struct analysis_context *context, const struct analysis_job *job)
{
	int error = 0;

	for (size_t i = 0; !error && !job->variability_known && i < job->rec_count; i++)
		error = variability__add(&context->series, &job->recs[i], bundle_rec__bin(&job->recs[i]));
	return error;
}

/* Copies a workload into the arena, with the facts that its slow ranks share. Returns 0 or -ENOMEM. */
static int build(const struct builder *builder, const struct variability_item *item, struct result_variability *out)
{
	int32_t *ranks = result__take(builder, item->about.slow_count + 1, sizeof(*ranks));
	struct result_durations *durations = result__take(builder, item->about.duration_count + 1, sizeof(*durations));

	if (!ranks || !durations)
		return -ENOMEM;
	*out = item->about;
	memcpy(durations, item->about.durations, item->about.duration_count * sizeof(*durations));
	out->durations = durations;
	if (item->about.slow_count)
		memcpy(ranks, item->about.slow_ranks, item->about.slow_count * sizeof(*ranks));
	out->slow_ranks = ranks;
	return item->slow_row_count
		   ? result__shared(builder, item->slow_rows, item->slow_row_count, &out->shared, &out->shared_count)
		   : 0;
}

static bool every_row(const void *arg, uint32_t row)
{
	(void)arg;
	(void)row;
	return true;
}

/* Builds the list of workloads. Returns 0 or -ENOMEM. */
static int build_all(const struct builder *builder, const struct variability *variability, struct job_result *result)
{
	struct builder own = *builder;
	struct result_variability *list = result__take(builder, variability->count + 1, sizeof(*list));
	int error = list ? 0 : -ENOMEM;

	/* ranks that have ended count, too */
	own.where =
	    where_index__new(&builder->context->places, builder->context->stg, builder->job->id, every_row, NULL);
	if (!own.where)
		error = -ENOMEM;
	for (size_t i = 0; !error && i < variability->count; i++)
		error = build(&own, &variability->items[i], &list[i]);
	where_index__free(own.where);
	result->variability = list;
	result->variability_count = error ? 0 : (uint32_t)variability->count;
	return error;
}

int result__variability(const struct builder *builder, struct job_result *result)
{
	struct analysis_job *job = builder->job;
	struct analysis_context *context = builder->context;
	struct variability variability = {.count = 0};
	int error;

	if (job->variability_known ||
	    (!builder->span->last && !stg__job_over(context->stg, job->id, builder->span->end_ns)))
		return 0;
	error = analysis__vary(context, job);
	job->variability_known = true;
	if (!error)
		error = variability__find(&variability, &context->series, context->stg, job->id);
	if (!error && variability.count)
		error = build_all(builder, &variability, result);
	variability__clear(&variability);
	return error;
}
