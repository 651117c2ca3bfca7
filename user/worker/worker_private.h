/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VAPRO_WORKER_WORKER_PRIVATE_H
#define VAPRO_WORKER_WORKER_PRIVATE_H

#include "metrics/metrics.h"
#include "pipeline/line_sink.h"
#include "worker/keeper.h"
#include "worker/worker.h"

#define CHECKPOINTS 8 /* of a job that are retained at most */

/* A checkpoint at the broker. */
struct stored_checkpoint {
	uint64_t number, first; /* of its last and its first message */
	uint64_t end_ns;	/* UTC end of its last window */
	uint64_t saved_ns;	/* own clock */
};

/* A job of this worker. */
struct work {
	struct worker_receiver receiver; /* first */
	struct worker *worker;
	char key[WIRE_SUBJECT_MAX]; /* "<cluster>.<job>", tokens */
	char filter[WIRE_SUBJECT_MAX], out[WIRE_SUBJECT_MAX], state[WIRE_SUBJECT_MAX], reader_name[64];
	uint64_t epoch;
	uint64_t messages; /* published in this epoch and pass */
	struct worker_job *job;
	struct store_reader *reader;
	struct store_result result;
	struct line_sink *file;
	uint64_t last_sequence;				   /* of the latest block that was read */
	struct stored_checkpoint checkpoints[CHECKPOINTS]; /* oldest first */
	size_t checkpoint_count;
	uint64_t
	    resumed_ns; /* UTC end of the last window in the checkpoint that was loaded for this pass; 0: none was */
	uint64_t checkpoints_tried; /* for the ids of messages */
	bool checkpoint_failed;	    /* and the failure was reported */
	uint64_t finished_ns;	    /* own clock; 0: the job goes on */
};

struct worker {
	const struct worker_options *options;
	char id[LEASE_WORKER_MAX], host[256];
	struct store *store;
	struct keeper *keeper;
	struct line_sink *stdout_sink;
	struct metrics *metrics;	 /* NULL: none */
	uint64_t metrics_due_ns;	 /* own clock */
	uint64_t lost_lines, over_lines; /* of files that are closed */
	bool metrics_failed;
	struct work **works;
	size_t count, capacity;
};

/* Takes up a job of which the lease is held. Returns 0 or a negative errno; then it is tried again later. */
int work__open(struct worker *worker, const struct held_lease *lease, struct work **opened);
void work__free(struct work *work);

/* Sends the requests of the job's analysis to its nodes, after a window that ended at this time (UTC), if that is
 * recent.
 */
void work__request(struct work *work, uint64_t judged_ns);

/* Reads and judges for a while. Returns 0; a negative errno where the job must be dropped. */
int work__step(struct work *work);

/*
 * Checkpoints of the job at the broker. work__save() makes one where it is due, and acknowledges the blocks that are
 * not needed any more; it never fails: the job goes on without. Returns whether one was made.
 */
bool work__save(struct work *work);

/*
 * Removes all but the latest one, of a job that has ended and is not judged again: what comes later goes on from that
 * one.
 */
void work__retire(struct work *work);

/* Lists those that are there, from the latest one on (0: none). */
void work__list(struct work *work, uint64_t number);

/*
 * Loads the latest one that ends until then into the emptied job, and forgets those that end later. Returns the number
 * of the first block to be read, 0 where none could be loaded.
 */
uint64_t work__load(struct work *work, uint64_t until_ns);

/* Whether a checkpoint ends at that time or before. */
bool work__has(const struct work *work, uint64_t until_ns);

#endif
