/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that takes and renews this worker's leases, so that a long analysis does not cost them. It renews each
 * RENEW_NS, and gives up what it could not renew before another worker may take it. Where the worker itself is stuck it
 * stops renewing.
 */
#ifndef VAPRO_WORKER_KEEPER_H
#define VAPRO_WORKER_KEEPER_H

#include "worker/lease.h"
#include "worker/store.h"

struct keeper;

struct keeper_options {
	uint64_t renew_ns, expire_ns;
	const char *worker; /* id, unique; letters of tokens only */
};

/* The store outlives the keeper. Returns NULL with a sentence in err. */
struct keeper *keeper__start(struct store *store, const struct keeper_options *options, char *err, size_t err_size);

/*
 * Hands all leases back, and ends the thread. Where that waits for a broker until then (own clock), the store is
 * abandoned, and others have to wait for the leases' end.
 */
void keeper__stop(struct keeper *keeper, uint64_t until_ns);

/* A lease as the worker sees it. */
struct held_lease {
	char job[WIRE_SUBJECT_MAX]; /* "<cluster>.<job>", tokens */
	uint64_t epoch;
	uint64_t blocks;     /* in the stream */
	uint64_t checkpoint; /* number of the latest one; 0 none */
};

/*
 * Lists the leases that are held, in a list that the caller frees; what is not in it (any more) must not be analysed.
 * The call also says that the worker is alive.
 */
int keeper__held(struct keeper *keeper, struct held_lease **list, size_t *count);

/* Whether a lease is held at this moment. */
bool keeper__holds(struct keeper *keeper, const char *job);

/* Raises the epoch of a lease where results of a later one are in the stream. */
void keeper__raise(struct keeper *keeper, const char *job, uint64_t epoch);

/* Whether this worker holds more than its share: another one would take a lease that is handed back. */
bool keeper__has_surplus(struct keeper *keeper);

/* Names the latest checkpoint of a job from the next renewal on. */
void keeper__checkpoint(struct keeper *keeper, const char *job, uint64_t number);

/* Hands a lease back: to others, or because the job has ended with this block. */
void keeper__hand_back(struct keeper *keeper, const char *job, bool done, uint64_t through);

#endif
