/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The offset of a pair of hosts, from window to window. */
#ifndef VAPRO_CLOCK_TRACK_H
#define VAPRO_CLOCK_TRACK_H

#include "detect/clock_calls.h"

/*
 * Finds the offset between two tracks of one call-site. It is a candidate until
 * later calls alone show the same. A link that is known stays as long as it agrees, as nothing else agrees for certain,
 * and as no calls can be compared. Without may_search, a known link that no longer agrees is not searched again.
 */
void clock_track__link(const struct clock_pair *pair, struct clock_scratch *scratch, bool may_search);

/* Whether a search is due in this window: it is time, or a gap of its calls may show what the latest search did not. */
bool clock_track__is_due(const struct clock_pair *pair);

/* Searches among all differences of ordinals for an offset that agrees better than one found near equal clocks. */
void clock_track__audit(const struct clock_pair *pair, struct clock_scratch *scratch);

#endif
