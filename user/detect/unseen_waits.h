/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads of a process that wait for each other show it in calls of OpenMP or pthread. Where these are not probed, or
 * closed since they cost too much, a thread waits within its computation, mostly on the CPU: what one thread loses to a
 * disturbance all others of its team seem to lose as well.
 *
 * What a computation lost and the kernel does not attribute counts as a wait for other threads of the process, up to
 * what these lost in the same bins by the kernel's account (account.h) in time without fragments: fragments would show
 * the waits. The wait becomes part of the reference of the bundle, and waiting for a late peer on the map; where other
 * threads lost nothing, or less, the loss stays the thread's own.
 */
#ifndef VAPRO_UNSEEN_WAITS_H
#define VAPRO_UNSEEN_WAITS_H

#include "detect/account.h"
#include "detect/variance.h"

/*
 * Finds the waits of judged bundles, those that have ended and those that are open, and enters them. Call after
 * account__carry. Returns 0 or -ENOMEM.
 */
int unseen_waits__find(const struct account *account, const struct series_book *book, const struct stg_job *job,
		       struct bundle_rec *recs, size_t count, struct bundle_rec *open, size_t open_count);

/*
 * Adds the waits of bundles to the variances that own them, before bundle_shares__tally; retire: as there. Returns 0 or
 * -ENOMEM.
 */
int unseen_waits__tally(struct variance_book *book, const struct heatmap *map, const struct series_book *series,
			const struct bundle_rec *recs, size_t count, uint64_t end, uint64_t retire);

#endif
