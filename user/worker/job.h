/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The analysis of one job from the blocks of its nodes (docs/many-nodes.md). A window is judged when all nodes have
 * passed its end, or late_after_ns after the first one has; then it goes without those that have not. Where their
 * blocks come after all, soon enough, the job is judged again from that window on: the caller reads the stream from its
 * beginning into the emptied job, and only windows from there on are given to the receiver.
 *
 * Times called now_ns are the worker's own CLOCK_MONOTONIC.
 */
#ifndef VAPRO_WORKER_JOB_H
#define VAPRO_WORKER_JOB_H

#include "analysis/causes.h"
#include "wire/block.h"

struct worker_job;

struct worker_job_options {
	uint64_t late_after_ns;
	uint64_t again_ns;   /* blocks that come so long after their window was judged are only counted */
	size_t memory_bytes; /* of the analysis of a job and its blocks in memory, at most */
};

/* Is given the lines of each window, each with its newline; lines without a window come with the next one. */
struct worker_receiver {
	/* end_ns: UTC end of the window. Returns 0, or an errno that ends worker_job__advance(). */
	int (*take)(struct worker_receiver *receiver, uint64_t end_ns, const char *lines, size_t size);
	/* Gets the result of each window, before its lines; NULL: it is not wanted. */
	void (*result)(struct worker_receiver *receiver, const struct job_result *result);
};

/*
 * epoch: of the lease; from_ns: UTC, windows that end until then were judged in an earlier epoch and are not given to
 * the receiver again (0: none). Options are copied, the receiver outlives the job. Returns NULL when out of memory.
 */
struct worker_job *worker_job__new(uint64_t epoch, uint64_t from_ns, uint64_t now_ns,
				   const struct worker_job_options *options, struct worker_receiver *receiver);
void worker_job__free(struct worker_job *job);

/* Gets the causes of losses so far, which the caller frees. Returns 0, -ENOENT before the first window, or -ENOMEM. */
int worker_job__causes(struct worker_job *job, struct cause_list *list);

/* The job has blocks of this node in the stream: its analysis begins when they have come, or are late. */
int worker_job__expect(struct worker_job *job, const char *host);

/*
 * Adds a block, whose bytes the job takes; number: in the broker's stream, in the order in which blocks are read. A
 * block that names another job or host than its subject is refused. Returns 0 or -ENOMEM; what is wrong with a block is
 * counted, and stands in a `warning` record.
 */
int worker_job__put(struct worker_job *job, const char *subject, uint64_t number, void *bytes, size_t size,
		    uint64_t now_ns);

/*
 * Judges the windows that are complete. caught_up: all that the stream held has been put; before, no node is late.
 * Returns 0, the receiver's error, or a negative errno after which the job has to be read again.
 */
int worker_job__advance(struct worker_job *job, uint64_t now_ns, bool caught_up);

/*
 * Whether the blocks that are not acknowledged should be read again, since some are missing among those that came. True
 * once for each gap; the caller then puts these blocks again. caught_up as for worker_job__advance().
 */
bool worker_job__wants_reread(struct worker_job *job, uint64_t now_ns, bool caught_up);

/*
 * Whether the job should be judged again now; worker_job__again() empties it for that, as its next pass, and a
 * checkpoint that ends until the pass's from_ns may be loaded then.
 */
bool worker_job__wants_again(const struct worker_job *job, uint64_t now_ns);
uint64_t worker_job__again_from(const struct worker_job *job); /* UTC */
int worker_job__again(struct worker_job *job, uint64_t now_ns);

/* The blocks that came late cannot be judged any more, and are counted. */
void worker_job__too_late(struct worker_job *job);

/* Whether all nodes have ended the job, or nothing came for so long; finish() then judges the rest. */
bool worker_job__ended(const struct worker_job *job, uint64_t now_ns, uint64_t idle_ns);
int worker_job__finish(struct worker_job *job, uint64_t now_ns);

/*
 * A checkpoint (docs/many-nodes.md): the state after a window as bytes, compressed. It rests on the blocks before
 * number `resume` in the stream; what follows has to be put again. name: of the job, which must be the same when it is
 * loaded.
 */
struct worker_checkpoint {
	uint8_t *bytes; /* the caller frees them */
	size_t size;
	uint64_t end_ns; /* UTC end of the last window in it */
	uint64_t resume;
};

/* Returns 0; -EAGAIN where there is none at this moment; or another negative errno with a sentence. */
int worker_job__save(struct worker_job *job, const char *name, uint64_t now_ns, struct worker_checkpoint *checkpoint,
		     char *err, size_t err_size);

/*
 * Loads a checkpoint into a job to which nothing was put yet, or that was emptied; sets *resume. Returns 0 or a
 * negative errno with a sentence; the job is empty then. The bytes may be of anybody.
 */
int worker_job__load(struct worker_job *job, const char *name, const uint8_t *bytes, size_t size, uint64_t now_ns,
		     uint64_t *resume, char *err, size_t err_size);

/*
 * Whether windows were judged since the last checkpoint, and bytes of blocks came that pay for one more: those of all
 * checkpoints are at most a tenth of them. worker_job__saved() says how many bytes were written, or would be.
 */
bool worker_job__wants_save(const struct worker_job *job);
void worker_job__saved(struct worker_job *job, size_t size, bool written);

struct worker_job_state {
	uint64_t pass;	       /* of this epoch, from 0 */
	uint64_t from_ns;      /* of this pass: windows that end until then are valid as they were */
	uint64_t judged_ns;    /* UTC end of the last window judged; 0 none */
	uint64_t first_number; /* in the stream, of the job's first block; 0 none */
	uint64_t windows, blocks, duplicates, missing, late, refused;
	uint64_t input_bytes, checkpoint_bytes; /* of blocks that came, of checkpoints that were written */
	size_t hosts, bytes;
};

void worker_job__state(const struct worker_job *job, struct worker_job_state *state);

#endif
