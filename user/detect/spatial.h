/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Findings on states rather than on regions, in each window: slow-downs common to all ranks and monotone over
 * windows (drift, section 6 d), and states or clusters with few members that cost long (rare, VAPRO (PPoPP'22)
 * section 3.4).
 */
#ifndef VAPRO_SPATIAL_H
#define VAPRO_SPATIAL_H

#include "detect/variance.h"
#include "model/series.h"

struct spatial {
	struct result_drift *drifts;
	size_t drift_count, drift_capacity;
	struct result_rare *rares;
	size_t rare_count, rare_capacity;
	int32_t *rare_ranks; /* those of rare states */
	struct result_clusters clusters;
};

void spatial__clear(struct spatial *spatial);

/* Closes the window's means of all series of a job; call once per window, before spatial__find. */
void spatial__window(struct series_book *book, uint32_t job);

/* Fills the lists of one job. Returns 0 or -ENOMEM. */
int spatial__find(struct spatial *spatial, const struct series_book *book, const struct stg *stg, uint32_t job);

/*
 * Adds as drifts the variances in which all ranks slowed alike for at least a stride of so many bins: a step is a drift
 * too, where no counts say whether it is work or speed. Returns 0 or -ENOMEM.
 */
int spatial__alike(struct spatial *spatial, const struct variance_book *variances, const struct series_book *book,
		   const struct stg *stg, uint64_t stride);

/*
 * Adds findings on the job's clusters, after spatial__find: the rare ones that had a judged fragment in
 * [begin, end), and the sum of all. Returns 0 or -ENOMEM.
 */
int spatial__clusters(struct spatial *spatial, const struct series_book *book, const struct stg *stg, uint32_t job,
		      const struct bundle_rec *rec, size_t count, uint64_t begin, uint64_t end);

#endif
