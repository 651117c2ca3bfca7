/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/cases.h"

#include "model/grow.h"

static void clear(struct diagnosis_case *item)
{
	interferers__clear(&item->past_interferers);
	interferers__clear(&item->retiring_interferers);
	interferers__clear(&item->staying_interferers);
	interferers__clear(&item->sum_interferers);
}

void cases__free(struct cases *cases)
{
	for (size_t i = 0; i < cases->count; i++)
		clear(&cases->items[i]);
	free(cases->items);
	*cases = (struct cases){0};
}

/* The first place that is not before the id. */
static size_t place_of(const struct cases *cases, uint32_t id)
{
	size_t low = 0, high = cases->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (cases->items[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct diagnosis_case *cases__find(const struct cases *cases, uint32_t id)
{
	size_t at = place_of(cases, id);

	return at < cases->count && cases->items[at].id == id ? &cases->items[at] : NULL;
}

struct diagnosis_case *cases__get(struct cases *cases, uint32_t id)
{
	size_t low = place_of(cases, id);

	if (low < cases->count && cases->items[low].id == id)
		return &cases->items[low];
	if (grow(&cases->items, &cases->capacity, cases->count + 1, sizeof(*cases->items)))
		return NULL;
	memmove(&cases->items[low + 1], &cases->items[low], (cases->count - low) * sizeof(*cases->items));
	cases->items[low] = (struct diagnosis_case){.id = id};
	cases->count++;
	return &cases->items[low];
}

int cases__merge(struct cases *cases, uint32_t from_id, uint32_t into_id)
{
	struct diagnosis_case *from, *into;

	/* Both must exist before either pointer is taken. */
	if (!cases__get(cases, from_id) || !cases__get(cases, into_id))
		return -ENOMEM;
	from = cases__get(cases, from_id);
	into = cases__get(cases, into_id);
	contribution__merge(&into->past, &from->past);
	from->past = (struct contribution){0};
	into->tried |= from->tried;
	if (interferers__merge(&into->past_interferers, &from->past_interferers))
		return -ENOMEM;
	interferers__clear(&from->past_interferers);
	return 0;
}

int cases__sum(struct cases *cases)
{
	for (size_t i = 0; i < cases->count; i++) {
		struct diagnosis_case *item = &cases->items[i];

		item->sum = item->past;
		contribution__merge(&item->sum, &item->retiring);
		contribution__merge(&item->sum, &item->staying);
		interferers__clear(&item->sum_interferers);
		if (interferers__merge(&item->sum_interferers, &item->past_interferers) ||
		    interferers__merge(&item->sum_interferers, &item->retiring_interferers) ||
		    interferers__merge(&item->sum_interferers, &item->staying_interferers))
			return -ENOMEM;
		interferers__sort(&item->sum_interferers);
	}
	return 0;
}

int cases__retire(struct cases *cases, bool (*keep)(void *arg, uint32_t id), void *arg)
{
	size_t kept = 0;
	int error = 0;

	for (size_t i = 0; i < cases->count; i++) {
		struct diagnosis_case *item = &cases->items[i];

		if (!keep(arg, item->id)) {
			clear(item);
			continue;
		}
		contribution__merge(&item->past, &item->retiring);
		item->retiring = item->staying = (struct contribution){0};
		if (interferers__merge(&item->past_interferers, &item->retiring_interferers))
			error = -ENOMEM;
		interferers__clear(&item->retiring_interferers);
		interferers__clear(&item->staying_interferers);
		cases->items[kept++] = *item;
	}
	cases->count = kept;
	return error;
}
