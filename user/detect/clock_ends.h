/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls of a host at one call-site, as ends whose ordinals are certain. */
#ifndef VAPRO_CLOCK_ENDS_H
#define VAPRO_CLOCK_ENDS_H

#include "detect/clock_calls.h"

/* Lists the ends of calls whose ordinals are certain, in ns since origin_ns; they lie in the room. */
struct clock_ends clock_ends__list(const struct clock_track *track, uint64_t origin_ns, struct clock_scratch *scratch,
				   struct clock_end room[static CLOCK_CALLS]);

/* Whether there are enough calls to be compared. */
bool clock_ends__enough(const struct clock_ends *ends);

/* Leaves the calls after an ordinal. */
void clock_ends__drop_until(struct clock_ends *ends, double ordinal);

double clock_ends__last_ordinal(const struct clock_ends *ends);

struct clock_gaps clock_ends__gaps(const struct clock_ends *ends);

/* The median of numbers, which are put in another order. */
double clock_ends__median(double *numbers, uint32_t count);

#endif
