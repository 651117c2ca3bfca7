/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/evict.h"

#include "model/alike.h"
#include "base/table.h"

#include <stdlib.h>

enum { AGES = 1024 }; /* windows; older ones count as this */

struct victims {
	unsigned char *series, *workloads; /* by number: whether it is evicted */
};

static bool keeps_series(const void *ctx, uint32_t value)
{
	return !((const struct victims *)ctx)->series[value];
}

static bool keeps_workload(const void *ctx, uint32_t value)
{
	return !((const struct victims *)ctx)->workloads[value];
}

static uint32_t age_of(const struct series_book *book, const struct series *series)
{
	uint32_t age = book->window - series->window;

	return age < AGES ? age : AGES - 1;
}

static size_t count_free(const struct series_book *book)
{
	size_t count = 0;

	for (uint32_t at = book->free_series; at != SERIES_NONE; at = book->series[at].next)
		count++;
	return count;
}

/* Chooses whole windows, oldest first. Returns the number of victims. */
static size_t choose(const struct series_book *book, const unsigned char *used, size_t wanted, unsigned char *victims)
{
	size_t by_age[AGES] = {0}, sum = 0, chosen = 0;
	uint32_t least = AGES;

	for (size_t i = 0; i < book->count; i++)
		by_age[age_of(book, &book->series[i])] += book->series[i].job != SERIES_NONE && !used[i];
	while (sum < wanted && least > EVICT_LEAST)
		sum += by_age[--least];
	for (size_t i = 0; i < book->count; i++) {
		victims[i] = book->series[i].job != SERIES_NONE && !used[i] && age_of(book, &book->series[i]) >= least;
		chosen += victims[i];
	}
	return chosen;
}

static void unlink_series(struct series_book *book, const unsigned char *victims)
{
	for (size_t i = 0; i < book->workload_count; i++) {
		uint32_t *at = &book->workloads[i].series;

		while (*at != SERIES_NONE) {
			if (!victims[*at]) {
				at = &book->series[*at].next;
				continue;
			}
			*at = book->series[*at].next;
			book->workloads[i].dirty = true;
		}
	}
}

/* Workloads of a kind share the first one's clusters: they go together. Returns whether any do. */
static bool choose_workloads(const struct series_book *book, unsigned char *victims)
{
	bool any = false;

	for (size_t i = 0; i < book->workload_count; i++) {
		bool empty = book->workloads[i].job != SERIES_NONE && book->workloads[i].head == i;

		for (uint32_t at = (uint32_t)i; empty && at != SERIES_NONE; at = book->workloads[at].next)
			empty = book->workloads[at].series == SERIES_NONE;
		for (uint32_t at = (uint32_t)i; empty && at != SERIES_NONE; at = book->workloads[at].next)
			victims[at] = 1;
		any |= empty;
	}
	return any;
}

size_t evict__series(struct series_book *book, const unsigned char *used, size_t wanted)
{
	struct victims victims = {.series = calloc(book->count + 1, 1),
				  .workloads = calloc(book->workload_count + 1, 1)};
	size_t free_already = count_free(book), chosen = 0;

	if (!victims.series || !victims.workloads || free_already >= wanted)
		goto cleanup;
	chosen = choose(book, used, wanted - free_already, victims.series);
	if (chosen && table__prune(book->by_key, keeps_series, &victims))
		chosen = 0;
	if (!chosen)
		goto cleanup;
	alike__forget(book->alike);
	unlink_series(book, victims.series);
	for (size_t i = 0; i < book->count; i++) {
		if (victims.series[i])
			series__release(book, (uint32_t)i);
	}
	if (!choose_workloads(book, victims.workloads) || table__prune(book->by_kind, keeps_workload, &victims))
		goto cleanup;
	for (size_t i = 0; i < book->workload_count; i++) {
		if (victims.workloads[i])
			series__release_workload(book, (uint32_t)i);
	}
cleanup:
	free(victims.series);
	free(victims.workloads);
	return chosen;
}

void evict__shrink(struct series_book *book)
{
	size_t count = book->count, spare;
	struct series *series;

	while (count && book->series[count - 1].job == SERIES_NONE)
		count--;
	book->free_series = SERIES_NONE;
	for (size_t i = count; i-- > 0;) {
		if (book->series[i].job != SERIES_NONE)
			continue;
		book->series[i].next = book->free_series;
		book->free_series = (uint32_t)i;
	}
	book->count = count;
	for (size_t i = 0; i < book->latest_capacity; i++) {
		if (book->latest[i] >= count)
			book->latest[i] = 0;
	}
	spare = count + 1;
	series = spare < book->capacity ? realloc(book->series, spare * sizeof(*series)) : NULL;
	if (!series)
		return;
	book->series = series;
	book->capacity = spare;
}
