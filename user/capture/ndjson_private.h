/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of the NDJSON reader between reading and feeding; only the reader includes it. */
#ifndef VAPRO_COLLECT_NDJSON_PRIVATE_H
#define VAPRO_COLLECT_NDJSON_PRIVATE_H

#include "capture/ndjson_line.h"
#include "capture/stream.h"
#include "base/intern.h"

struct ndjson {
	char *path;		      /* file read last, for messages */
	struct vapro_bundle *bundles; /* by end */
	size_t count, capacity;
	struct vapro_thread *threads;
	struct stream_seen *seen; /* one per thread */
	struct vapro_place *places;
	size_t thread_count, thread_capacity, seen_capacity, place_capacity;
	struct vapro_state *states;
	size_t state_count, state_capacity;
	struct intern *thread_keys, *state_keys, *hosts;
	struct ndjson_names names;
	uint64_t host_count;
	bool instructions;
};

/* Makes ids and order independent of the lines' order, and numbers the calls. Returns 0 or -ENOMEM. */
int ndjson__order(struct ndjson *ndjson);

#endif
