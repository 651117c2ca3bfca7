/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/interferers.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <math.h>
#include <stdio.h>
#include <vapro/bundle.h>

enum { INTERFERERS_MAX = 256 }; /* tasks of a node: at this number the half that took least is forgotten */

#define MARK_LEAST 0.05 /* share of a bin from which on it belongs to the time of a task */

const char *const interferers__relation[VAPRO_RELATIONS] = {[VAPRO_FOREIGN] = "foreign",
							    [VAPRO_OWN_THREAD] = "own_thread",
							    [VAPRO_SAME_JOB] = "same_job",
							    [VAPRO_MONITOR] = "monitor",
							    [VAPRO_OTHER_JOB] = "other_job"};

static int compare(const void *a, const void *b)
{
	const struct result_interferer *left = &((const struct interferer *)a)->task;
	const struct result_interferer *right = &((const struct interferer *)b)->task;

	if (left->seconds != right->seconds)
		return left->seconds > right->seconds ? -1 : 1;
	return (left->pid > right->pid) - (left->pid < right->pid);
}

void interferers__sort(struct interferers *interferers)
{
	if (interferers->count)
		qsort(interferers->items, interferers->count, sizeof(*interferers->items), compare);
}

static void add_row(struct interferer *item, uint32_t row, double seconds)
{
	for (uint32_t i = 0; i < item->row_count && i < INTERFERER_ROWS; i++) {
		if (item->rows[i] == row) {
			item->row_seconds[i] += seconds;
			return;
		}
	}
	if (item->row_count < INTERFERER_ROWS) {
		item->rows[item->row_count] = row;
		item->row_seconds[item->row_count] = seconds;
	}
	if (item->row_count <= INTERFERER_ROWS)
		item->row_count++;
}

static void extend(struct interferer *item, uint64_t begin, uint64_t end)
{
	item->begin = item->begin == item->end || begin < item->begin ? begin : item->begin;
	item->end = end > item->end ? end : item->end;
}

static void join(struct interferer *into, const struct interferer *from)
{
	into->task.seconds += from->task.seconds;
	for (uint32_t i = 0; i < from->row_count && i < INTERFERER_ROWS; i++)
		add_row(into, from->rows[i], from->row_seconds[i]);
	if (from->row_count > INTERFERER_ROWS)
		into->row_count = from->row_count;
	if (from->begin < from->end)
		extend(into, from->begin, from->end);
}

static struct interferer *find_item(struct interferers *interferers, const struct result_interferer *task)
{
	for (size_t i = interferers->count; i-- > 0;) {
		struct interferer *item = &interferers->items[i];

		if (item->task.pid == task->pid && !strncmp(item->task.comm, task->comm, sizeof(item->task.comm) - 1))
			return item;
	}
	return NULL;
}

/* Makes room for a further task. Returns it, to be filled; NULL when out of memory. */
static struct interferer *new_item(struct interferers *interferers)
{
	if (interferers->count >= INTERFERERS_MAX) {
		interferers__sort(interferers);
		while (interferers->count > INTERFERERS_MAX / 2)
			interferers->forgotten += interferers->items[--interferers->count].task.seconds;
	}
	if (grow(&interferers->items, &interferers->capacity, interferers->count + 1, sizeof(*interferers->items)))
		return NULL;
	return &interferers->items[interferers->count++];
}

int interferers__add(struct interferers *interferers, const struct result_interferer *task, uint32_t row, uint64_t bin)
{
	bool marked = task->seconds >= MARK_LEAST * VAPRO_BIN_NS / 1e9;
	struct interferer *item;

	if (!task->pid || task->seconds <= 0)
		return 0;
	item = find_item(interferers, task);
	if (!item) {
		item = new_item(interferers);
		if (!item)
			return -ENOMEM;
		*item = (struct interferer){.task = *task};
		item->task.comm[sizeof(item->task.comm) - 1] = '\0';
		item->task.job = NULL;
		item->task.seconds = 0;
		if (task->job)
			snprintf(item->job, sizeof(item->job), "%s", task->job);
	}
	item->task.seconds += task->seconds;
	add_row(item, row, task->seconds);
	if (marked)
		extend(item, bin, bin + 1);
	return 0;
}

int interferers__merge(struct interferers *into, const struct interferers *from)
{
	for (size_t i = 0; i < from->count; i++) {
		struct interferer *item = find_item(into, &from->items[i].task);

		if (item) {
			join(item, &from->items[i]);
			continue;
		}
		item = new_item(into);
		if (!item)
			return -ENOMEM;
		*item = from->items[i];
	}
	into->forgotten += from->forgotten;
	return 0;
}

double interferers__seconds(const struct interferers *interferers)
{
	double sum = interferers->forgotten;

	for (size_t i = 0; i < interferers->count; i++)
		sum += interferers->items[i].task.seconds;
	return sum;
}

double interferers__monitor(const struct interferers *interferers)
{
	double sum = 0;

	for (size_t i = 0; i < interferers->count; i++)
		if (interferers->items[i].task.relation == VAPRO_MONITOR)
			sum += interferers->items[i].task.seconds;
	return sum;
}

static bool is_own(const struct result_interferer *task)
{
	return task->relation == VAPRO_OWN_THREAD || task->relation == VAPRO_SAME_JOB;
}

double interferers__own(const struct interferers *interferers)
{
	double sum = 0;

	for (size_t i = 0; i < interferers->count; i++)
		if (is_own(&interferers->items[i].task))
			sum += interferers->items[i].task.seconds;
	return sum;
}

const struct result_interferer *interferers__named(const struct result_diagnosis *diagnosis)
{
	const struct result_interferer *first[2] = {NULL, NULL};
	double seconds[2] = {0, 0};

	for (uint32_t i = 0; i < diagnosis->interferer_count; i++) {
		const struct result_interferer *task = &diagnosis->interferers[i];
		bool own = is_own(task);

		seconds[own] += task->seconds;
		if (!first[own])
			first[own] = task;
	}
	/* many that took little each are not listed: one thread of the job that took more is not the reason */
	seconds[0] = fmax(seconds[0], diagnosis->interfered - diagnosis->interfered_own);
	seconds[1] = fmax(seconds[1], diagnosis->interfered_own);
	if (seconds[0] > 0 && seconds[0] >= SHARE_MOST * (seconds[0] + seconds[1]))
		return first[0];
	return first[first[1] != NULL];
}

bool interferers__is_foreign(const struct result_interferer *task)
{
	return task->relation == VAPRO_FOREIGN || task->relation == VAPRO_OTHER_JOB;
}

const char *interferers__says(const struct result_interferer *task, char *buf)
{
	static const char *const words[VAPRO_RELATIONS] = {[VAPRO_FOREIGN] = "",
							   [VAPRO_OWN_THREAD] = "a thread of the same process",
							   [VAPRO_SAME_JOB] = "a rank of the job",
							   [VAPRO_MONITOR] = "this monitor",
							   [VAPRO_OTHER_JOB] = "a rank of another job"};

	if (task->relation != VAPRO_OTHER_JOB || !task->job || !*task->job)
		snprintf(buf, INTERFERER_WORDS, "%s", words[task->relation]);
	else if (task->rank < 0)
		snprintf(buf, INTERFERER_WORDS, "a task of job %s", task->job);
	else
		snprintf(buf, INTERFERER_WORDS, "rank %d of job %s", (int)task->rank, task->job);
	return buf;
}

void interferers__clear(struct interferers *interferers)
{
	free(interferers->items);
	*interferers = (struct interferers){0};
}
