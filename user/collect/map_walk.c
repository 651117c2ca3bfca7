// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/map_walk.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 512 /* entries: more than any bucket has */

/* Reads batches of a map with keys and values of these sizes, with room for BATCH of each. */
static void walk(int map, const struct bpf_map_info *info, char *keys, char *values, map_entry_dies *dies, void *ctx)
{
	uint32_t in, out = 0;
	int status = 0;

	for (bool first = true; !status; first = false) {
		uint32_t count = BATCH, dying = 0;

		in = out;
		status = bpf_map_lookup_batch(map, first ? NULL : &in, &out, keys, values, &count, NULL);
		if (status && errno != ENOENT)
			break;
		for (uint32_t i = 0; i < count; i++) {
			const char *key = keys + (size_t)i * info->key_size;

			/* keys to be deleted are moved to the front */
			if (dies(ctx, key, values + (size_t)i * info->value_size))
				memmove(keys + (size_t)dying++ * info->key_size, key, info->key_size);
		}
		if (dying)
			bpf_map_delete_batch(map, keys, &dying, NULL);
	}
}

void map_walk__delete(int map, map_entry_dies *dies, void *ctx)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	char *keys, *values;

	if (bpf_obj_get_info_by_fd(map, &info, &size))
		return;
	keys = calloc(BATCH, info.key_size);
	values = calloc(BATCH, info.value_size);
	if (keys && values)
		walk(map, &info, keys, values, dies, ctx);
	free(keys);
	free(values);
}
