// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Histories in checkpoints: see series.h. Sums over the view and the new part are computed again
 * in each window, and are not written.
 */
#include "model/series.h"
#include "model/job_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct archive_column book_columns[] = {
    ARCHIVE_ONE(struct series_book, window),
    ARCHIVE_ONE(struct series_book, full),
    ARCHIVE_ONE(struct series_book, free_series),
    ARCHIVE_ONE(struct series_book, free_workloads),
};
static const struct archive_table book_table = ARCHIVE_TABLE("histories", struct series_book, book_columns);

static const struct archive_column series_columns[] = {
    ARCHIVE_ONE(struct series, thread),
    ARCHIVE_ONE(struct series, state),
    ARCHIVE_ONE(struct series, workload),
    ARCHIVE_ONE(struct series, job),
    ARCHIVE_ONE(struct series, row),
    ARCHIVE_ONE(struct series, next),
    ARCHIVE_ONE(struct series, window),
    ARCHIVE_ONE(struct series, follower),
    ARCHIVE_ONE(struct series, class),
    ARCHIVE_ONE(struct series, dirty),
    ARCHIVE_ONE(struct series, certified),
    ARCHIVE_ONE(struct series, final),
    ARCHIVE_ONE(struct series, compared),
    ARCHIVE_ONE(struct series, supported),
    ARCHIVE_ONE(struct series, slower),
    ARCHIVE_ONE(struct series, usual_blocked),
    ARCHIVE_ONE(struct series, usual_frequency),
    ARCHIVE_ONE(struct series, reference_ns),
    ARCHIVE_ONE(struct series, cpu.n),
    ARCHIVE_ONE(struct series, cpu.sum_ns),
    ARCHIVE_ONE(struct series, successive.n),
    ARCHIVE_ONE(struct series, successive.sum),
    ARCHIVE_ONE(struct series, successive.open_n),
    ARCHIVE_ONE(struct series, successive.open_mean),
    ARCHIVE_ONE(struct series, successive.open_squares),
    ARCHIVE_ONE(struct series, successive.bin),
    ARCHIVE_ONE(struct series, asleep_ns),
    ARCHIVE_MANY(struct series, size),
    ARCHIVE_ONE(struct series, members),
    ARCHIVE_ONE(struct series, met_ns),
    ARCHIVE_ONE(struct series, wide_ns),
    ARCHIVE_ONE(struct series, least.n),
    ARCHIVE_ONE(struct series, least.sum_ns),
    ARCHIVE_ONE(struct series, least_bin),
    ARCHIVE_ONE(struct series, least_ns),
    ARCHIVE_ONE(struct series, part_ns),
    ARCHIVE_ONE(struct series, part_steady),
    ARCHIVE_ONE(struct series, stretch.n),
    ARCHIVE_ONE(struct series, stretch.sum_ns),
    ARCHIVE_ONE(struct series, stretch_begin),
    ARCHIVE_ONE(struct series, stretch_last),
    ARCHIVE_ONE(struct series, proven),
    ARCHIVE_ONE(struct series, grouped),
    ARCHIVE_ONE(struct series, single),
    ARCHIVE_ONE(struct series, group_count),
    ARCHIVE_ONE(struct series, group_stretches),
    ARCHIVE_MANY(struct series, group_ns),
    ARCHIVE_ONE(struct series, level),
    ARCHIVE_ANY(struct series, middle_ns),
    ARCHIVE_ANY(struct series, high_ns),
    ARCHIVE_ANY(struct series, tail_ns),
    ARCHIVE_ONE(struct series, batches.latest),
    ARCHIVE_ONE(struct series, batches.open_n),
    ARCHIVE_ONE(struct series, batches.open_bin),
    ARCHIVE_ONE(struct series, batches.open_ns),
    ARCHIVE_ONE(struct series, batches.begin),
    ARCHIVE_ONE(struct series, batches_live.begin),
    ARCHIVE_ONE(struct series, disturbed_n),
    ARCHIVE_ONE(struct series, usual.n),
    ARCHIVE_ONE(struct series, usual.bundles),
    ARCHIVE_ONE(struct series, usual.dur),
    ARCHIVE_ONE(struct series, usual.dur_sq),
    ARCHIVE_ONE(struct series, usual.net),
    ARCHIVE_ONE(struct series, usual.net_sq),
    ARCHIVE_ONE(struct series, normal.n),
    ARCHIVE_ONE(struct series, normal.sum_ns),
    ARCHIVE_MANY(struct series, normal.factor),
    ARCHIVE_MANY(struct series, normal.counted_n),
    ARCHIVE_ONE(struct series, frequency_ns),
    ARCHIVE_ONE(struct series, frequency_n),
    ARCHIVE_ONE(struct series, own_ns),
    ARCHIVE_ONE(struct series, duration_ns),
    ARCHIVE_ONE(struct series, net.n),
    ARCHIVE_ONE(struct series, net.sum_ns),
    ARCHIVE_MANY(struct series, halves),
    ARCHIVE_ONE(struct series, mean_count),
    ARCHIVE_ONE(struct series, varied),
};
static const struct archive_table series_table = ARCHIVE_TABLE("series", struct series, series_columns);

static const struct archive_column workload_columns[] = {
    ARCHIVE_ONE(struct workload, job),	  ARCHIVE_ONE(struct workload, kind),  ARCHIVE_ONE(struct workload, common),
    ARCHIVE_ONE(struct workload, class),  ARCHIVE_MANY(struct workload, seed), ARCHIVE_ONE(struct workload, head),
    ARCHIVE_ONE(struct workload, series), ARCHIVE_ONE(struct workload, next),  ARCHIVE_ONE(struct workload, dirty),
    ARCHIVE_ONE(struct workload, mixed),
};
static const struct archive_table workload_table = ARCHIVE_TABLE("workloads", struct workload, workload_columns);

static const struct archive_column latest_columns[] = {{"series", ARCHIVE_U32, 1, 0, false}};
static const struct archive_table latest_table = {"latest", latest_columns, 1, sizeof(uint32_t)};

/* Room that is part of what the memory cap counts. */
struct room {
	uint64_t by_key, by_kind, factors;
};

static const struct archive_column room_columns[] = {
    ARCHIVE_ONE(struct room, by_key),
    ARCHIVE_ONE(struct room, by_kind),
    ARCHIVE_ONE(struct room, factors),
};
static const struct archive_table room_table = ARCHIVE_TABLE("room", struct room, room_columns);

/* What a series holds beside its members. */
struct belongings {
	uint32_t live; /* capacity of the batches of the view */
	bool any_live; /* there are such batches: the next window drops them */
	bool latest;   /* the series that its thread and state found last */
	bool clusters; /* a workload's */
};

static const struct archive_column belongings_columns[] = {
    ARCHIVE_ONE(struct belongings, live),
    ARCHIVE_ONE(struct belongings, any_live),
    ARCHIVE_ONE(struct belongings, latest),
    ARCHIVE_ONE(struct belongings, clusters),
};
static const struct archive_table belongings_table = ARCHIVE_TABLE("belongings", struct belongings, belongings_columns);

static void out_of_memory(struct archive *archive)
{
	archive__fail(archive, -ENOMEM, "out of memory");
}

static uint64_t key_of(const struct series *series)
{
	return (uint64_t)series->thread << 32 | series->state;
}

/* ---- writing */

static void write_belongings(struct archive *archive, const struct series_book *book)
{
	size_t count = book->count, workloads = book->workload_count;
	struct belongings *all = archive__take(archive, count + workloads, sizeof(*all));
	size_t rows = count + workloads;

	if (!all)
		return;
	for (size_t i = 0; i < count; i++) {
		const struct series *series = &book->series[i];
		uint32_t latest;

		all[i].live = series->batches_live.capacity;
		all[i].any_live = series->batches_live.count;
		all[i].latest = series->job != SERIES_NONE &&
				table__get(book->by_key, key_of(series), SERIES_LATEST, &latest) && latest == i;
	}
	for (size_t i = 0; i < workloads; i++)
		all[count + i].clusters = book->workloads[i].clusters;
	archive__rows(archive, &belongings_table, &all, &rows, &rows);
	free(all);
}

/* ---- reading */

static bool possible_series(const struct series_book *book, const struct series *series)
{
	const struct workload *workload = &book->workloads[series->workload];

	return series->thread < stg__threads(book->stg) &&
	       (series->state < stg__states(book->stg) || (series->state == STG_UNSEEN && !series->cpu.n)) &&
	       series->job == stg__thread(book->stg, series->thread)->job &&
	       series->row < stg__job(book->stg, series->job)->row_count && series->workload < book->workload_count &&
	       workload->job == series->job && series->class == workload->class &&
	       stg__state(book->stg, series->state)->about.to &&
	       series->class == stg__state(book->stg, series->state)->about.class &&
	       series->group_count <= SERIES_GROUPS && (!series->grouped || series->group_count) &&
	       series->mean_count <= SERIES_WINDOWS && (!series->varied || series->class != VAPRO_COMMUNICATION) &&
	       series->follower <= book->count;
}

static bool possible_workload(const struct series_book *book, const struct workload *workload)
{
	return workload->job < stg__jobs(book->stg) && workload->class < VAPRO_CLASSES &&
	       workload->head < book->workload_count && book->workloads[workload->head].head == workload->head &&
	       book->workloads[workload->head].job == workload->job;
}

/* Each released number is once in the list of its kind, and each series once in the list of its workload. */
static void check_lists(struct archive *archive, const struct series_book *book)
{
	size_t count = book->count, workloads = book->workload_count;
	bool *met = archive__take(archive, count + workloads, sizeof(*met));
	const char *why = "a list of histories is damaged";

	for (uint32_t at = book->free_series; met && at != SERIES_NONE; at = book->series[at].next) {
		if (!archive__check(archive, at < count && !met[at] && book->series[at].job == SERIES_NONE, why))
			break;
		met[at] = true;
	}
	for (size_t i = 0; met && i < workloads; i++) {
		uint32_t at = book->workloads[i].series;

		for (; at != SERIES_NONE && !archive__error(archive); at = book->series[at].next) {
			if (!archive__check(archive,
					    at < count && !met[at] && book->series[at].workload == i &&
						book->series[at].job != SERIES_NONE,
					    why))
				break;
			met[at] = true;
		}
	}
	for (size_t i = 0; met && i < count; i++)
		archive__check(archive, met[i], why);
	for (uint32_t at = book->free_workloads; met && at != SERIES_NONE; at = book->workloads[at].next) {
		if (!archive__check(archive,
				    at < workloads && !met[count + at] && book->workloads[at].job == SERIES_NONE, why))
			break;
		met[count + at] = true;
	}
	for (uint32_t i = 0; met && i < workloads; i++) {
		uint32_t at = book->workloads[i].job != SERIES_NONE && book->workloads[i].head == i ? i : SERIES_NONE;

		for (; at != SERIES_NONE && !archive__error(archive); at = book->workloads[at].next) {
			if (!archive__check(archive,
					    at < workloads && !met[count + at] && book->workloads[at].head == i, why))
				break;
			met[count + at] = true;
		}
	}
	for (size_t i = 0; met && i < workloads; i++)
		archive__check(archive, met[count + i], why);
	free(met);
}

static void check_book(struct archive *archive, const struct series_book *book)
{
	for (size_t i = 0; i < book->workload_count; i++) {
		if (book->workloads[i].job != SERIES_NONE)
			archive__check(archive, possible_workload(book, &book->workloads[i]),
				       "a workload contradicts others");
		else
			archive__check(archive, book->workloads[i].series == SERIES_NONE, "a workload is damaged");
	}
	for (size_t i = 0; i < book->count; i++)
		archive__check(archive,
			       book->series[i].job == SERIES_NONE ? !book->series[i].varied
								  : possible_series(book, &book->series[i]),
			       "a history contradicts others");
	for (size_t i = 0; i < book->latest_capacity; i++)
		archive__check(archive, !book->latest[i] || book->latest[i] < book->count,
			       "a thread's last history is missing");
	if (!archive__error(archive))
		check_lists(archive, book);
}

static void read_series_belongings(struct archive *archive, struct series_book *book, uint32_t id,
				   const struct belongings *own)
{
	struct series *series = &book->series[id];
	bool error = false;

	series->batches_live.items = own->live ? archive__take(archive, own->live, sizeof(struct batch_bucket)) : NULL;
	series->batches_live.capacity = series->batches_live.items ? own->live : 0;
	series->batches_live.count = series->batches_live.items && own->any_live;
	if (series->job == SERIES_NONE)
		return;
	error =
	    table__put(book->by_key, key_of(series), series->workload, id) || job_series__add(book, series->job, id);
	if (!error && own->latest)
		error = table__put(book->by_key, key_of(series), SERIES_LATEST, id);
	if (error)
		out_of_memory(archive);
}

static void read_belongings(struct archive *archive, struct series_book *book)
{
	struct belongings *all = NULL;
	size_t count = 0, capacity = 0;

	archive__rows(archive, &belongings_table, &all, &count, &capacity);
	archive__check(archive, count == book->count + book->workload_count, "a history lacks its parts");
	for (uint32_t i = 0; i < book->count && !archive__error(archive); i++)
		read_series_belongings(archive, book, i, &all[i]);
	for (uint32_t i = 0; i < book->workload_count && !archive__error(archive); i++) {
		struct workload *workload = &book->workloads[i];

		if (workload->job == SERIES_NONE)
			continue;
		if (workload->head == i && table__put(book->by_kind, workload->job, workload->kind, i))
			out_of_memory(archive);
		if (!all[book->count + i].clusters)
			continue;
		workload->clusters = clusters__new(book->config);
		if (!workload->clusters)
			out_of_memory(archive);
	}
	free(all);
}

/* ---- both */

static void archive_room(struct archive *archive, struct series_book *book)
{
	struct room room = {table__size(book->by_key), table__size(book->by_kind), book->factors.bytes};

	archive__record(archive, &room_table, &room);
	if (!archive__reads(archive))
		return;
	/* bytes of tables and pools are bounded like arrays */
	free(archive__take(archive, room.by_key, 32));
	free(archive__take(archive, room.by_kind, 32));
	free(archive__take(archive, room.factors, 1));
	if (archive__error(archive))
		return;
	if (table__reserve(book->by_key, room.by_key) || table__reserve(book->by_kind, room.by_kind) ||
	    pool__reserve(&book->factors, room.factors))
		out_of_memory(archive);
}

static void archive_arrays(struct archive *archive, struct series *series)
{
	histogram__archive(archive, &series->cpu);
	histogram__archive(archive, &series->net);
	histogram__archive(archive, &series->least);
	histogram__archive(archive, &series->stretch);
	batches__archive(archive, &series->batches);
	if (archive__reads(archive) && series->varied) {
		series->variation = archive__take(archive, 1, sizeof(*series->variation));
		series->varied = series->variation;
	}
	if (series->variation)
		variation__archive(archive, series->variation);
}

void series__archive(struct archive *archive, struct series_book *book)
{
	archive__record(archive, &book_table, book);
	archive_room(archive, book);
	archive__rows(archive, &series_table, &book->series, &book->count, &book->capacity);
	archive__rows(archive, &workload_table, &book->workloads, &book->workload_count, &book->workload_capacity);
	archive__rows(archive, &latest_table, &book->latest, &book->latest_capacity, &book->latest_capacity);
	for (size_t i = 0; i < book->count; i++)
		archive_arrays(archive, &book->series[i]);
	if (!archive__reads(archive)) {
		write_belongings(archive, book);
	} else {
		check_book(archive, book);
		read_belongings(archive, book);
	}
	for (size_t i = 0; i < book->workload_count; i++) {
		if (book->workloads[i].clusters)
			clusters__archive(archive, book->workloads[i].clusters);
	}
}
