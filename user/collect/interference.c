// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/interference.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"

#define BATCH 1024

struct entry {
	struct kernel_interference_key key;
	struct kernel_interference value;
};

struct interference {
	struct kernel_side *side;
	struct kernel_interference_key keys[BATCH], dead[BATCH];
	struct kernel_interference values[BATCH];
	struct entry *entries; /* of the present read */
	size_t count, capacity;
};

struct interference *interference__new(struct kernel_side *side)
{
	struct interference *interference = calloc(1, sizeof(*interference));

	if (interference)
		interference->side = side;
	return interference;
}

void interference__free(struct interference *interference)
{
	if (!interference)
		return;
	free(interference->entries);
	free(interference);
}

uint64_t interference__bin(uint32_t low, uint64_t near)
{
	return near - (uint32_t)((uint32_t)near - low);
}

/* Entries of one task and bin follow each other: in a capture what they have in common is written once. */
static int compare(const void *a, const void *b)
{
	const struct kernel_interference_key *one = &((const struct entry *)a)->key,
					     *other = &((const struct entry *)b)->key;

	if (one->bin != other->bin)
		return (int32_t)(one->bin - other->bin) < 0 ? -1 : 1;
	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	return (one->tid > other->tid) - (one->tid < other->tid);
}

/* Takes finished entries of a batch out of the map. Returns whether all have room; others stay for the next read. */
static bool take(struct interference *interference, int map, uint32_t count, uint64_t last, uint64_t now_bin)
{
	uint32_t dying = 0;

	if (grow(&interference->entries, &interference->capacity, interference->count + count,
		 sizeof(*interference->entries)))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct kernel_interference_key *key = &interference->keys[i];

		if (interference__bin(key->bin, now_bin) > last)
			continue;
		interference->entries[interference->count++] = (struct entry){*key, interference->values[i]};
		interference->dead[dying++] = *key;
	}
	if (dying)
		bpf_map_delete_batch(map, interference->dead, &dying, NULL);
	return true;
}

void interference__read(struct interference *interference, enum kernel_map which, uint64_t last, uint64_t now_bin,
			interference_call call, void *ctx)
{
	int map = kernel_side__map(interference->side, which), status = 0;
	uint32_t in, out = 0, count;
	bool first = true;

	interference->count = 0;
	while (!status) {
		count = BATCH;
		in = out;
		status = bpf_map_lookup_batch(map, first ? NULL : &in, &out, interference->keys, interference->values,
					      &count, NULL);
		if ((status && errno != ENOENT) || !take(interference, map, count, last, now_bin))
			break;
		first = false;
	}
	if (interference->count)
		qsort(interference->entries, interference->count, sizeof(*interference->entries), compare);
	for (size_t i = 0; i < interference->count; i++)
		call(ctx, &interference->entries[i].key, &interference->entries[i].value);
}
