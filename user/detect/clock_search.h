/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The search for the offset of a pair of hosts. */
#ifndef VAPRO_CLOCK_SEARCH_H
#define VAPRO_CLOCK_SEARCH_H

#include "detect/clock_calls.h"

/* Compares all calls for one difference of ordinals, both ways. */
struct clock_agreement clock_search__compare(struct clock_scratch *scratch, int64_t slip);

/* The greatest cost of calls that are the same, ns. */
double clock_search__most_cost(const struct clock_scratch *scratch);

/*
 * Search an offset: among all differences of ordinals, or among those near equal clocks (at most bound_ns apart). They
 * return false, and leave the link alone, where none agrees, or too different ones agree about as well. Near equal
 * clocks an offset also has to agree much better than those around it: where calls are regular, and where the true
 * offset lies outside, all of them agree about equally well.
 */
bool clock_search__all(struct clock_scratch *scratch, struct clock_link *link);
bool clock_search__near(struct clock_scratch *scratch, double bound_ns, struct clock_link *link);

#endif
