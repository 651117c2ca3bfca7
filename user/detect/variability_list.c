/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workloads of a job whose time was observed: which bundles and histories count, and the ranks that are slow. */
#include "detect/variability.h"

#include "base/grow.h"
#include "model/job_series.h"
#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A history of the job, in the order of workloads and rows. */
struct source {
	uint32_t workload, row, series;
};

/* A workload's rows: sums of their histories. */
struct rows {
	struct variation *items;
	const struct variation **list;
	uint32_t *row;
	size_t count;
};

static int compare_sources(const void *a, const void *b)
{
	const struct source *left = a, *right = b;

	if (left->workload != right->workload)
		return left->workload < right->workload ? -1 : 1;
	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->series > right->series) - (left->series < right->series);
}

static void set_parts(const struct bundle_rec *rec, bool counted, double part[static VARIATION_PARTS])
{
	part[VARIATION_SOFTWARE] = bundle_rec__cpu_attributed(rec) / rec->ratio;
	part[VARIATION_FREQUENCY] = rec->factor[VAPRO_FREQUENCY] / rec->ratio;
	part[VARIATION_STALLS] = counted ? ((double)rec->factor[VAPRO_FRONTEND] + rec->factor[VAPRO_BAD_SPECULATION] +
					    rec->factor[VAPRO_BACKEND]) /
					       rec->ratio
					 : 0;
}

int variability__add(struct series_book *book, const struct bundle_rec *rec, uint64_t bin)
{
	struct series *series = &book->series[rec->series];
	struct variation_bundle bundle = {.bin = bin, .n = rec->n, .time_ns = rec->sum_ns};
	double part[VARIATION_PARTS];

	if (series->class == VAPRO_COMMUNICATION || rec->warm_up || rec->flags & VAPRO_BUNDLE_OPEN)
		return 0;
	if (!series->variation) {
		if (series->members < LEAST_MEMBERS)
			return 0;
		series->variation = calloc(1, sizeof(*series->variation));
		if (!series->variation)
			return -ENOMEM;
		series->varied = true;
	}
	bundle.ns = rec->sum_ns / rec->ratio;
	if (rec->factor != bundle_rec_no_factors) {
		bundle.counted = rec->counted & 1U << COUNTER_TOP;
		set_parts(rec, bundle.counted, part);
		bundle.part = part;
	}
	return variation__add(series->variation, &bundle);
}

/* Whether the time of a history is that of its own work: the other end of a pipe, or other ranks, decide no part of it.
 */
static bool is_own(const struct series_book *book, const struct stg *stg, const struct series *series)
{
	const struct stg_state *state;

	if (!series->variation || book->workloads[series->workload].mixed)
		return false;
	state = stg__state(stg, series->state);
	return series->class != VAPRO_IO || !(state->peer || state->no_return || strstr(state->about.labels, "_all"));
}

/* Fills the histories of a job in the order of workloads and rows. Returns their number, or SIZE_MAX. */
static size_t find_sources(const struct series_book *book, const struct stg *stg, uint32_t job, struct source **sources)
{
	struct series_ids ids = job_series__ids(book, job);
	size_t count = 0;

	*sources = calloc(ids.count + 1, sizeof(**sources));
	if (!*sources)
		return SIZE_MAX;
	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &book->series[ids.ids[i]];

		if (is_own(book, stg, series))
			(*sources)[count++] = (struct source){series->workload, series->row, ids.ids[i]};
	}
	qsort(*sources, count, sizeof(**sources), compare_sources);
	return count;
}

/* Sums the histories of each row; sources: of one workload. Returns 0 or -ENOMEM; to be cleared in either case. */
static int sum_rows(struct rows *rows, const struct series_book *book, const struct source *sources, size_t count)
{
	rows->items = calloc(count, sizeof(*rows->items));
	rows->list = calloc(count, sizeof(*rows->list));
	rows->row = calloc(count, sizeof(*rows->row));
	if (!rows->items || !rows->list || !rows->row)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!rows->count || rows->row[rows->count - 1] != sources[i].row) {
			rows->list[rows->count] = &rows->items[rows->count];
			rows->row[rows->count++] = sources[i].row;
		}
		if (variation__merge(&rows->items[rows->count - 1], book->series[sources[i].series].variation))
			return -ENOMEM;
	}
	return 0;
}

static void clear_rows(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		variation__clear(&rows->items[i]);
	free(rows->items);
	free(rows->list);
	free(rows->row);
}

static enum vapro_variability_work work_of(const struct series_book *book, const struct source *sources, size_t count)
{
	const struct workload *workload = &book->workloads[sources->workload];
	bool sized = false;

	for (int i = 0; i < VAPRO_MAGNITUDES; i++)
		sized |= workload->seed[i] > 0;
	if (sized || workload->class == VAPRO_IO)
		return VAPRO_WORK_COUNTED;
	for (size_t i = 0; i < count; i++) {
		if (!book->series[sources[i].series].certified)
			return VAPRO_WORK_UNKNOWN;
	}
	return VAPRO_WORK_REPEATED;
}

/* Returns the place of a row of the job, or the number of rows where it is none of them. */
static size_t place_of(const struct rows *rows, uint32_t row)
{
	size_t low = 0, high = rows->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows->row[middle] < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rows->count && rows->row[low] == row ? low : rows->count;
}

/* Names the rows that are about as slow as the slowest, where the rows differ. Returns 0 or -ENOMEM. */
static int find_slow(struct variability_item *item, const struct rows *rows, const struct stg_job *job)
{
	const struct variability_figures *figures = &item->about.figures;
	double slowest = 0, middle;
	int32_t *ranks;

	if (figures->kind != VAPRO_VARIES_SPATIALLY && figures->kind != VAPRO_VARIES_BOTH)
		return 0;
	item->slow_rows = calloc(rows->count, sizeof(*item->slow_rows));
	item->about.slow_ranks = ranks = calloc(rows->count, sizeof(*ranks));
	if (!item->slow_rows || !ranks)
		return -ENOMEM;
	for (size_t i = 0; i < rows->count; i++)
		slowest = rows->items[i].moments.n < LEAST_BATCHES
			      ? slowest
			      : fmax(slowest, variation__quantile(&rows->items[i], 0.5));
	middle = slowest / (1 + figures->slowest);
	for (size_t place = 0; place < job->row_count; place++) {
		uint32_t row = job->order[place];
		size_t i = place_of(rows, row);

		if (i == rows->count || rows->items[i].moments.n < LEAST_BATCHES ||
		    variation__quantile(&rows->items[i], 0.5) - middle < SHARE_OF_SLOWEST * (slowest - middle))
			continue;
		item->slow_rows[item->slow_row_count++] = row;
		if (!item->about.slow_count || ranks[item->about.slow_count - 1] != job->rows[row].rank)
			ranks[item->about.slow_count++] = job->rows[row].rank;
	}
	return 0;
}

/* Fills the figures of single calls of IO from the histograms of its histories. Returns 0 or -ENOMEM. */
static int set_calls(struct result_variability *about, const struct series_book *book, const struct source *sources,
		     size_t count)
{
	struct histogram all = {.n = 0};
	double least, most, middle, above = 0;
	int error = 0;

	about->call_p50_s = about->call_p95_s = about->call_above_s = NAN;
	if (book->workloads[sources->workload].class != VAPRO_IO)
		return 0;
	for (size_t i = 0; !error && i < count; i++)
		error = histogram__merge(&all, &book->series[sources[i].series].cpu);
	if (error || !all.count)
		goto cleanup;
	least = all.buckets[0].sum_ns / all.buckets[0].n;
	most = all.buckets[all.count - 1].sum_ns / all.buckets[all.count - 1].n;
	middle = variation__quantile_of(&all, 0.5, least, most);
	for (size_t i = 0; i < all.count; i++)
		above += fmax(0, all.buckets[i].sum_ns - all.buckets[i].n * middle);
	about->call_p50_s = middle / 1e9;
	about->call_p95_s = variation__quantile_of(&all, VARIES_HIGH, least, most) / 1e9;
	about->call_above_s = above / 1e9;
cleanup:
	histogram__clear(&all);
	return error;
}

/* Returns the state of the history with most time. */
static const struct vapro_state *state_of(const struct series_book *book, const struct stg *stg,
					  const struct source *sources, size_t count)
{
	const struct series *most = &book->series[sources->series];

	for (size_t i = 1; i < count; i++) {
		if (book->series[sources[i].series].variation->time_ns > most->variation->time_ns)
			most = &book->series[sources[i].series];
	}
	return &stg__state(stg, most->state)->about;
}

/*
 * Lists the durations of the rows. Where there are too many for a picture, each place of the list stands for as many
 * neighbours, of which it has the slowest. Returns 0 or -ENOMEM.
 */
static int list_durations(struct variability_item *item, const struct rows *rows, const struct stg_job *job)
{
	uint32_t most = item->about.figures.rows < DURATIONS_MOST ? item->about.figures.rows : DURATIONS_MOST, seen = 0;
	struct result_durations *list = calloc(most + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	item->about.durations = list;
	for (size_t place = 0; place < job->row_count; place++) {
		size_t i = place_of(rows, job->order[place]);
		struct result_durations *at;
		double middle;

		if (i == rows->count || rows->items[i].moments.n < LEAST_BATCHES || seen >= item->about.figures.rows)
			continue;
		at = &list[(uint64_t)seen++ * most / item->about.figures.rows];
		middle = variation__quantile(&rows->items[i], 0.5) / 1e9;
		if (at->batches > 0 && at->p50_s >= middle)
			continue;
		*at = (struct result_durations){
		    .rank = job->rows[job->order[place]].rank,
		    .batches = rows->items[i].moments.n,
		    .p05_s = variation__quantile(&rows->items[i], VARIES_LOW) / 1e9,
		    .p50_s = middle,
		    .p95_s = variation__quantile(&rows->items[i], VARIES_HIGH) / 1e9,
		};
	}
	item->about.duration_count = seen < most ? seen : most;
	return 0;
}

static void clear_item(struct variability_item *item)
{
	free((struct result_durations *)item->about.durations);
	free((int32_t *)item->about.slow_ranks);
	free(item->slow_rows);
}

/* Puts a workload in its place; the list owns what belongs to it, or frees it where there is no room. */
static void put(struct variability *variability, struct variability_item *item)
{
	size_t at = variability->count;

	while (at && variability->items[at - 1].about.seconds < item->about.seconds)
		at--;
	if (at == VARIABILITY_MOST) {
		clear_item(item);
		return;
	}
	if (variability->count == VARIABILITY_MOST)
		clear_item(&variability->items[--variability->count]);
	memmove(&variability->items[at + 1], &variability->items[at],
		(variability->count - at) * sizeof(*variability->items));
	variability->items[at] = *item;
	variability->count++;
}

static int add_workload(struct variability *variability, const struct series_book *book, const struct stg *stg,
			uint32_t job, const struct source *sources, size_t count)
{
	const struct stg_job *about = stg__job(stg, job);
	struct variability_item item = {.slow_row_count = 0};
	struct rows rows = {.count = 0};
	int error;

	for (size_t i = 0; i < count; i++)
		item.about.seconds += book->series[sources[i].series].variation->time_ns / 1e9;
	if (item.about.seconds < book->config->min_lost_s)
		return 0;
	error = sum_rows(&rows, book, sources, count);
	if (!error)
		error = variability__of(rows.list, rows.count, &item.about.figures);
	if (!error)
		error = find_slow(&item, &rows, about);
	if (!error)
		error = list_durations(&item, &rows, about);
	if (!error)
		error = set_calls(&item.about, book, sources, count);
	if (!error) {
		item.about.state = state_of(book, stg, sources, count);
		item.about.work = work_of(book, sources, count);
		item.about.temporal_rank = about->rows[rows.row[item.about.figures.temporal_row]].rank;
		item.about.rv_rank = about->rows[rows.row[item.about.figures.rv_row]].rank;
		put(variability, &item);
	} else {
		clear_item(&item);
	}
	clear_rows(&rows);
	return error == -ENODATA ? 0 : error;
}

int variability__find(struct variability *variability, struct series_book *book, const struct stg *stg, uint32_t job)
{
	struct source *sources;
	size_t count = find_sources(book, stg, job, &sources);
	int error = count == SIZE_MAX ? -ENOMEM : 0;

	variability->count = 0;
	for (size_t i = 0; !error && i < count; i++)
		error = variation__close(book->series[sources[i].series].variation);
	for (size_t from = 0, to; !error && from < count; from = to) {
		for (to = from + 1; to < count && sources[to].workload == sources[from].workload;)
			to++;
		error = add_workload(variability, book, stg, job, &sources[from], to - from);
	}
	free(sources);
	return error;
}

void variability__clear(struct variability *variability)
{
	for (size_t i = 0; i < variability->count; i++)
		clear_item(&variability->items[i]);
	variability->count = 0;
}
