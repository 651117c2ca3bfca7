/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * References of workloads (ARCHITECTURE section 6): the centre of the lowest group of batches (model/batches.h)
 * that has support. Fixed work (computation with instructions, and IO) is compared over all ranks on CPUs of one
 * kind: a group needs batches of two ranks, where there are more than two. Other computation, and calls, whose
 * time depends on which rank waits, have references of their own per rank, pooled over ranks that agree.
 *
 * Batches of a single rank support a reference where they are spread over 10 s and not only from the first 30 s of
 * the workload. Until there is support a reference is provisional, the centre of the lowest group of a few batches: a
 * loss against it is shown, and confirmed only by what the kernel attributes.
 */
#ifndef VAPRO_TYPICAL_H
#define VAPRO_TYPICAL_H

#include "model/series.h"

/*
 * Sets own_ns, reference_ns, usual_frequency, supported and compared of all series of a workload that judge__refresh
 * has brought up to date. Returns 0 or -ENOMEM.
 */
int typical__refresh(struct series_book *book, struct workload *workload);

#endif
