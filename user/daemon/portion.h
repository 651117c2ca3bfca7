/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of a kind of work one pass of the loop does: what is left is done in the next ones, between which the loop
 * handles its events. Pure.
 */
#ifndef VAPRO_PORTION_H
#define VAPRO_PORTION_H

#include <stdbool.h>
#include <stddef.h>

struct portion {
	size_t most, done;
	bool cut; /* some was left in the latest pass */
};

/* Begins a pass in which at most so much may be done. */
static inline void portion__begin(struct portion *portion, size_t most)
{
	*portion = (struct portion){.most = most};
}

/* Returns whether more may be done in this pass; where not, it is noted that something is left. */
static inline bool portion__allows(struct portion *portion)
{
	portion->cut |= portion->done >= portion->most;
	return !portion->cut;
}

#endif
