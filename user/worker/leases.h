/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who analyses which job: a lease for each job, an entry of the bucket that its worker renews. A lease that did not
 * change for expire_ns of the own clock is taken by compare-and-set, and its epoch raised (docs/many-nodes.md). Clocks
 * of workers are never compared. This is the table alone, without a broker: keeper.h talks with that.
 */
#ifndef VAPRO_WORKER_LEASES_H
#define VAPRO_WORKER_LEASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "worker/lease.h"

struct leases {
	struct lease **items; /* addresses last as long as the table */
	size_t count, capacity;
	char worker[LEASE_WORKER_MAX]; /* the own id */
	uint64_t expire_ns;
};

void leases__clear(struct leases *leases);

/* Finds a lease, or makes one. NULL: out of memory. */
struct lease *leases__of(struct leases *leases, const char *job);

/* Whether the lease may be taken: free, or not renewed for so long, or done and more has come. */
bool leases__may_take(const struct leases *leases, const struct lease *lease, uint64_t now_ns);

/* How many leases this worker should take now, of `workers` that live. */
size_t leases__wanted(const struct leases *leases, size_t workers);

/* How many it holds beyond its share. */
size_t leases__surplus(const struct leases *leases, size_t workers);

#endif
