/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sink that divides the events of a vaprod by job, and packs those of each job into blocks. Bundles, interference,
 * accounts, places and times seen belong to the job of their thread, facts and stages to theirs, process records to
 * that which they name; windows, hops, names and warnings about the node belong to all jobs. A job ends with the window
 * after its last thread; when it comes back it is a new run.
 */
#ifndef VAPRO_WIRE_SPLIT_H
#define VAPRO_WIRE_SPLIT_H

#include "wire/block.h"

/* Receives a finished block of the job; the bytes are the receiver's to free. */
struct wire_receiver {
	void (*take)(struct wire_receiver *receiver, const struct wire_job *job, const char *host,
		     const struct block *block);
};

struct wire_split;

/* The texts are copied; host is "" where the threads' own is to be taken. Returns NULL when out of memory. */
struct wire_split *wire_split__new(const char *cluster, const char *host, const char *tunables,
				   struct wire_receiver *receiver);
void wire_split__free(struct wire_split *split);

/* The sink, which lives as long as the object; its close() packs the rest, and marks each job's last block. */
struct stream_sink *wire_split__sink(struct wire_split *split);

/* Packs the blocks that are due. */
void wire_split__tick(struct wire_split *split, uint64_t now_ns);

/* Counts discarded blocks of a run; they stand in the heads of its next blocks. */
void wire_split__dropped(struct wire_split *split, const struct block_drop *drop);

/*
 * Fragments of a job in discarded blocks since the last call: lost.published of its next facts. *again: those that
 * facts in discarded blocks had named, so that readers of the blocks do not know of them yet.
 */
uint64_t wire_split__take_lost(struct wire_split *split, const char *job, uint32_t user, uint64_t *again);

#endif
