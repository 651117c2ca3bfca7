/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heat maps of a window as lines: ranks, and threads inside a region (ARCHITECTURE section 7). */
#include "analysis_result.h"

#include <errno.h>
#include <math.h>

void *builder__take(const struct builder *builder, size_t count, size_t size)
{
	return arena__take(&builder->context->arena, count * size);
}

bool builder__alive(const struct builder *builder, const struct stg_row *row)
{
	return row->from_ns && row->from_ns < builder->span->end_ns &&
	       (!row->to_ns || row->to_ns > builder->span->begin_ns);
}

size_t builder__end_of_rank(const struct stg_job *about, size_t place)
{
	uint32_t leader = about->rows[about->order[place]].leader;

	do
		place++;
	while (place < about->row_count && about->rows[about->order[place]].leader == leader);
	return place;
}

/* Performance of a class in one bin, over the rows at places [from, to). */
static double performance_of(const struct builder *builder, size_t from, size_t to, enum vapro_class class,
			     uint64_t bin)
{
	struct cell sum = {0};

	for (size_t place = from; place < to; place++) {
		struct cell cell = heatmap__cell(&builder->job->map, builder->about->order[place], bin, class);

		sum.closed.dur += (float)cell__dur(&cell);
		sum.closed.ref += (float)(cell__dur(&cell) - cell__lost(&cell));
	}
	return cell__performance(&sum, &builder->context->config);
}

/* A variance lies in these rows: what its threads did is shown one by one. */
static bool in_variance(const struct builder *builder, uint32_t leader)
{
	const struct variance_book *book = &builder->job->book;

	for (size_t i = 0; i < book->count; i++) {
		const struct variance *variance = &book->variances[i];

		for (size_t j = 0; variance->matched && !variance->over && j < variance->row_count; j++) {
			if (builder->about->rows[variance->rows[j]].leader == leader)
				return true;
		}
	}
	return false;
}

/* Adds the line of the rows at places [from, to). thread: -1 = the rank. */
static int build_row(const struct builder *builder, struct result_heatmap *out, struct result_row *line, size_t from,
		     size_t to, int32_t thread, bool *valid)
{
	const struct stg_row *row = &builder->about->rows[builder->about->order[from]];
	uint64_t first = out->begin_ns / VAPRO_BIN_NS;
	double *values = builder__take(builder, out->bins, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < out->bins; i++) {
		values[i] = heatmap__has(&builder->job->map, first + i)
				? performance_of(builder, from, to, out->class, first + i)
				: NAN;
		*valid |= !isnan(values[i]);
	}
	*line = (struct result_row){
	    .rank = row->rank, .thread = thread, .pid = row->pid, .host = row->host, .values = values};
	out->row_count++;
	return 0;
}

/*
 * One heat map of bins [from, to); rows NULL: all that are alive. A line per rank, and one per
 * thread inside a region. Returns 1 where it has no valid cell.
 */
static int build_map(const struct builder *builder, enum vapro_class class, uint64_t from, uint64_t to,
		     const unsigned char *rows, struct result_heatmap *out)
{
	struct heatmap *map = &builder->job->map;
	const struct stg_job *about = builder->about;
	struct result_row *lines = builder__take(builder, 2 * about->row_count, sizeof(*lines));
	bool valid = false;

	if (!lines)
		return -ENOMEM;
	*out = (struct result_heatmap){
	    .class = class, .begin_ns = from * VAPRO_BIN_NS, .bins = (uint32_t)(to - from), .rows = lines};
	for (size_t place = 0, end; place < about->row_count; place = end) {
		bool wanted = false, several;

		end = builder__end_of_rank(about, place);
		for (size_t i = place; i < end && !wanted; i++)
			wanted = rows ? rows[about->order[i]] : builder__alive(builder, &about->rows[about->order[i]]);
		if (!wanted)
			continue;
		if (build_row(builder, out, &lines[out->row_count], place, end, -1, &valid))
			return -ENOMEM;
		several = end - place > 1 && in_variance(builder, about->rows[about->order[place]].leader);
		for (size_t i = place; several && i < end; i++) {
			if (build_row(builder, out, &lines[out->row_count], i, i + 1,
				      about->rows[about->order[i]].thread, &valid))
				return -ENOMEM;
		}
	}
	for (uint64_t bin = from; bin < to; bin++) {
		uint32_t told = heatmap__bin(map, bin)->told[class];

		if (heatmap__has(map, bin) && told > out->revision)
			out->revision = told;
	}
	if (!valid)
		return 1;
	for (uint64_t bin = from; bin < to; bin++) {
		if (heatmap__has(map, bin))
			heatmap__bin(map, bin)->told[class] = out->revision + 1;
	}
	return 0;
}

int builder__heatmaps(const struct builder *builder, struct job_result *result)
{
	struct result_heatmap *maps = builder__take(builder, 2 * VAPRO_CLASSES, sizeof(*maps));
	const struct analysis_span *span = builder->span;
	int error;

	if (!maps)
		return -ENOMEM;
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		const struct retold *retold = &builder->job->retold[class];
		uint64_t from = retold->from < builder->job->map.begin ? builder->job->map.begin : retold->from;

		if (from < span->begin) {
			error =
			    build_map(builder, class, from, span->begin, retold->rows, &maps[result->heatmap_count]);
			if (error < 0)
				return error;
			result->heatmap_count += !error;
		}
		error = build_map(builder, class, span->begin, span->end, NULL, &maps[result->heatmap_count]);
		if (error < 0)
			return error;
		/* An empty map says nothing, but that computation is watched at all should be seen. */
		result->heatmap_count += !error || class == VAPRO_COMPUTATION;
	}
	result->heatmaps = maps;
	return 0;
}
