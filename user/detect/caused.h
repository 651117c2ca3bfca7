/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting is divided (ARCHITECTURE section 7): what ranks waited for late peers in a bin, beyond what they usually wait
 * for each other while none is delayed, belongs to the losses that made the last ranks late. It is divided among the
 * parts of the losses in that bin (enum tally_part) in proportion to what their rows lost beyond their own waiting; a
 * part gets at most what all other rows can wait for it. The waiting that is left is divided in the same way among the
 * losses of the bins shortly before, since a rank that lost time is waited for later. Waiting that no loss explains
 * stays unexplained.
 */
#ifndef VAPRO_CAUSED_H
#define VAPRO_CAUSED_H

#include "detect/bundle_shares.h"

/*
 * Adds the waiting in the map to the tallies of the variances that caused it, retiring or staying; reach: bins before a
 * wait in which a rank may have become late. To be called once a window, before bundle_shares__tally. Returns 0 or
 * -ENOMEM.
 */
int caused__divide(struct variance_book *book, struct heatmap *map, const struct stg_job *job,
		   const struct series_book *series, const struct parts *parts, uint32_t reach);

/* The waiting that a part of a variance's loss caused, ns: at most what so many other rows can wait for it. */
double caused__by_part(const struct variance *variance, enum tally_part part);

/* The same of all parts. */
double caused__by(const struct variance *variance);

#endif
