// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/requests.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#define BATCH 512

void requests__age(int map, request_stale stale, void *ctx)
{
	struct kernel_request_key *keys = calloc(BATCH, sizeof(*keys)), *dead = calloc(BATCH, sizeof(*dead));
	struct kernel_request *requests = calloc(BATCH, sizeof(*requests));
	uint32_t in, out = 0, count, dying;
	int status = keys && dead && requests ? 0 : -ENOMEM;

	for (bool first = true; !status; first = false) {
		count = BATCH;
		in = out;
		status = bpf_map_lookup_batch(map, first ? NULL : &in, &out, keys, requests, &count, NULL);
		if (status && errno != ENOENT)
			break;
		dying = 0;
		for (uint32_t i = 0; i < count; i++)
			if (stale(ctx, keys[i].tgid, &requests[i]))
				dead[dying++] = keys[i];
		if (dying)
			bpf_map_delete_batch(map, dead, &dying, NULL);
	}
	free(keys);
	free(dead);
	free(requests);
}
