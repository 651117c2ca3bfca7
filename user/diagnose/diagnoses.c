/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/diagnoses.h"

#include "base/grow.h"

static const struct contribution nothing;

static void clear_part(struct diagnosis_of *item, enum case_part part)
{
	free(item->parts[part]);
	item->parts[part] = NULL;
	interferers__clear(&item->interferers[part]);
}

static void drop(struct diagnosis_of *item)
{
	for (int part = 0; part < CASE_PARTS; part++)
		clear_part(item, (enum case_part)part);
	free(item);
}

void diagnoses__free(struct diagnoses *diagnoses)
{
	for (size_t i = 0; i < diagnoses->count; i++)
		drop(diagnoses->items[i]);
	free(diagnoses->items);
	*diagnoses = (struct diagnoses){0};
}

/* Returns the first index that is not before the id. */
static size_t place_of(const struct diagnoses *diagnoses, uint32_t id)
{
	size_t low = 0, high = diagnoses->count;

	if (high && diagnoses->items[high - 1]->id < id)
		return high;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (diagnoses->items[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct diagnosis_of *diagnoses__find(const struct diagnoses *diagnoses, uint32_t id)
{
	size_t at = place_of(diagnoses, id);

	return at < diagnoses->count && diagnoses->items[at]->id == id ? diagnoses->items[at] : NULL;
}

struct diagnosis_of *diagnoses__get(struct diagnoses *diagnoses, uint32_t id)
{
	size_t at = place_of(diagnoses, id);
	struct diagnosis_of *item;

	if (at < diagnoses->count && diagnoses->items[at]->id == id)
		return diagnoses->items[at];
	if (grow(&diagnoses->items, &diagnoses->capacity, diagnoses->count + 1, sizeof(*diagnoses->items)))
		return NULL;
	item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->id = id;
	item->stale = true;
	memmove(&diagnoses->items[at + 1], &diagnoses->items[at], (diagnoses->count - at) * sizeof(*diagnoses->items));
	diagnoses->items[at] = item;
	diagnoses->count++;
	return item;
}

struct contribution *diagnoses__part(struct diagnosis_of *item, enum case_part part)
{
	item->stale = true;
	if (!item->parts[part])
		item->parts[part] = calloc(1, sizeof(*item->parts[part]));
	return item->parts[part];
}

int diagnoses__interfere(struct diagnosis_of *item, enum case_part part, const struct result_interferer *task,
			 uint32_t row, uint64_t bin)
{
	item->stale = true;
	return interferers__add(&item->interferers[part], task, row, bin);
}

const struct contribution *diagnoses__sum_of(const struct diagnosis_of *item)
{
	const struct contribution *sum = item->parts[CASE_SUM] ? item->parts[CASE_SUM] : item->parts[CASE_PAST];

	return sum ? sum : &nothing;
}

/* Moves one part into another one of the same or another case. */
static int move(struct diagnosis_of *from, enum case_part part, struct diagnosis_of *into, enum case_part at)
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

int diagnoses__merge(struct diagnoses *diagnoses, uint32_t from_id, uint32_t into_id)
{
	struct diagnosis_of *from = diagnoses__get(diagnoses, from_id), *into = diagnoses__get(diagnoses, into_id);

	if (!from || !into)
		return -ENOMEM;
	from->stale = into->stale = true;
	into->tried |= from->tried;
	return move(from, CASE_PAST, into, CASE_PAST);
}

/* Makes the sum; where only the past exists, diagnoses__sum_of returns the past. */
static int sum(struct diagnosis_of *item)
{
	clear_part(item, CASE_SUM);
	for (int part = CASE_PAST; part < CASE_SUM; part++) {
		if (interferers__merge(&item->interferers[CASE_SUM], &item->interferers[part]))
			return -ENOMEM;
	}
	interferers__sort(&item->interferers[CASE_SUM]);
	if (!item->parts[CASE_RETIRING] && !item->parts[CASE_STAYING])
		return 0;
	if (!diagnoses__part(item, CASE_SUM))
		return -ENOMEM;
	for (int part = CASE_PAST; part < CASE_SUM; part++) {
		if (item->parts[part])
			contribution__merge(item->parts[CASE_SUM], item->parts[part]);
	}
	return 0;
}

int diagnoses__sum(struct diagnoses *diagnoses)
{
	for (size_t i = 0; i < diagnoses->count; i++) {
		if (diagnoses->items[i]->stale && sum(diagnoses->items[i]))
			return -ENOMEM;
	}
	return 0;
}

int diagnoses__retire(struct diagnoses *diagnoses, bool (*keep)(void *arg, uint32_t id), void *arg)
{
	size_t live = 0;
	int error = 0;

	for (size_t i = 0; i < diagnoses->count; i++) {
		struct diagnosis_of *item = diagnoses->items[i];

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
		diagnoses->items[live++] = item;
	}
	diagnoses->count = live;
	return error;
}

size_t diagnoses__bytes(const struct diagnoses *diagnoses)
{
	size_t bytes = diagnoses->capacity * sizeof(*diagnoses->items);

	for (size_t i = 0; i < diagnoses->count; i++) {
		const struct diagnosis_of *item = diagnoses->items[i];

		bytes += sizeof(*item);
		for (int part = 0; part < CASE_PARTS; part++)
			bytes += (item->parts[part] ? sizeof(*item->parts[part]) : 0) +
				 item->interferers[part].capacity * sizeof(*item->interferers[part].items);
	}
	return bytes;
}
