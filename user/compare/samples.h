/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Means of batches in the order of time, in bounded memory: a batch has at least BATCH_MEMBERS fragments of one
 * 200 ms bin, or of the next ones where fragments are long (model/batches.h). Where there are SAMPLES_MOST samples,
 * neighbours are merged and later samples hold twice as many batches. A plain value; zero is empty.
 */
#ifndef VAPRO_SAMPLES_H
#define VAPRO_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

enum { SAMPLES_MOST = 128 }; /* samples of a state and thread that a comparison retains */
/* Bins that are filled at the same time: merged bundles of a bin arrive after singles of later ones. */
enum { SAMPLES_BINS = 8 };

struct sample {
	double mean_ns;
	double size; /* mean magnitude of the work; 0 where unknown */
	double n;    /* fragments */
};

struct sample_bin {
	uint64_t number;
	struct sample sum;
};

struct samples {
	struct sample *items;
	size_t count, capacity;
	uint32_t batches;		      /* in a sample; 0 and 1: one */
	struct sample_bin bins[SAMPLES_BINS]; /* ascending */
	unsigned bin_count;
	/* The sample that is being filled. */
	struct sample open;
	uint32_t open_batches;
	double open_members; /* of its last batch */
	uint64_t members;    /* all fragments met */
};

/*
 * Adds n fragments of ns in total, in the order of time but for what arrives late by up to SAMPLES_BINS bins. Returns 0
 * or -ENOMEM.
 */
int samples__add(struct samples *samples, uint64_t bin, uint32_t n, double ns, double size);

/* Ends the sample that is being filled: it counts where its last batch has enough members. Returns 0 or -ENOMEM. */
int samples__close(struct samples *samples);
void samples__clear(struct samples *samples);

/* Merges neighbours until there are at most so many samples. */
void samples__reduce(struct samples *samples, size_t most);

#endif
