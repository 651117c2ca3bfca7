/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets the cost that a fragment should have (ARCHITECTURE section 6): the references of workloads
 * (model/typical.h) applied to single bundles. With --reference fastest the reference of a computation
 * with instructions is the fastest member of its cluster over all ranks (VAPRO (PPoPP'22) section 3.4). The
 * first SERIES_WARM_UP members of a workload on a rank are judged only by what the kernel attributes.
 *
 * Certification stays once twice certify_fragments were seen; before that a state whose durations
 * spread loses it again. Fragments of states without references that are stuck for long (IO from
 * 1 s on, calls of MPI too) take the reference of states with the same common labels, or are covered
 * without reference, with a performance of 0.
 *
 * Where the work of a computation is not known to be fixed (its state spreads or was seen too seldom,
 * its cluster is rare), there is no reference for its time on the CPU; but attributed time is lost
 * whatever the work. Where that alone crosses the threshold, the time on the CPU is the reference.
 */
#ifndef VAPRO_JUDGE_H
#define VAPRO_JUDGE_H

#include "model/series.h"

/* Brings all references up to date. Returns 0 or -ENOMEM. */
int judge__refresh(struct series_book *book);

/* Fills reference, reason and the flags of coverage. */
void judge__bundle(const struct series_book *book, struct bundle_rec *rec);

/* Sets usual_blocked of a job's series, once the normal fragments of the view are known. */
void judge__usual(struct series_book *book, uint32_t job);

#endif
