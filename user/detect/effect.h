/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Effects (ARCHITECTURE section 7): how the loss of a waiting region splits into late peers and
 * transfer, and which variance delayed the peers. The cause is, among the variances that overlap at least a
 * third of the waiting, the one whose losses account for most, bin by bin, ranks outside the region first.
 */
#ifndef VAPRO_EFFECT_H
#define VAPRO_EFFECT_H

#include "detect/variance.h"

/* Sets late and transfer from the cells that the map still holds: of what the variance owns of them. */
void effect__waits(struct variance *variance, const struct heatmap *map);

/*
 * Whether other ranks of a job of so many rows may have waited for the ranks of a variance: not where it is waiting
 * itself, or a transfer that is slow for all of them.
 */
bool effect__may_delay(const struct variance *variance, size_t rows);

/* The id of the cause, 0 where there is none. */
uint64_t effect__cause(const struct variance *effect, const struct heatmap *map, const struct stg_job *job,
		       const struct variance_book *book);

#endif
