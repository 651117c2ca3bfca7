/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Judges IO calls of equal labels and size whose durations spread: fsync takes a millisecond or a hundred as the device
 * decides. Calls whose batches (the robust location of a bin) repeat are judged as all others. Where batches spread
 * too, a call is judged by the tail: within the usual range of the state it loses nothing; beyond the range it loses
 * all above the median. Beyond means longer than ten times the median, and than the distribution extrapolates to (from
 * its median and its 98th percentile, in the logarithm), which is at least twice and at most ten times the duration of
 * a few calls. A level state stays level: a fault that lasts is no scatter.
 */
#ifndef VAPRO_SCATTER_H
#define VAPRO_SCATTER_H

#include "model/series.h"

/* Sets level, middle_ns and tail_ns of all series of an IO workload, whose references are up to date. */
void scatter__refresh(struct series_book *book, const struct workload *workload);

/* Whether a series is judged by its tail. */
bool scatter__judges(const struct series *series);

/* The reference of a bundle whose state is not level, ns per fragment. */
double scatter__reference(const struct series *series, const struct bundle_rec *rec);

#endif
