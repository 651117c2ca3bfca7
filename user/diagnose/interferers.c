/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/interferers.h"

#include "base/grow.h"

/* A node runs thousands of short tasks: at this number the half that took least is forgotten. */
#define INTERFERERS_MAX 256

#define OTHERS_LEAST 0.5 /* share of others below which the job's own threads are to blame, as in evidence_calls.c */

const char *const interferers__relation[VAPRO_RELATIONS] = {[VAPRO_FOREIGN] = "foreign",
							    [VAPRO_OWN_THREAD] = "own_thread",
							    [VAPRO_SAME_JOB] = "same_job",
							    [VAPRO_MONITOR] = "monitor"};

static int compare(const void *a, const void *b)
{
	const struct result_interferer *left = a, *right = b;

	if (left->seconds != right->seconds)
		return left->seconds > right->seconds ? -1 : 1;
	return (left->pid > right->pid) - (left->pid < right->pid);
}

void interferers__sort(struct interferers *interferers)
{
	if (interferers->count)
		qsort(interferers->items, interferers->count, sizeof(*interferers->items), compare);
}

int interferers__add(struct interferers *interferers, const struct result_interferer *task)
{
	struct result_interferer *item;

	if (!task->pid || task->seconds <= 0)
		return 0;
	for (size_t i = interferers->count; i-- > 0;) {
		item = &interferers->items[i];
		if (item->pid == task->pid && !strncmp(item->comm, task->comm, sizeof(item->comm) - 1)) {
			item->seconds += task->seconds;
			return 0;
		}
	}
	if (interferers->count >= INTERFERERS_MAX) {
		interferers__sort(interferers);
		while (interferers->count > INTERFERERS_MAX / 2)
			interferers->forgotten += interferers->items[--interferers->count].seconds;
	}
	if (grow(&interferers->items, &interferers->capacity, interferers->count + 1, sizeof(*interferers->items)))
		return -ENOMEM;
	item = &interferers->items[interferers->count++];
	*item = *task;
	item->comm[sizeof(item->comm) - 1] = '\0';
	return 0;
}

int interferers__merge(struct interferers *into, const struct interferers *from)
{
	for (size_t i = 0; i < from->count; i++) {
		if (interferers__add(into, &from->items[i]))
			return -ENOMEM;
	}
	into->forgotten += from->forgotten;
	return 0;
}

double interferers__seconds(const struct interferers *interferers)
{
	double sum = interferers->forgotten;

	for (size_t i = 0; i < interferers->count; i++)
		sum += interferers->items[i].seconds;
	return sum;
}

double interferers__monitor(const struct interferers *interferers)
{
	double sum = 0;

	for (size_t i = 0; i < interferers->count; i++)
		if (interferers->items[i].relation == VAPRO_MONITOR)
			sum += interferers->items[i].seconds;
	return sum;
}

static bool is_own(const struct result_interferer *task)
{
	return task->relation == VAPRO_OWN_THREAD || task->relation == VAPRO_SAME_JOB;
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
	return first[0] && seconds[0] >= OTHERS_LEAST * (seconds[0] + seconds[1]) ? first[0] : first[first[1] != NULL];
}

const char *interferers__says(enum vapro_relation relation)
{
	static const char *const words[VAPRO_RELATIONS] = {[VAPRO_FOREIGN] = "",
							   [VAPRO_OWN_THREAD] = "a thread of the same process",
							   [VAPRO_SAME_JOB] = "a rank of the job",
							   [VAPRO_MONITOR] = "this monitor"};

	return words[relation];
}

void interferers__clear(struct interferers *interferers)
{
	free(interferers->items);
	*interferers = (struct interferers){0};
}
