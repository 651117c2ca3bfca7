/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heat maps of a window as lines: ranks, and threads inside a region (ARCHITECTURE section 7). */
#include "analysis/result.h"

#include <errno.h>
#include <math.h>

void *result__take(const struct builder *builder, size_t count, size_t size)
{
	return arena__take(&builder->context->arena, count * size);
}

bool result__alive(const struct builder *builder, const struct stg_row *row)
{
	return row->from_ns && row->from_ns < builder->span->end_ns &&
	       (!row->to_ns || row->to_ns > builder->span->begin_ns);
}

size_t result__end_of_rank(const struct stg_job *about, size_t place)
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

/* Returns by leader's row whether a variance lies in the rank, whose threads are then shown one by one. */
static unsigned char *find_varied(const struct builder *builder)
{
	const struct variance_book *book = &builder->job->book;
	unsigned char *varied = result__take(builder, builder->about->row_count, 1);

	for (size_t i = 0; varied && i < book->count; i++) {
		const struct variance *variance = &book->variances[i];

		for (size_t j = 0; variance->matched && !variance->over && j < variance->row_count; j++)
			varied[builder->about->rows[variance->rows[j]].leader] = 1;
	}
	return varied;
}

/* Returns the value last emitted for the rank whose rows begin at a place. */
static unsigned char emitted_at(const struct builder *builder, size_t place, enum vapro_class class, uint64_t bin)
{
	return heatmap__emitted(&builder->job->map, builder->about->order[place], bin, class);
}

/* Narrows a rank's bins [*from, *to) to those from the first to the last that differ from the emitted ones. */
static void changed(const struct builder *builder, size_t place, size_t end, enum vapro_class class, uint64_t *from,
		    uint64_t *to)
{
	uint64_t first = *to, history = *from;

	for (uint64_t bin = *from; bin < *to; bin++) {
		unsigned char now = heatmap__hundredths(performance_of(builder, place, end, class, bin));

		if (!heatmap__differs(emitted_at(builder, place, class, bin), now))
			continue;
		history = bin + 1;
		if (first == *to)
			first = bin;
	}
	*from = first;
	*to = history;
}

/* Adds the line of the rows at places [from, to). thread: -1 = the rank. */
static int build_row(const struct builder *builder, struct result_heatmap *out, struct result_row *line, size_t from,
		     size_t to, int32_t thread, bool *valid)
{
	const struct stg_row *row = &builder->about->rows[builder->about->order[from]];
	uint64_t first = out->begin_ns / VAPRO_BIN_NS;
	double *values = result__take(builder, out->bins, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < out->bins; i++) {
		bool present = heatmap__has(&builder->job->map, first + i);

		values[i] = present ? performance_of(builder, from, to, out->class, first + i) : NAN;
		*valid |= !isnan(values[i]);
		if (present && thread < 0 &&
		    heatmap__emit(&builder->job->map, builder->about->order[from], first + i, out->class,
				  heatmap__hundredths(values[i])))
			return -ENOMEM;
	}
	*line = (struct result_row){
	    .rank = row->rank, .thread = thread, .pid = row->pid, .host = row->host, .values = values};
	out->row_count++;
	return 0;
}

/* Whether a rank's line, or its threads', are among those wanted; rows NULL: all that are alive. */
static bool wanted(const struct builder *builder, size_t place, size_t end, const unsigned char *rows)
{
	for (size_t i = place; i < end; i++) {
		uint32_t row = builder->about->order[i];

		if (rows ? rows[row] : result__alive(builder, &builder->about->rows[row]))
			return true;
	}
	return false;
}

/* Narrows bins before the new part to those from the first to the last where a rank among rows has changed. */
static void narrow(const struct builder *builder, enum vapro_class class, const unsigned char *rows, uint64_t *from,
		   uint64_t *to)
{
	uint64_t first = *to, history = *from;

	for (size_t place = 0, end; place < builder->about->row_count; place = end) {
		uint64_t begin = *from, stop = *to;

		end = result__end_of_rank(builder->about, place);
		if (!wanted(builder, place, end, rows))
			continue;
		changed(builder, place, end, class, &begin, &stop);
		first = begin < first ? begin : first;
		history = stop > history ? stop : history;
	}
	*from = first;
	*to = history;
}

/*
 * Builds one heat map of bins [from, to); rows NULL: all ranks alive, else those among rows that changed. The
 * map has a line per rank, and one per thread inside a region. Returns 1 where no cell is valid.
 */
static int build_map(const struct builder *builder, enum vapro_class class, uint64_t from, uint64_t to,
		     const unsigned char *rows, const unsigned char *varied, struct result_heatmap *out)
{
	struct heatmap *map = &builder->job->map;
	const struct stg_job *about = builder->about;
	struct result_row *lines = result__take(builder, 2 * about->row_count, sizeof(*lines));
	bool valid = false;

	if (!lines)
		return -ENOMEM;
	*out = (struct result_heatmap){
	    .class = class, .begin_ns = from * VAPRO_BIN_NS, .bins = (uint32_t)(to - from), .rows = lines};
	for (size_t place = 0, end; place < about->row_count; place = end) {
		uint64_t first = from, history = to;
		bool several;

		end = result__end_of_rank(about, place);
		if (!wanted(builder, place, end, rows))
			continue;
		if (rows)
			changed(builder, place, end, class, &first, &history);
		if (first >= history)
			continue;
		if (build_row(builder, out, &lines[out->row_count], place, end, -1, &valid))
			return -ENOMEM;
		several = end - place > 1 && varied[about->rows[about->order[place]].leader];
		for (size_t i = place; several && i < end; i++) {
			if (build_row(builder, out, &lines[out->row_count], i, i + 1,
				      about->rows[about->order[i]].thread, &valid))
				return -ENOMEM;
		}
	}
	for (uint64_t bin = from; bin < to; bin++) {
		uint32_t emitted = heatmap__bin(map, bin)->emitted[class];

		if (heatmap__has(map, bin) && emitted > out->revision)
			out->revision = emitted;
	}
	if (!valid)
		return 1;
	for (uint64_t bin = from; bin < to; bin++) {
		if (heatmap__has(map, bin))
			heatmap__bin(map, bin)->emitted[class] = out->revision + 1;
	}
	return 0;
}

int result__heatmaps(const struct builder *builder, struct job_result *result)
{
	struct result_heatmap *maps = result__take(builder, 2 * VAPRO_CLASSES, sizeof(*maps));
	const unsigned char *varied = find_varied(builder);
	const struct analysis_span *span = builder->span;
	int error;

	if (!maps || !varied)
		return -ENOMEM;
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		const struct emitted_again *emitted_again = &builder->job->emitted_again[class];
		uint64_t from =
		    emitted_again->from < builder->job->map.begin ? builder->job->map.begin : emitted_again->from;
		uint64_t to = span->begin;

		if (from < to)
			narrow(builder, class, emitted_again->rows, &from, &to);
		if (from < to) {
			error = build_map(builder, class, from, to, emitted_again->rows, varied,
					  &maps[result->heatmap_count]);
			if (error < 0)
				return error;
			result->heatmap_count += !error;
		}
		error = build_map(builder, class, span->begin, span->end, NULL, varied, &maps[result->heatmap_count]);
		if (error < 0)
			return error;
		/* An empty map is left out, but for computation's, which shows that it is watched at all. */
		result->heatmap_count += !error || class == VAPRO_COMPUTATION;
	}
	result->heatmaps = maps;
	return 0;
}

/* Adds the line of what was emitted of a rank in the bins of a map, where there is anything. */
static int add_emitted(const struct builder *builder, size_t place, struct result_heatmap *out,
		       struct result_row *lines)
{
	const struct stg_row *row = &builder->about->rows[builder->about->order[place]];
	uint64_t first = out->begin_ns / VAPRO_BIN_NS;
	double *values = result__take(builder, out->bins, sizeof(*values));
	bool any = false;

	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < out->bins; i++) {
		unsigned char emitted = emitted_at(builder, place, out->class, first + i);

		values[i] = emitted ? (emitted - 1) / 100.0 : NAN;
		any |= emitted > 0;
	}
	if (any)
		lines[out->row_count++] = (struct result_row){
		    .rank = row->rank, .thread = -1, .pid = row->pid, .host = row->host, .values = values};
	return 0;
}

int result__emitted(const struct builder *builder, struct job_result *result)
{
	const struct heatmap *map = &builder->job->map;
	const struct stg_job *about = builder->about;
	struct result_heatmap *maps = result__take(builder, VAPRO_CLASSES, sizeof(*maps));

	*result = (struct job_result){.job = about->name,
				      .user = about->user,
				      .begin_ns = map->begin * VAPRO_BIN_NS,
				      .end_ns = map->end * VAPRO_BIN_NS,
				      .heatmaps = maps};
	for (int class = 0; maps && class < VAPRO_CLASSES; class ++) {
		struct result_row *lines = result__take(builder, about->row_count, sizeof(*lines));
		struct result_heatmap *out = &maps[result->heatmap_count];

		*out = (struct result_heatmap){.class = (enum vapro_class) class,
					       .begin_ns = result->begin_ns,
					       .bins = (uint32_t)(map->end - map->begin),
					       .rows = lines};
		for (size_t place = 0; lines && place < about->row_count; place = result__end_of_rank(about, place)) {
			if (add_emitted(builder, place, out, lines))
				return -ENOMEM;
		}
		if (!lines)
			return -ENOMEM;
		result->heatmap_count += out->row_count > 0;
	}
	return maps ? 0 : -ENOMEM;
}
