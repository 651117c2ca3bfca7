/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leases of jobs, entries of the bucket that their workers renew: what an entry says, and what a worker knows of it. */
#ifndef VAPRO_LEASE_H
#define VAPRO_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/subject.h"

#define LEASE_VALUE_MAX 512
#define LEASE_WORKER_MAX 128

enum lease_state {
	LEASE_FREE, /* without a holder, or handed back */
	LEASE_HELD,
	LEASE_DONE, /* the job has ended */
};

/* What an entry says. */
struct lease_value {
	enum lease_state state;
	char worker[LEASE_WORKER_MAX];
	uint64_t epoch;
	uint64_t through;    /* done: number of the last block that was analysed */
	uint64_t blocks;     /* done: how many blocks the stream held then */
	uint64_t checkpoint; /* number of the job's latest one; 0 none */
};

/* Writes and reads an entry. Parsing returns 0 or -EINVAL. */
int lease_value__format(char *text, size_t size, const struct lease_value *value);
int lease_value__parse(struct lease_value *value, const char *text);

struct lease {
	char job[WIRE_SUBJECT_MAX]; /* "<cluster>.<job>", tokens */
	struct lease_value value;
	uint64_t revision;   /* 0: there is no entry */
	uint64_t changed_ns; /* own clock, when the revision was first seen */
	uint64_t blocks;     /* in the stream */
	bool present;	     /* in the stream */
	bool more;	     /* done, and blocks came since */
	bool ours;
	bool giving; /* handed back, and the bucket does not say so yet */
};

/* Notes the entry of the bucket; text NULL: there is none. An entry that cannot be parsed counts as free. */
void lease__note(struct lease *lease, const char *text, uint64_t revision, uint64_t now_ns);

/*
 * Who analyses which job: a lease for each job. A lease that did not change for expire_ns of the own clock is taken by
 * compare-and-set, and its epoch raised (docs/many-nodes.md). Clocks of workers are never compared. This is the table
 * alone, without a broker: keeper.h talks with that.
 */
struct lease_table {
	struct lease **items; /* addresses last as long as the table */
	size_t count, capacity;
	char worker[LEASE_WORKER_MAX]; /* the own id */
	uint64_t expire_ns;
};

void lease_table__clear(struct lease_table *leases);

/* Finds a lease, or makes one. NULL: out of memory. */
struct lease *lease_table__of(struct lease_table *leases, const char *job);

/* Whether the lease may be taken: free, or not renewed for so long, or done and more has come. */
bool lease_table__may_take(const struct lease_table *leases, const struct lease *lease, uint64_t now_ns);

/* How many leases this worker should take now, of `workers` that live. */
size_t lease_table__wanted(const struct lease_table *leases, size_t workers);

/* How many it holds beyond its share. */
size_t lease_table__surplus(const struct lease_table *leases, size_t workers);

#endif
