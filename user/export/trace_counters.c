// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/trace_private.h"
#include "report/json.h"

#define COLUMNS_MOST 50000 /* values of a counter; a longer run has several bins in one */

/* What a counter is made of, for one time. */
struct column {
	double sum, worst;
	uint64_t judged; /* bins of ranks */
};

static void put_value(struct trace *trace, const struct trace_job *job, const char *class, const char *what,
		      uint64_t time_ns, double value)
{
	cJSON *args = cJSON_CreateObject(), *event;
	char name[80];

	if (!args || !json__add_number(args, "value", value, 1))
		trace->out_of_memory = true;
	snprintf(name, sizeof(name), "%s: %s", class, what);
	event = trace__event(trace, "C", name, job->process, job->process, args);
	trace__set_time(trace, event, time_ns, 0);
	trace__put(trace, event);
}

/* Puts a value where it differs from the last one in the digits that are shown. */
static void put_change(struct trace *trace, const struct trace_job *job, const char *class, const char *what,
		       uint64_t time_ns, double value, double *last)
{
	if (round(10 * value) == round(10 * *last))
		return;
	put_value(trace, job, class, what, time_ns, value);
	*last = value;
}

static double shown_pct(double performance, bool waiting)
{
	return 100 * (waiting ? 1 - performance : performance);
}

/*
 * Puts what changes from one column to the next. Where nothing was judged only the number of ranks is known. In
 * communication the rest to full performance is waiting.
 */
static void put_columns(struct trace *trace, const struct trace_job *job, const struct view_map *map,
			const struct column *columns, size_t count, uint64_t step)
{
	bool waiting = !strcmp(map->class, vapro_class_name[VAPRO_COMMUNICATION]);
	double mean = NAN, worst = NAN, judged = NAN;

	for (size_t i = 0; i < count; i++) {
		const struct column *column = &columns[i];
		uint64_t time_ns = (map->first + i * step) * map->bin_ns;

		put_change(trace, job, map->class, "ranks evaluated", time_ns, (double)column->judged / (double)step,
			   &judged);
		if (!column->judged)
			continue;
		put_change(trace, job, map->class, waiting ? "mean waiting, %" : "mean performance, %", time_ns,
			   shown_pct(column->sum / (double)column->judged, waiting), &mean);
		put_change(trace, job, map->class, waiting ? "most waiting, %" : "worst performance, %", time_ns,
			   shown_pct(column->worst, waiting), &worst);
	}
	/* the last value of a counter would last for ever */
	put_value(trace, job, map->class, "ranks evaluated", map->end * map->bin_ns, 0);
}

static int put_class(struct trace *trace, const struct trace_job *job, const struct view_map *map)
{
	size_t bins = (size_t)(map->end - map->first), step = bins / COLUMNS_MOST + 1, count = (bins + step - 1) / step;
	struct column *columns = calloc(count, sizeof(*columns));
	double *values = malloc(bins * sizeof(*values));
	int ret = columns && values ? 0 : -ENOMEM;

	for (size_t row = 0; !ret && row < map->row_count; row++) {
		/* threads are parts of their ranks */
		if (map->rows[row].thread >= 0)
			continue;
		ret = view_model__cells(map, row, row + 1, 1, bins, values);
		for (size_t bin = 0; !ret && bin < bins; bin++) {
			struct column *column = &columns[bin / step];

			if (!isfinite(values[bin]))
				continue;
			if (!column->judged++ || values[bin] < column->worst)
				column->worst = values[bin];
			column->sum += values[bin];
		}
	}
	if (!ret)
		put_columns(trace, job, map, columns, count, step);
	free(columns);
	free(values);
	return ret;
}

int trace__counters(struct trace *trace, const struct trace_job *job)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < job->map_count; i++)
		ret = put_class(trace, job, job->maps[i]);
	return ret;
}
