/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stretches of a state's history, and what they prove (ARCHITECTURE section 6, without counts).
 *
 * A stretch is at least 2 s and half of certify_fragments computations of one series. Where most of its time lies near
 * populous durations, of one with twice as many or of two that are alike, the state has proven that its durations
 * repeat: it is certified, whatever happens to it at other times. Time in which others take the caches or the memory
 * spoils one stretch and not the verdict.
 *
 * A state whose stretches show the same several groups of durations again and again, from its first one on, has several
 * workloads that alternate: kernels before one call-site. Most ranks must show as many groups. Each computation belongs
 * to the heaviest group that is not above its time on the CPU, so a lighter group never makes a heavier one slow, and
 * what slows all of them shows in the heaviest in any case. A group that appears later may be a fault, and is none.
 *
 * Where there are groups, fragments count as so many of the lightest (kept__units): references, batches and what is
 * usual are those of one unit.
 */
#ifndef VAPRO_GROUPS_H
#define VAPRO_GROUPS_H

#include "model/series.h"

/* Enters a computation that has ended; ns: its time on the CPU. Returns 0 or -ENOMEM. */
int groups__add(struct series_book *book, struct series *series, const struct kept *kept, double ns);

/* Decides which states have several workloads; before bundles are learnt from. */
void groups__find(struct series_book *book);

/* How many times the work of the lightest group a bundle has per fragment. */
float groups__ratio(const struct series *series, const struct kept *kept);

#endif
