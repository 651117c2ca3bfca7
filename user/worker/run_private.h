/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by run.c and run_checkpoint.c. */
#ifndef VAPRO_WORKER_RUN_PRIVATE_H
#define VAPRO_WORKER_RUN_PRIVATE_H

#include "capture/held_events.h"
#include "worker/run.h"

#define LOOKS 4		     /* blocks read ahead of the merge, to learn who takes part */
#define RANKS_MAX (1U << 20) /* ranks that are noted */

#define GAPS 64 /* that are remembered */

struct queued {
	struct queued *next;
	uint64_t sequence;
	uint64_t number; /* in the broker's stream */
	uint64_t dropped_blocks;
	uint32_t flags;
	size_t size;
	void *bytes;
};

/* A block that was read, and that a checkpoint may need. */
struct recent {
	uint64_t sequence, number;
	uint64_t lost; /* blocks, with the next facts, as it was before this one */
	uint32_t events;
	bool passed; /* over, in its place */
};

#define RUN_SETS 8 /* images of a job on a node */

struct run_sets {
	struct run_set list[RUN_SETS], next[RUN_SETS]; /* of the latest window, of the one that ends next */
	size_t count, next_count;
};

/* Takes the facts of a process; those of a window are valid from its end on. */
void run_sets__note(struct run_sets *sets, const struct vapro_process_facts *facts);
void run_sets__end_window(struct run_sets *sets);

struct run_hops {
	struct run_hop *list;
	size_t count, capacity;
};

void run_hops__note(struct worker_run *run, const struct stream_hop *event);
void run_hops__free(struct run_hops *hops);

struct worker_run {
	struct merge_reader reader; /* first */
	struct stream_sink sink;    /* of the events of a block */
	struct block_reader *blocks;
	struct held_events *events;  /* of blocks read */
	uint64_t settled;	     /* gaps before this sequence are not waited for */
	uint64_t id, next;	     /* next: sequence of the block to be read */
	struct queued *queue, *tail; /* by sequence */
	struct gap {
		uint64_t from, to; /* sequence */
		uint64_t at_ns;	   /* what the caller gave */
		uint64_t lost;	   /* blocks of it of which the node knows nothing */
	} gaps[GAPS];		   /* the latest gaps that were skipped, in a ring */
	uint32_t gap_count;
	size_t queued_bytes;
	struct recent *recent; /* in order */
	size_t recent_count, recent_capacity;
	size_t at;	    /* recent block whose events are given */
	uint32_t given;	    /* events of it */
	uint64_t first;	    /* loaded: blocks before were done with */
	uint64_t replay_to; /* loaded: blocks before were read */
	uint64_t *passed;   /* loaded: blocks of these that were passed over */
	size_t passed_count, passed_capacity;
	uint64_t lost;		   /* blocks that the next facts report */
	uint64_t lost_total;	   /* of which the node knows nothing */
	uint64_t fragments, reads; /* of blocks that were read: the mean */
	uint32_t windows;	   /* in events */
	struct run_sets sets;
	struct run_hops hops;
	char parts_job[WIRE_TEXT_MAX]; /* the node counts parts of the time for it; "": all of the time */
	bool last_read;		       /* the last block was read: the last of the windows is the run's */
	bool ended;		       /* no block follows */
	uint32_t looks;
	uint32_t world_size;
	int32_t *ranks;
	size_t rank_count, rank_capacity;
	struct run_counts counts;
	uint64_t dropped_before; /* sequence of the block that reported counts.dropped_blocks: these were all before
				    that block */
	char trouble[512];
	bool has_trouble;
	char host[WIRE_TEXT_MAX];
};

#endif
