/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blocks of one run of vaprod and one job, in their order, whatever order they come in: a source of the merge.
 * Blocks that came before are duplicates; a gap in the sequence is waited for until it is skipped. Blocks stay packed
 * until they are read.
 */
#ifndef VAPRO_WORKER_RUN_H
#define VAPRO_WORKER_RUN_H

#include <vapro/analysis.h>

#include "capture/stream_merge.h"
#include "wire/block.h"

struct worker_run;

enum run_fate {
	RUN_QUEUED,
	RUN_DUPLICATE, /* came before */
	RUN_SKIPPED,   /* belongs to a gap that was skipped: too late */
};

struct run_counts {
	uint64_t blocks, duplicates;
	uint64_t missing; /* blocks of gaps that were skipped */
	uint64_t refused; /* blocks that could not be read */
	/* as the node counts them */
	uint64_t dropped_blocks, dropped_fragments;
};

/* The first block's head. Returns NULL when out of memory. */
struct worker_run *worker_run__new(const struct block_head *head);
void worker_run__free(struct worker_run *run);

/*
 * Adds a block; the run takes the bytes where it is queued. number: in the broker's stream. bytes NULL: the block is
 * passed over in its place. counted: it came before the checkpoint that was loaded. Returns a run_fate or -ENOMEM.
 */
int worker_run__put(struct worker_run *run, const struct block_head *head, uint64_t number, void *bytes, size_t size,
		    bool counted);

/* Reads the first few blocks, and an introduction, to learn who takes part. Returns 0 or -ENOMEM. */
int worker_run__look(struct worker_run *run);

/* Whether blocks wait behind a gap. */
bool worker_run__has_gap(const struct worker_run *run);

/*
 * Returns the first block that is missing before others and may still come: the node has not counted it as discarded.
 * The blocks before it may wait for another node. UINT64_MAX: none is missing. worker_run__top() is the number after
 * the latest block that came, 0 where none has.
 */
uint64_t worker_run__awaited(const struct worker_run *run);
uint64_t worker_run__top(const struct worker_run *run);

/* Skips the gap, where there is one, and notes at_ns with it. Returns whether there was. */
bool worker_run__skip(struct worker_run *run, uint64_t at_ns);

/* Whether the block belongs to a gap that was skipped; gets what was noted. */
bool worker_run__was_skipped(const struct worker_run *run, uint64_t sequence, uint64_t *at_ns);

/* What is missing among the blocks that came is not waited for. */
void worker_run__settle(struct worker_run *run);

/* No block follows: the source ends once its blocks are read; gaps are skipped. */
void worker_run__end(struct worker_run *run, uint64_t at_ns);

struct merge_reader *worker_run__reader(struct worker_run *run);

/* What the run's node leaves out of an image by itself: units of functions that never wait (functions__unit()). */
struct run_set {
	char image[256]; /* file name of the MPI functions */
	uint32_t own;
};

/* Gets the sets of the latest window that was read: none where the run has ended. They live until the next block. */
const struct run_set *worker_run__sets(const struct worker_run *run, size_t *count);

/* A call-site of which the run's node has reported what became of a hop, or that was requested of it. */
struct run_hop {
	char *site, *symbol; /* symbol NULL: unknown */
	enum vapro_hop hop;  /* VAPRO_HOP_NONE: nothing was reported */
	unsigned missed;     /* times that the worker found it behind other nodes */
};

/* Whether the run's last block was read. */
bool worker_run__has_ended(const struct worker_run *run);

/* Gets all of them: none where the run has ended. */
const struct run_hop *worker_run__hops(const struct worker_run *run, size_t *count);

/* Returns the one of a call-site, which is added where it is new; NULL where there are too many, or no memory. */
struct run_hop *worker_run__hop(struct worker_run *run, const char *site);

/* The job for which the run's node counts parts of the time, as its blocks say; "": it counts all, or has ended. */
const char *worker_run__parts_job(const struct worker_run *run);

const char *worker_run__host(const struct worker_run *run);
uint64_t worker_run__id(const struct worker_run *run);
const struct run_counts *worker_run__counts(const struct worker_run *run);

/* Texts of the run's introduction; NULL before it was read. */
const char *worker_run__tunables(const struct worker_run *run);
const char *worker_run__hello(const struct worker_run *run);

/* Adds the ranks seen so far to the set (a byte for each, of size bytes); returns the job's size, 0 unknown. */
uint32_t worker_run__ranks(const struct worker_run *run, uint8_t *set, size_t size);

/* Gets the latest sentence about a refused block, once; NULL: none. */
const char *worker_run__trouble(struct worker_run *run);

/*
 * Checkpoints: what the run knows but its blocks. first_held: the first block of which its reader still needs
 * something, as the reader counts them (UINT64_MAX: none); what was before is forgotten.
 */
struct archive;

void worker_run__release(struct worker_run *run, uint64_t first_held);
void worker_run__archive(struct worker_run **run, struct archive *archive);

/* The least number in the stream of a block that has to be read again, UINT64_MAX: none has come. */
uint64_t worker_run__resume(const struct worker_run *run);

/* Whether the block was read, here or before the checkpoint, and whether it was passed over then. */
bool worker_run__was_read(const struct worker_run *run, uint64_t sequence, bool *passed);

size_t worker_run__bytes(const struct worker_run *run);

#endif
