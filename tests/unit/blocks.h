/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks of made-up jobs, for tests of the wire; included by files that are tests. */
#ifndef VAPRO_TESTS_BLOCKS_H
#define VAPRO_TESTS_BLOCKS_H

#include "captured.h"
#include "wire/split.h"

/* A receiver that stores the blocks. */
struct shelf {
	struct wire_receiver receiver; /* first */
	struct stored {
		struct block block;
		struct wire_job job;
		char host[WIRE_TEXT_MAX];
	} * stored;
	size_t count;
};

static inline void shelf__take(struct wire_receiver *receiver, const struct wire_job *job, const char *host,
			       const struct block *block)
{
	struct shelf *shelf = (struct shelf *)receiver;
	struct stored *stored;

	shelf->stored = reallocarray(shelf->stored, shelf->count + 1, sizeof(*stored));
	stored = &shelf->stored[shelf->count++];
	stored->block = *block;
	stored->job = *job;
	snprintf(stored->host, sizeof(stored->host), "%s", host);
}

static inline void shelf__clear(struct shelf *shelf)
{
	for (size_t i = 0; i < shelf->count; i++)
		free(shelf->stored[i].block.bytes);
	free(shelf->stored);
	*shelf = (struct shelf){.receiver.take = shelf__take};
}

#endif
