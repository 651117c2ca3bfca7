/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blocks that the nodes of one job have published, as the captures of these nodes: read from the stream in its
 * order, and merged as files are. Nothing is waited for but what the stream holds; of a job that runs that is its
 * begin.
 */
#ifndef VAPRO_SOURCE_BLOCKS_H
#define VAPRO_SOURCE_BLOCKS_H

#include "capture/capture.h"
#include "capture/capture_merge.h"
#include "source/source.h"

struct source_blocks;

/*
 * Connects, and reads the stream until each node of the job has introduced itself. Returns 0, or an error of
 * source__open(), or -ENODATA where no block can be read.
 */
int source_blocks__open(struct source_blocks **opened, const struct source_options *options, char *err,
			size_t err_size);
void source_blocks__close(struct source_blocks *blocks);

const struct wire_job *source_blocks__job(const struct source_blocks *blocks);
size_t source_blocks__hosts(const struct source_blocks *blocks);

/*
 * Gets what a capture says of itself, as capture__run_info() does. Returns 0, -EINVAL for tunables that this program
 * does not know, or -ENOENT where no node introduced itself, and info has the defaults; both with a sentence in err.
 */
int source_blocks__info(const struct source_blocks *blocks, struct capture_info *info, char *err, size_t err_size);

/*
 * Feeds all blocks of the job that the stream holds, once, as capture_merge() does files. What the merge holds, packed
 * blocks among it, is at most about memory_bytes: beyond it no node is waited for. Returns 0, or a negative errno with
 * a sentence in err.
 */
int source_blocks__feed(struct source_blocks *blocks, struct stream_sink *sink, size_t memory_bytes,
			struct merge_watch *watch, char *err, size_t err_size);

/* What was found, after the feed. */
struct source_counts {
	uint64_t blocks, duplicates;
	uint64_t missing;  /* blocks of gaps in the nodes' sequences */
	uint64_t refused;  /* blocks that are damaged, or speak for another host or job */
	bool overfull;	   /* memory did not suffice to wait for all nodes in each window */
	size_t running;	   /* runs of nodes that have not ended */
	char refusal[512]; /* the first refused block's sentence */
};

void source_blocks__counts(const struct source_blocks *blocks, struct source_counts *counts);

#endif
