/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The own part of a call is its duration when no peer is late. Durations of calls are mostly waiting, and the least
 * call of a bin is the one that waited least. The lowest group of least calls, of the rank that has the lowest, is the
 * own part of equal calls on all ranks; it is steady where most of the group lies near its centre.
 */
#ifndef VAPRO_OWN_PART_H
#define VAPRO_OWN_PART_H

#include "model/series.h"

/* Enters the least call of a bundle that has ended, least_ns, in the order of time. Returns 0 or -ENOMEM. */
int own_part__add(struct series *series, const struct bundle_rec *rec, float least_ns);

/* Sets part_ns and part_steady of all series of a workload of calls. */
void own_part__refresh(struct series_book *book, const struct workload *workload);

#endif
