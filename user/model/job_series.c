/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/job_series.h"

#include "base/grow.h"
#include "model/series.h"

static int compare_ids(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* A number that was released may be in use again, by another job or twice in this list. */
static void order(const struct series_book *book, struct job_series *list, uint32_t job)
{
	size_t live = 0, count = 0;

	for (size_t i = 0; i < list->count; i++) {
		uint32_t id = list->ids[i];

		if (id < book->count && book->series[id].job == job)
			list->ids[live++] = id;
	}
	if (live)
		qsort(list->ids, live, sizeof(*list->ids), compare_ids);
	for (size_t i = 0; i < live; i++) {
		if (!count || list->ids[count - 1] != list->ids[i])
			list->ids[count++] = list->ids[i];
	}
	list->count = count;
	list->stale = false;
}

struct series_ids job_series__ids(const struct series_book *book, uint32_t job)
{
	struct job_series *list = job < book->job_capacity ? &book->by_job[job] : NULL;

	if (!list)
		return (struct series_ids){0};
	if (list->stale)
		order(book, list, job);
	return (struct series_ids){list->ids, list->count};
}

int job_series__bound(struct series_book *book, uint32_t job, enum job_room room)
{
	if (room != JOB_ROOM_SHARED && grow(&book->by_job, &book->job_capacity, (size_t)job + 1, sizeof(*book->by_job)))
		return -ENOMEM;
	if (job < book->job_capacity)
		book->by_job[job].room = room;
	return 0;
}

int job_series__add(struct series_book *book, uint32_t job, uint32_t id)
{
	struct job_series *list;

	if (grow(&book->by_job, &book->job_capacity, (size_t)job + 1, sizeof(*book->by_job)))
		return -ENOMEM;
	list = &book->by_job[job];
	if (grow_untouched(&list->ids, &list->capacity, list->count + 1, sizeof(*list->ids)))
		return -ENOMEM;
	list->stale |= list->count && list->ids[list->count - 1] >= id;
	list->ids[list->count++] = id;
	return 0;
}

bool job_series__full(const struct series_book *book, uint32_t job)
{
	enum job_room room = job < book->job_capacity ? book->by_job[job].room : JOB_ROOM_SHARED;

	return room == JOB_ROOM_NONE || (room == JOB_ROOM_SHARED && book->full);
}

void job_series__drop(struct series_book *book, uint32_t job)
{
	if (job < book->job_capacity)
		book->by_job[job].stale = true;
}

void job_series__forget(struct series_book *book, uint32_t job)
{
	size_t jobs = book->job_capacity;

	if (job >= jobs)
		return;
	free(book->by_job[job].ids);
	book->by_job[job] = (struct job_series){0};
	while (jobs && !book->by_job[jobs - 1].ids && book->by_job[jobs - 1].room == JOB_ROOM_SHARED)
		jobs--;
	grow_less(&book->by_job, &book->job_capacity, jobs, sizeof(*book->by_job));
}

void job_series__clear(struct series_book *book)
{
	for (size_t i = 0; i < book->job_capacity; i++)
		free(book->by_job[i].ids);
	free(book->by_job);
	book->by_job = NULL;
	book->job_capacity = 0;
}

size_t job_series__bytes(const struct series_book *book)
{
	size_t bytes = book->job_capacity * sizeof(*book->by_job);

	for (size_t i = 0; i < book->job_capacity; i++)
		bytes += book->by_job[i].capacity * sizeof(*book->by_job[i].ids);
	return bytes;
}
