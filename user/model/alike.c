/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/alike.h"

#include "base/grow.h"
#include "base/table.h"

#include <math.h>

enum { ANY_SIZE = 0 }; /* stands for all sizes */

/* No series is compared with itself, hence two maxima. */
struct greatest {
	uint32_t series;
	double ns, second_ns;
};

struct alike {
	struct table *numbers; /* NULL: not built yet; (job and common labels, size) -> index of item */
	struct greatest *items;
	size_t count, capacity;
};

static uint64_t labels_of(const struct workload *workload)
{
	return (uint64_t)workload->job << 32 | workload->common;
}

/* A number that equal sizes share. */
static uint64_t size_of(const struct workload *workload)
{
	uint64_t hash = 0, bits;

	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		memcpy(&bits, &workload->seed[i], sizeof(bits));
		hash = table__hash(hash, bits);
	}
	return hash == ANY_SIZE ? ANY_SIZE + 1 : hash;
}

static int add(struct alike *alike, uint64_t labels, uint64_t size, uint32_t id, double ns)
{
	struct greatest *item;
	uint32_t at;

	if (!table__get(alike->numbers, labels, size, &at)) {
		at = (uint32_t)alike->count;
		if (grow(&alike->items, &alike->capacity, alike->count + 1, sizeof(*alike->items)) ||
		    table__put(alike->numbers, labels, size, at))
			return -ENOMEM;
		alike->items[alike->count++] = (struct greatest){.series = SERIES_NONE};
	}
	item = &alike->items[at];
	if (ns > item->ns)
		*item = (struct greatest){id, ns, item->ns};
	else
		item->second_ns = fmax(item->second_ns, ns);
	return 0;
}

struct alike *alike__new(void)
{
	return calloc(1, sizeof(struct alike));
}

void alike__forget(struct alike *alike)
{
	table__free(alike->numbers);
	alike->numbers = NULL;
	alike->count = 0;
}

void alike__free(struct alike *alike)
{
	if (!alike)
		return;
	table__free(alike->numbers);
	free(alike->items);
	free(alike);
}

static int look(struct alike *alike, const struct series_book *book)
{
	alike->numbers = table__new();
	if (!alike->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < book->count; i++) {
		const struct series *series = &book->series[i];
		const struct workload *workload;

		if (series->job == SERIES_NONE || series->cpu.n < (double)book->config->rare_members)
			continue;
		workload = &book->workloads[series->workload];
		if (add(alike, labels_of(workload), ANY_SIZE, (uint32_t)i, series->own_ns) ||
		    add(alike, labels_of(workload), size_of(workload), (uint32_t)i, series->own_ns))
			return -ENOMEM;
	}
	return 0;
}

static double others(const struct alike *alike, uint64_t labels, uint64_t size, uint32_t own)
{
	uint32_t at;

	if (!table__get(alike->numbers, labels, size, &at))
		return 0;
	return alike->items[at].series == own ? alike->items[at].second_ns : alike->items[at].ns;
}

double alike__reference(struct alike *alike, const struct series_book *book, const struct series *series)
{
	const struct workload *workload = &book->workloads[series->workload];
	uint32_t own = (uint32_t)(series - book->series);
	double same;

	if (!alike->numbers && look(alike, book)) {
		alike__forget(alike);
		return 0;
	}
	same = others(alike, labels_of(workload), size_of(workload), own);
	return same > 0 ? same : others(alike, labels_of(workload), ANY_SIZE, own);
}
