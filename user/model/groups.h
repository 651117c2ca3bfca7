/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stretches of a state's history, and what they prove (ARCHITECTURE section 6, without counts).
 *
 * A stretch is at least 2 s and half of certify_fragments computations of one series. Where most of its time lies near
 * populous durations, in one stretch with twice as many or in two that are alike, the state has proven that its
 * durations repeat: the state is certified, whatever happens at other times. Other tasks that occupy the caches or the
 * memory spoil one stretch and not the verdict.
 *
 * A state whose stretches repeat the same several groups of durations, from the first one on, has several workloads
 * that alternate: kernels before one call-site. Most ranks must show as many groups. Each computation belongs to the
 * heaviest group that is not above its time on the CPU, so a lighter group never makes a heavier one slow, and a
 * slowdown of all groups shows in the heaviest in any case. A group that appears later may be a fault: it is ignored.
 *
 * With groups, a fragment counts as a number of units of the lightest group (bundle_rec__units): references, batches
 * and usual times are those of one unit.
 */
#ifndef VAPRO_GROUPS_H
#define VAPRO_GROUPS_H

#include "model/series.h"

/* Enters a computation that has ended; ns: its time on the CPU. Returns 0 or -ENOMEM. */
int groups__add(struct series_book *book, struct series *series, const struct bundle_rec *rec, double ns);

/* Decides which states have several workloads; call before series__learn. */
void groups__find(struct series_book *book);

/* Work per fragment of a bundle of a series that has several workloads. */
float groups__grouped_ratio(const struct series *series, const struct bundle_rec *rec);

/* Work per fragment of a bundle, in units of the lightest group. */
static inline float groups__ratio(const struct series *series, const struct bundle_rec *rec)
{
	return series->grouped ? groups__grouped_ratio(series, rec) : 1;
}

#endif
