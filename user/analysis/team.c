// SPDX-License-Identifier: GPL-2.0-or-later
/* Variances and the threads of a process: which of them are in it, and what is known of the others. */
#include "analysis/result.h"

#define BUSY 0.5 /* share of its time on a CPU from which a thread works */

bool result__several_rows(const struct stg_job *about, const struct stg_row *row)
{
	size_t place = about->place[row->leader];

	return result__end_of_rank(about, place) - place > 1;
}

/* Whether anything of a row was judged while a variance lasted: MPI's own threads make a call now and then at most. */
static bool was_judged(const struct builder *builder, const struct variance *variance, uint32_t row)
{
	const struct heatmap *map = &builder->job->map;

	for (uint64_t bin = variance->begin; bin < variance->end; bin++) {
		for (int class = 0; class < VAPRO_CLASSES && heatmap__has(map, bin); class ++) {
			struct cell cell = heatmap__cell(map, row, bin, (enum vapro_class) class);

			if (cell__dur(&cell) > 0)
				return true;
		}
	}
	return false;
}

static bool is_among(const uint32_t *rows, size_t count, uint32_t row)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i] == row)
			return true;
	return false;
}

bool result__split_up(const struct builder *builder, const struct variance *variance)
{
	const struct stg_job *about = builder->about;

	for (size_t i = 0, end; i < variance->row_count; i = end) {
		size_t first = about->place[about->rows[variance->rows[i]].leader];

		for (end = i; end < variance->row_count &&
			      about->rows[variance->rows[end]].leader == about->rows[variance->rows[i]].leader;)
			end++;
		if (result__end_of_rank(about, first) - first <= end - i)
			continue;
		for (size_t place = first; place < result__end_of_rank(about, first); place++) {
			uint32_t row = about->order[place];

			if (!is_among(variance->rows + i, end - i, row) && was_judged(builder, variance, row))
				return true;
		}
	}
	return false;
}

/* Whether a thread of a row, other than the first of its process, is on a CPU for most of its time. */
static bool works(const struct builder *builder, const struct variance *variance, uint32_t row)
{
	const struct stg *stg = builder->context->stg;
	uint32_t next = builder->about->rows[row].first;

	while (next) {
		const struct stg_thread *thread = stg__thread(stg, next - 1);

		if (thread->about.thread && stg__work_share(stg, next - 1, variance->end) >= BUSY)
			return true;
		next = thread->next;
	}
	return false;
}

bool result__team_unseen(const struct builder *builder, const struct variance *variance)
{
	const struct stg_job *about = builder->about;
	uint32_t leader;
	size_t first;

	if (variance->class != VAPRO_COMPUTATION || !variance->row_count)
		return false;
	leader = about->rows[variance->rows[0]].leader;
	first = about->place[leader];
	if (works(builder, variance, leader)) /* threads without a row of their own have no fragment at all */
		return true;
	for (size_t place = first; place < result__end_of_rank(about, first); place++) {
		uint32_t row = about->order[place];

		if (row != leader && !is_among(variance->rows, variance->row_count, row) &&
		    works(builder, variance, row) && !was_judged(builder, variance, row))
			return true;
	}
	return false;
}
