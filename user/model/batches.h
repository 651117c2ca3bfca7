/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A batch of a series is the mean of at least BATCH_MEMBERS undisturbed fragments, of one 200 ms bin or, where
 * fragments are long, of the next ones, without the time that the kernel attributes. Batches go into log-linear
 * buckets (those of model/histogram.h) that add in any order.
 *
 * References come from batches and not from single fragments: the fastest member (VAPRO (PPoPP'22) section 3.4) and the
 * least mean of a slice (vSensor section 6.3) both sink as ranks x time x jitter grow. The reference is the
 * centre of the lowest group of batches that has absolute support. A group ends at a valley that is less than half
 * as dense as the lower of the two peaks beside it and cannot be chance (two standard deviations of counts).
 * Support is a number of batches, never a share of all: a fault that lasts does not become normal.
 */
#ifndef VAPRO_BATCHES_H
#define VAPRO_BATCHES_H

#include "base/archive.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BATCH_MEMBERS 5	   /* least fragments whose mean is a batch */
#define BATCH_LATE_S 30	   /* a batch is late so many seconds after the first one of its row */
enum { BATCH_GROUPS = 8 }; /* most groups examined, lowest first */

struct batch_bucket {
	uint32_t index; /* as histogram__index */
	uint32_t n;
	double sum_ns;
	uint32_t first, last; /* end of the first and last batch, seconds since the epoch */
	uint32_t late;	      /* batches that ended BATCH_LATE_S or more after the first one of their row */
	uint32_t row;	      /* row of the batches, in a pool that is not sorted yet */
};

/* A plain value; zero is empty, batches__clear frees. */
struct batches {
	struct batch_bucket *items; /* ascending by index, none empty */
	uint32_t count, capacity;
	uint32_t latest; /* item of the last batch: the next batch mostly goes there, too */
	/* The batch that is being filled. */
	uint32_t open_n;
	uint64_t open_bin;
	double open_ns;
	uint32_t begin; /* end of the first batch, seconds since the epoch; 0: none yet */
};

struct batch_group {
	double centre_ns;
	uint32_t n;
	uint32_t first, last; /* seconds since the epoch */
	uint32_t late;	      /* late batches, as in a bucket */
};

/* Closes the batch that is being filled where it has enough members; drops it otherwise. Returns 0 or -ENOMEM. */
int batches__close(struct batches *batches);

/* Adds n fragments of ns in total, in a bin of VAPRO_BIN_NS, in time order. Returns 0 or -ENOMEM. */
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

/* Adds a row's buckets to a pool; batches__groups needs batches__sort first. Returns 0 or -ENOMEM. */
int batches__pool(struct batches *pool, const struct batches *from, uint32_t row);
void batches__sort(struct batches *pool);

/* The groups, lowest first, at most BATCH_GROUPS; returns their number. */
unsigned batches__groups(const struct batches *batches, struct batch_group *groups);

/* Median and number of all batches; 0 without any. */
double batches__median(const struct batches *batches);
uint64_t batches__total(const struct batches *batches);

/* Writes or reads the items; the batch that is being filled is part of the owner's table. */
void batches__archive(struct archive *archive, struct batches *batches);

/* Removes all batches, and keeps the memory. */
void batches__empty(struct batches *batches);
void batches__clear(struct batches *batches);

#endif
