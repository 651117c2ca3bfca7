/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IO calls of equal labels and size whose durations spread: fsync takes a millisecond or a hundred as the device
 * pleases. Where their batches (the robust location of a bin) repeat, they are judged as all others. Where those spread
 * too, a call is judged by the tail: what is within what the state does anyway loses nothing; beyond that it loses all
 * above the median. Beyond means: longer than ten times the median, and than the distribution goes on to (from its
 * median and its 98th percentile, in the logarithm), which is at least twice and at most ten times what a few calls
 * took. A state that was level stays so: a fault that lasts is no scatter.
 */
#ifndef VAPRO_SCATTER_H
#define VAPRO_SCATTER_H

#include "model/series.h"

/* Sets level, middle_ns and tail_ns of all series of an IO workload, whose references are up to date. */
void scatter__refresh(struct series_book *book, const struct workload *workload);

/* Whether a series is judged by its tail. */
bool scatter__judges(const struct series *series);

/* What a fragment of a bundle whose state is not level ought to have cost. */
double scatter__reference(const struct series *series, const struct kept *kept);

#endif
