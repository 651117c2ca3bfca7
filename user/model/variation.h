/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the time of one series varies: the moments and the distribution of its batches. A batch is the mean of at least
 * BATCH_MEMBERS fragments of one 200 ms bin, or of the next ones where fragments are long, as in model/batches.h; but
 * here it is of all fragments, disturbed or not, and with the time that the kernel attributes, since that varies, too.
 * Fragments of LONG_NS are batches by themselves, like varbench's iterations.
 *
 * Moments are exact: from buckets of 2 to 3 % the kurtosis of a jitter of 1 % would be 3.08 in place of 2.99. Two
 * variations of disjoint batches add, in any order.
 */
#ifndef VAPRO_VARIATION_H
#define VAPRO_VARIATION_H

#include "base/archive.h"
#include "model/batches.h"
#include "model/histogram.h"
#include "model/judgement.h"
#include "model/moments.h"

#include <stdbool.h>
#include <stdint.h>

enum { VARIATION_OCTAVE_BITS = 7 }; /* buckets of an octave, as a power of two: 128, 0.6 to 0.8 % each */
enum { VARIATION_WAITING = 8 };	    /* batches that are added together */

/* Parts of the time of fragments whose share of the variance is known. */
enum variation_part {
	VARIATION_SOFTWARE,  /* attributed by the kernel: waits for a CPU, throttling, stops, stolen time, interrupts */
	VARIATION_FREQUENCY, /* at a frequency below the highest */
	VARIATION_STALLS,    /* stalls of the pipeline, where they are counted */
	VARIATION_PARTS
};

/*
 * A plain value; zero is empty, variation__clear frees. Times are in ns. Batches wait until there are several, since
 * with many ranks neither moments nor buckets are in a cache when the next batch comes: what each bundle needs is at
 * the front.
 */
struct variation {
	/* The batch that is being filled. */
	uint64_t open_bin;
	uint32_t open_n;
	uint8_t waiting; /* batches that wait */
	bool parted;	 /* a bundle had parts: else all parts of batches that wait are 0, and are not written */
	double open_ns;
	double time_ns;	  /* time of all fragments */
	double fragments; /* in batches */
	double value[VARIATION_WAITING];
	double counted; /* fragments in batches whose stalls were counted */
	double open_counted;
	double open_part[VARIATION_PARTS];
	double part[VARIATION_WAITING][VARIATION_PARTS];
	/* Of the batches, but those that wait. */
	struct moments moments;
	struct histogram batches; /* with VARIATION_OCTAVE_BITS */
	double part_mean[VARIATION_PARTS];
	double part_with[VARIATION_PARTS]; /* sums of products of deviations: of the part, and of the batch */
};

/* Fragments of one bin, and their sums. */
struct variation_bundle {
	uint64_t bin;
	uint32_t n;
	double time_ns;
	double ns;	    /* the same for work of one size */
	bool counted;	    /* stalls were counted */
	const double *part; /* VARIATION_PARTS of them; NULL: all are 0 */
};

/* Whether what is being filled is a batch. */
static inline bool variation__full(const struct variation *variation)
{
	return variation->open_n >= BATCH_MEMBERS ||
	       (variation->open_n && variation->open_ns >= LONG_NS * variation->open_n);
}

/* Adds the batches that wait to moments and buckets. Returns 0, or -ENOMEM where some of them are lost. */
int variation__add_waiting(struct variation *variation);

/*
 * Closes the batch that is being filled where it has enough members, drops it otherwise, and adds all that wait.
 * Returns 0 or -ENOMEM.
 */
int variation__close(struct variation *variation);

/* Makes the batch that is being filled, which is full, one that waits. */
static inline void variation__let_wait(struct variation *variation)
{
	uint32_t n = variation->open_n;

	variation->value[variation->waiting] = variation->open_ns / n;
	variation->fragments += n;
	variation->open_n = 0;
	variation->open_ns = 0;
	if (variation->parted) {
		variation->counted += variation->open_counted;
		variation->open_counted = 0;
		for (int i = 0; i < VARIATION_PARTS; i++) {
			variation->part[variation->waiting][i] = variation->open_part[i] / n;
			variation->open_part[i] = 0;
		}
	}
	variation->waiting++;
}

/* Adds fragments in the order of time. Returns 0 or -ENOMEM. */
static inline int variation__add(struct variation *variation, const struct variation_bundle *bundle)
{
	int error = 0;

	if (bundle->bin != variation->open_bin && variation__full(variation)) {
		variation__let_wait(variation);
		if (variation->waiting == VARIATION_WAITING)
			error = variation__add_waiting(variation);
	}
	variation->time_ns += bundle->time_ns;
	variation->open_bin = bundle->bin;
	variation->open_n += bundle->n;
	variation->open_ns += bundle->ns;
	if (!bundle->part)
		return error;
	variation->parted = true;
	variation->open_counted += bundle->counted ? bundle->n : 0;
	for (int i = 0; i < VARIATION_PARTS; i++)
		variation->open_part[i] += bundle->part[i];
	return error;
}

/* Adds all batches of from, which is closed. Returns 0 or -ENOMEM. */
int variation__merge(struct variation *into, const struct variation *from);

/*
 * A quantile of the batches, from 0 to 1: linear between the means of neighbouring buckets, which stand in the middle
 * of their batches, and exact at both ends; the mean of a bucket beside a gap. NAN without batches.
 */
double variation__quantile(const struct variation *variation, double share);

/* A quantile of any histogram; least and most: of its values. NAN where it is empty. */
double variation__quantile_of(const struct histogram *histogram, double share, double least, double most);

/* Writes or reads a variation; one to be read is empty. */
void variation__archive(struct archive *archive, struct variation *variation);
void variation__clear(struct variation *variation);

/* Returns the bytes that a variation holds, with its own; NULL: 0. */
size_t variation__bytes(const struct variation *variation);

#endif
