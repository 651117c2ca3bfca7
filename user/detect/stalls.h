/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stalls of a job's rows (docs/noise.md): fragments that took far longer than the fragments of their state usually do,
 * for no reason that the kernel attributes. NoiseMiner (papers/001) finds noise components among them by their
 * durations; here what counts is the excess, so that equal delays in unequal work are alike. Numbers and times are
 * integers, which add to the same sums in any order; of each row the latest stalls are stored one by one.
 */
#ifndef VAPRO_DETECT_STALLS_H
#define VAPRO_DETECT_STALLS_H

#include "base/archive.h"

#include <vapro/bundle.h>

#include <stddef.h>

#define STALL_RATIO 1.2	     /* of the usual duration of a state, from which a fragment is a stall: the kernel side's */
#define STALL_LEAST_NS 20e3  /* excess of a stall: the kernel side's */
#define STALL_EQUAL 0.05     /* of their excess, by which the longest of merged stalls may exceed their mean */
enum { STALLS_LATEST = 64 }; /* stalls of a row and class that are stored one by one; a power of two */

/* Stalls of about one excess, a bucket of histogram.h. */
struct stall_bucket {
	uint32_t index;
	uint64_t n, ns;	    /* number, and sum of their excess */
	uint64_t edge_ns;   /* sum of the least excess that each would have been seen with */
	uint64_t waited_ns; /* other ranks' waiting for them */
};

struct stall {
	uint64_t start_ns, end_ns; /* of the fragment, UTC */
	float ns;		   /* excess */
	float gap_ns;		   /* mean time from one fragment of its state to the next; 0: not known */
	uint32_t state;
	bool may_wait; /* a call: it may be a wait for another rank */
};

enum { STALL_MODES = 8 }; /* of one row and class, those with the most time */

/* Stalls of one length among those of other lengths (stall_modes.h). */
struct stall_mode {
	uint32_t low, high; /* buckets */
	uint64_t n, ns;
};

/* The stalls of a row in one class. */
struct stall_row {
	struct stall_bucket *buckets; /* ascending */
	size_t count, capacity;
	struct stall *latest; /* a ring */
	uint32_t latest_count, latest_capacity;
	uint32_t next;	     /* place of the ring that is written next */
	uint64_t unresolved; /* stalls that came merged with too different ones */
	uint64_t begin, end; /* first bin, and last bin + 1 */
};

struct stalls {
	struct stall_row *rows; /* by row and class: VAPRO_CLASSES * row + class */
	size_t count, capacity;
	uint64_t until; /* stalls of earlier bins are part of the sums */
};

/* Stalls that are alike: n fragments of a bundle, or one. */
struct stall_bundle {
	uint32_t row, state;
	enum vapro_class class;
	uint32_t n;
	bool unequal;	    /* their durations differ too much to be of one excess */
	double ns, edge_ns; /* excess of each; the least with which it would have been seen */
	double gap_ns;	    /* as of a stall */
	bool may_wait;	    /* as of a stall */
	double waited_ns;   /* other ranks' waiting for all of them */
	uint64_t start_ns, end_ns;
};

/* Adds a bundle. Returns 0 or -ENOMEM. */
int stalls__add(struct stalls *stalls, const struct stall_bundle *bundle);

/* The stalls of a row in a class; NULL: none. */
const struct stall_row *stalls__row(const struct stalls *stalls, uint32_t row, enum vapro_class class);

/* The i-th of the latest stalls of a row, the oldest first. */
const struct stall *stalls__latest(const struct stall_row *row, uint32_t i);

void stalls__clear(struct stalls *stalls);
size_t stalls__bytes(const struct stalls *stalls);

/* Takes the states of the stalls out of those marked as over, by number. */
void stalls__use(const struct stalls *stalls, bool *over);

/* Writes or reads the stalls of a job; rows and states: how many there are. What is to be read is empty. */
void stalls__archive(struct archive *archive, struct stalls *stalls, size_t rows, size_t states);

#endif
