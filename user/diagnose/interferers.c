/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/interferers.h"

#include "model/grow.h"

#include <stdio.h>

/* A node runs thousands of short tasks: of this many the half that took least is forgotten. */
#define INTERFERERS_MAX 256

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

int interferers__add(struct interferers *interferers, const char *comm, uint32_t pid, double seconds)
{
	struct result_interferer *item;

	if (!pid || seconds <= 0)
		return 0;
	for (size_t i = interferers->count; i-- > 0;) {
		item = &interferers->items[i];
		if (item->pid == pid && !strncmp(item->comm, comm, sizeof(item->comm) - 1)) {
			item->seconds += seconds;
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
	*item = (struct result_interferer){.pid = pid, .seconds = seconds};
	snprintf(item->comm, sizeof(item->comm), "%.15s", comm);
	return 0;
}

int interferers__merge(struct interferers *into, const struct interferers *from)
{
	for (size_t i = 0; i < from->count; i++) {
		if (interferers__add(into, from->items[i].comm, from->items[i].pid, from->items[i].seconds))
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

void interferers__clear(struct interferers *interferers)
{
	free(interferers->items);
	*interferers = (struct interferers){0};
}
