// SPDX-License-Identifier: GPL-2.0-or-later
/* The profiles of a job's ranks, which are emitted when the job, or all input, is over. */
#include "analysis/result.h"

#include <errno.h>
#include <string.h>

/* Builds the profile of the rank whose first thread has a row. Returns 0 or -ENOMEM. */
static int build(const struct builder *builder, uint32_t row, struct result_rank_profile *out)
{
	struct result_profile_part parts[PROFILE_FUNCTIONS + VAPRO_CLASSES], *copy;
	const struct stg_row *about = &builder->about->rows[row];
	double wall_ns;

	*out = (struct result_rank_profile){.rank = about->rank, .pid = about->pid, .host = about->host};
	out->part_count = rank_profile__of(builder->job->profile, row, parts, &wall_ns);
	out->seconds = wall_ns / 1e9;
	copy = result__take(builder, out->part_count + 1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, parts, out->part_count * sizeof(*copy));
	out->parts = copy;
	return 0;
}

/* Whether the profiles are complete, and were not emitted yet. */
static bool is_due(const struct builder *builder)
{
	const struct analysis_job *job = builder->job;

	return !job->variability_known && job->profile &&
	       (builder->span->last || stg__job_over(builder->context->stg, job->id, builder->span->end_ns));
}

int result__profiles(const struct builder *builder, struct job_result *result)
{
	const struct stg_job *about = builder->about;
	struct result_rank_profile *list;
	int error = 0;

	if (!is_due(builder))
		return 0;
	list = result__take(builder, about->row_count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t place = 0; !error && place < about->row_count; place++) {
		uint32_t row = about->order[place];

		if (about->rows[row].leader != row)
			continue;
		error = build(builder, row, &list[result->profile_count]);
		/* a process that was announced, and of which nothing was seen */
		if (list[result->profile_count].seconds > 0 || list[result->profile_count].part_count)
			result->profile_count++;
	}
	result->profiles = list;
	return error;
}
