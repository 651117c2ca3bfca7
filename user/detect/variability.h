/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variability as varbench (ICPP'18) has it: whether the time of equal work varies from rank to rank (spatially) or from
 * time to time on a rank (temporally), which says whether moving work helps.
 *
 * The paper's figures are beside others, which do not grow with the number of ranks and iterations. Its slowdown
 * against the fastest rank is 1.11 of 16, and 1.22 of 1,024 ranks that differ by a jitter of 3 % alone; its range over
 * the mean grows with the run; its RV, the kurtosis, is bounded by n - 2 + 1 / (n - 1) for n values, and depends on how
 * many fragments a value is the mean of. Therefore: percentiles of batches, ranks against the median rank, RV from 100
 * batches on. The paper's most representative iteration, the one whose ranks' times the fewest others contradict by the
 * test of Kolmogorov and Smirnov, is mostly not unique and is not defined for two ranks; the median batch of each rank
 * stands for it.
 */
#ifndef VAPRO_VARIABILITY_H
#define VAPRO_VARIABILITY_H

#include "model/series.h"

#define VARIES_LOW 0.05 /* percentiles of batches, and of ranks, that bound how far they vary */
#define VARIES_HIGH (1 - VARIES_LOW)
enum { VARIABILITY_MOST = 20 }; /* workloads of a job, those with most time */
enum { DURATIONS_MOST = 256 };	/* rows whose durations are listed; of more rows the slowest of neighbours */

/*
 * Fills the figures of the variations of some rows. Those with fewer than LEAST_BATCHES batches are left out; numbers
 * of rows are indices of the list all the same. Returns 0, -ENODATA where none is left, or -ENOMEM.
 */
int variability__of(const struct variation *const *rows, size_t count, struct variability_figures *figures);

/* Adds a bundle, which ends in a bin, to the variation of its series. Returns 0 or -ENOMEM. */
int variability__add(struct series_book *book, const struct bundle_rec *rec, uint64_t bin);

/* A workload, with its rows. */
struct variability_item {
	struct result_variability about; /* all but shared; slow_ranks and durations belong to the list */
	uint32_t *slow_rows;		 /* rows of the job; belong to the list */
	size_t slow_row_count;
};

struct variability {
	struct variability_item items[VARIABILITY_MOST]; /* most time first */
	size_t count;
};

/* Lists the workloads of a job, whose batches must be closed. Returns 0 or -ENOMEM; to be cleared in either case. */
int variability__find(struct variability *variability, struct series_book *book, const struct stg *stg, uint32_t job);
void variability__clear(struct variability *variability);

#endif
