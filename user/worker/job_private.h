/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by job.c (blocks come in) and job_windows.c (windows are judged). */
#ifndef VAPRO_WORKER_JOB_PRIVATE_H
#define VAPRO_WORKER_JOB_PRIVATE_H

#include "capture/capture_format.h"
#include "worker/job.h"
#include "worker/run.h"

#define JUDGED 256 /* windows whose time of judgement is remembered */

/* A run as a source of the merge. */
struct member {
	struct worker_run *run;
	int source;		   /* number in the merge, -1: not yet */
	uint64_t missed_ns;	   /* UTC begin of the first window that was judged without it; 0 none */
	uint64_t missing, dropped; /* blocks that a warning has named */
	bool timed;		   /* a block with times has come */
	bool introduced;	   /* its hello record is among the lines */
	uint64_t came_ns;	   /* of its latest block */
	uint64_t gap_since_ns;	   /* blocks wait behind a gap since then; 0: none */
	uint64_t new_gap_since_ns; /* blocks wait since then behind a gap that was not read again; 0: none */
	uint64_t reread_to;	   /* gaps before this block were read again REREADS times, and stayed */
	uint64_t reread_top;	   /* the block after the last that had come when they began to be read again */
	uint64_t awaited;	   /* first block of the gap that is read again */
	unsigned int rereads;	   /* since it is awaited */
};

struct judged {
	uint64_t begin_ns, end_ns, at_ns; /* window; when it was judged */
};

struct worker_job {
	struct stream_sink sink; /* first: between the merge and the pipeline */
	struct worker_job_options options;
	struct worker_receiver *receiver;
	uint64_t epoch, pass, from_ns;
	struct stream_merge *merge;
	struct pipeline *pipeline;
	struct member *members;
	size_t member_count, member_capacity;
	char **expected; /* hosts that have blocks in the stream */
	size_t expected_count, expected_capacity;
	struct capture_buffer lines;
	struct judged judged[JUDGED]; /* a ring */
	uint64_t judged_count;
	uint64_t due_ns, due_since_ns; /* the window that is waited for */
	uint64_t first_ns, latest_ns;  /* when the first and the latest block came */
	uint64_t again_ns;	       /* UTC: judge again from here; UINT64_MAX: no */
	uint64_t again_since_ns;       /* when the first late block of it came */
	uint64_t again_blocks;	       /* late blocks that wait for that */
	uint64_t pass_began_ns, caught_up_ns;
	uint64_t reread_began_ns; /* blocks are read again since then; 0: they are not */
	uint64_t reread_after_ns; /* they are not read again before */
	uint64_t late, refused, troubles;
	uint64_t last_judged_ns;
	/* what the pipeline was made of: a checkpoint needs the same */
	char *tunables, *hello;
	uint64_t memory_cap;
	uint64_t number;       /* in the stream, of the latest block */
	uint64_t through;      /* loaded: blocks until this number were counted */
	uint64_t first_number; /* of the first block ever */
	uint64_t highest;      /* number of a block whose bytes were counted */
	uint64_t input_bytes, checkpoint_bytes;
	uint64_t expected_bytes; /* of the next checkpoint, by the one before */
	uint64_t saved_ns;	 /* UTC end of the last window in a checkpoint */
	bool loaded;
	bool begun, finished;
	bool overfull; /* the memory was full: nothing is judged again */
};

/* Adds a warning of a host to the lines, a few in each window. Returns 0 or -ENOMEM. */
int worker_job__warn(struct worker_job *job, const char *host, const char *code, const char *text);

bool worker_job__same_host(const struct member *a, const char *host);
size_t worker_job__count_hosts(const struct worker_job *job);

/*
 * Makes the pipeline by what the first run says of itself, as `vapro analyze` does from the first capture, and makes it
 * again by the texts that are part of a checkpoint.
 */
int worker_job__make_pipeline(struct worker_job *job);
int worker_job__remake_pipeline(struct worker_job *job);

/* Adds the hello records of nodes that were introduced since the last call to the lines. Returns 0 or -ENOMEM. */
int worker_job__add_hellos(struct worker_job *job);

/* Adds a run, whose number as a source of the merge is not yet known. NULL: out of memory. */
struct member *worker_job__add_member(struct worker_job *job, struct worker_run *run);

/* Empties the job of all that came. Returns 0 or -ENOMEM. */
int worker_job__reset(struct worker_job *job, uint64_t now_ns);

/* The window that was judged and holds the time, or NULL. */
const struct judged *worker_job__judged_at(const struct worker_job *job, uint64_t utc_ns);

#endif
