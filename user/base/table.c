/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

struct slot {
	uint64_t a, b;
	uint32_t value;
	bool used;
};

struct table {
	struct slot *slots;
	size_t size, used; /* size is a power of two */
};

uint64_t table__hash(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ULL ^ (b + 0x7f4a7c159e3779b9ULL) * 0xbf58476d1ce4e5b9ULL;

	x ^= x >> 31;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 29;
}

struct table *table__new(void)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->size = 64;
	table->slots = calloc(table->size, sizeof(*table->slots));
	if (!table->slots) {
		free(table);
		return NULL;
	}
	return table;
}

void table__free(struct table *table)
{
	if (!table)
		return;
	free(table->slots);
	free(table);
}

static struct slot *find(struct slot *slots, size_t size, uint64_t a, uint64_t b)
{
	size_t i = table__hash(a, b) & (size - 1);

	while (slots[i].used && (slots[i].a != a || slots[i].b != b))
		i = (i + 1) & (size - 1);
	return &slots[i];
}

bool table__get(const struct table *table, uint64_t a, uint64_t b, uint32_t *value)
{
	const struct slot *slot = find(table->slots, table->size, a, b);

	if (!slot->used)
		return false;
	*value = slot->value;
	return true;
}

static int enlarge(struct table *table)
{
	size_t size = table->size * 2;
	struct slot *slots = calloc(size, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->size; i++) {
		if (table->slots[i].used)
			*find(slots, size, table->slots[i].a, table->slots[i].b) = table->slots[i];
	}
	free(table->slots);
	table->slots = slots;
	table->size = size;
	return 0;
}

int table__put(struct table *table, uint64_t a, uint64_t b, uint32_t value)
{
	struct slot *slot = find(table->slots, table->size, a, b);

	if (!slot->used) {
		if (table->used * 3 >= table->size * 2) {
			if (enlarge(table))
				return -ENOMEM;
			slot = find(table->slots, table->size, a, b);
		}
		table->used++;
	}
	*slot = (struct slot){.a = a, .b = b, .value = value, .used = true};
	return 0;
}

bool table__next(const struct table *table, size_t *at, uint64_t *a, uint64_t *b, uint32_t *value)
{
	for (; *at < table->size; ++*at) {
		const struct slot *slot = &table->slots[*at];

		if (!slot->used)
			continue;
		*a = slot->a;
		*b = slot->b;
		*value = slot->value;
		++*at;
		return true;
	}
	return false;
}

int table__prune(struct table *table, bool (*keeps)(const void *ctx, uint32_t value), const void *ctx)
{
	struct slot *slots = calloc(table->size, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	table->used = 0;
	for (size_t i = 0; i < table->size; i++) {
		const struct slot *slot = &table->slots[i];

		if (!slot->used || !keeps(ctx, slot->value))
			continue;
		*find(slots, table->size, slot->a, slot->b) = *slot;
		table->used++;
	}
	free(table->slots);
	table->slots = slots;
	return 0;
}

size_t table__size(const struct table *table)
{
	return table->size;
}

int table__reserve(struct table *table, size_t size)
{
	while (table->size < size) {
		if (enlarge(table))
			return -ENOMEM;
	}
	return 0;
}

size_t table__bytes(const struct table *table)
{
	return sizeof(*table) + table->size * sizeof(*table->slots);
}
