/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Batches of one series: means of at least BATCH_MEMBERS undisturbed fragments, of one 200 ms bin or, where
 * fragments are long, of the next ones, without the time that the kernel attributes. Batches go into log-linear
 * buckets (those of model/histogram.h) that add in any order.
 *
 * References come from them and not from single fragments: neither the fastest member (papers/000 section 3.4)
 * nor the least mean of a slice (papers/003 section 6.3), which both sink as ranks x time x jitter grow, but the
 * centre of the lowest group of batches that has absolute support. A group ends at a valley that is less than half
 * as dense as the lower of the two peaks beside it and cannot be chance (two standard deviations of counts).
 * Support is a number of batches, never a share of all of them: a fault that lasts does not become normal.
 */
#ifndef VAPRO_BATCHES_H
#define VAPRO_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BATCH_MEMBERS 5
#define BATCH_LATE_S 30
#define BATCH_GROUPS 8 /* most groups that are looked at, lowest first */

struct batch_bucket {
	uint32_t index; /* as histogram__index */
	uint32_t n;
	double sum_ns;
	uint32_t first, last; /* when its first and last batch ended, seconds since the epoch */
	uint32_t late;	      /* batches that ended BATCH_LATE_S or more after the first of all of their row */
	uint32_t row;	      /* of a pool that is not sorted yet: whose batches they are */
};

/* A plain value; zero is empty, batches__clear frees. */
struct batches {
	struct batch_bucket *items; /* ascending by index, none empty */
	uint32_t count, capacity;
	uint32_t latest; /* item that the last batch went to: the next batch mostly goes there, too */
	/* The batch that is being filled. */
	uint32_t open_n;
	uint64_t open_bin;
	double open_ns;
	uint32_t begin; /* of the first of all, seconds since the epoch; 0: none yet */
};

struct batch_group {
	double centre_ns;
	uint32_t n;
	uint32_t first, last; /* seconds since the epoch */
	uint32_t late;	      /* as in a bucket */
};

/* Closes the batch that is being filled where it has enough members; drops it otherwise. Returns 0 or -ENOMEM. */
int batches__close(struct batches *batches);

/* n fragments that took ns together, in a bin of VAPRO_BIN_NS; in the order of time. Returns 0 or -ENOMEM. */
static inline int batches__add(struct batches *batches, uint64_t bin, uint32_t n, double ns)
{
	int error = 0;

	if (batches->open_n >= BATCH_MEMBERS && bin != batches->open_bin)
		error = batches__close(batches);
	batches->open_bin = bin;
	batches->open_n += n;
	batches->open_ns += ns;
	return error;
}

/* Adds the buckets of a row's batches to a pool, which batches__group needs batches__sort for. 0 or -ENOMEM. */
int batches__pool(struct batches *pool, const struct batches *from, uint32_t row);
void batches__sort(struct batches *pool);

/* The groups, lowest first, at most BATCH_GROUPS; returns their number. */
unsigned batches__groups(const struct batches *batches, struct batch_group *groups);

/* All batches, whatever group; 0 where there is none. */
double batches__median(const struct batches *batches);
uint64_t batches__total(const struct batches *batches);

/* Forgets all of them, and keeps the room. */
void batches__empty(struct batches *batches);
void batches__clear(struct batches *batches);

#endif
