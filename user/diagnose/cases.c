/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/cases.h"

#include "base/grow.h"

static const struct contribution nothing;

static void clear_part(struct diagnosis_case *item, enum case_part part)
{
	free(item->parts[part]);
	item->parts[part] = NULL;
	interferers__clear(&item->interferers[part]);
}

static void drop(struct diagnosis_case *item)
{
	for (int part = 0; part < CASE_PARTS; part++)
		clear_part(item, (enum case_part)part);
	free(item);
}

void cases__free(struct cases *cases)
{
	for (size_t i = 0; i < cases->count; i++)
		drop(cases->items[i]);
	free(cases->items);
	*cases = (struct cases){0};
}

/* Returns the first index that is not before the id. */
static size_t place_of(const struct cases *cases, uint32_t id)
{
	size_t low = 0, high = cases->count;

	if (high && cases->items[high - 1]->id < id)
		return high;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (cases->items[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct diagnosis_case *cases__find(const struct cases *cases, uint32_t id)
{
	size_t at = place_of(cases, id);

	return at < cases->count && cases->items[at]->id == id ? cases->items[at] : NULL;
}

struct diagnosis_case *cases__get(struct cases *cases, uint32_t id)
{
	size_t at = place_of(cases, id);
	struct diagnosis_case *item;

	if (at < cases->count && cases->items[at]->id == id)
		return cases->items[at];
	if (grow(&cases->items, &cases->capacity, cases->count + 1, sizeof(*cases->items)))
		return NULL;
	item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->id = id;
	item->stale = true;
	memmove(&cases->items[at + 1], &cases->items[at], (cases->count - at) * sizeof(*cases->items));
	cases->items[at] = item;
	cases->count++;
	return item;
}

struct contribution *case__part(struct diagnosis_case *item, enum case_part part)
{
	item->stale = true;
	if (!item->parts[part])
		item->parts[part] = calloc(1, sizeof(*item->parts[part]));
	return item->parts[part];
}

int case__interfere(struct diagnosis_case *item, enum case_part part, const struct result_interferer *task)
{
	item->stale = true;
	return interferers__add(&item->interferers[part], task);
}

const struct contribution *case__sum(const struct diagnosis_case *item)
{
	const struct contribution *sum = item->parts[CASE_SUM] ? item->parts[CASE_SUM] : item->parts[CASE_PAST];

	return sum ? sum : &nothing;
}

/* Moves one part into another one of the same or another case. */
static int move(struct diagnosis_case *from, enum case_part part, struct diagnosis_case *into, enum case_part at)
{
	if (interferers__merge(&into->interferers[at], &from->interferers[part]))
		return -ENOMEM;
	if (into->parts[at] && from->parts[part]) {
		contribution__merge(into->parts[at], from->parts[part]);
	} else if (from->parts[part]) {
		into->parts[at] = from->parts[part];
		from->parts[part] = NULL;
	}
	clear_part(from, part);
	return 0;
}

int cases__merge(struct cases *cases, uint32_t from_id, uint32_t into_id)
{
	struct diagnosis_case *from = cases__get(cases, from_id), *into = cases__get(cases, into_id);

	if (!from || !into)
		return -ENOMEM;
	from->stale = into->stale = true;
	into->tried |= from->tried;
	return move(from, CASE_PAST, into, CASE_PAST);
}

/* Makes the sum; where only the past exists, case__sum returns the past. */
static int sum(struct diagnosis_case *item)
{
	clear_part(item, CASE_SUM);
	for (int part = CASE_PAST; part < CASE_SUM; part++) {
		if (interferers__merge(&item->interferers[CASE_SUM], &item->interferers[part]))
			return -ENOMEM;
	}
	interferers__sort(&item->interferers[CASE_SUM]);
	if (!item->parts[CASE_RETIRING] && !item->parts[CASE_STAYING])
		return 0;
	if (!case__part(item, CASE_SUM))
		return -ENOMEM;
	for (int part = CASE_PAST; part < CASE_SUM; part++) {
		if (item->parts[part])
			contribution__merge(item->parts[CASE_SUM], item->parts[part]);
	}
	return 0;
}

int cases__sum(struct cases *cases)
{
	for (size_t i = 0; i < cases->count; i++) {
		if (cases->items[i]->stale && sum(cases->items[i]))
			return -ENOMEM;
	}
	return 0;
}

int cases__retire(struct cases *cases, bool (*keep)(void *arg, uint32_t id), void *arg)
{
	size_t live = 0;
	int error = 0;

	for (size_t i = 0; i < cases->count; i++) {
		struct diagnosis_case *item = cases->items[i];

		if (!keep(arg, item->id)) {
			drop(item);
			continue;
		}
		/* The next window adds staying parts again, or lacks them. */
		item->stale = item->parts[CASE_STAYING] || item->interferers[CASE_STAYING].count;
		if (move(item, CASE_RETIRING, item, CASE_PAST))
			error = -ENOMEM;
		clear_part(item, CASE_STAYING);
		if (item->stale)
			clear_part(item, CASE_SUM);
		else if (item->parts[CASE_SUM]) {
			free(item->parts[CASE_SUM]);
			item->parts[CASE_SUM] = NULL;
		}
		cases->items[live++] = item;
	}
	cases->count = live;
	return error;
}

size_t cases__bytes(const struct cases *cases)
{
	size_t bytes = cases->capacity * sizeof(*cases->items);

	for (size_t i = 0; i < cases->count; i++) {
		const struct diagnosis_case *item = cases->items[i];

		bytes += sizeof(*item);
		for (int part = 0; part < CASE_PARTS; part++)
			bytes += (item->parts[part] ? sizeof(*item->parts[part]) : 0) +
				 item->interferers[part].capacity * sizeof(*item->interferers[part].items);
	}
	return bytes;
}
