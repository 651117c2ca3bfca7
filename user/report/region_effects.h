/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which regions waited for which, and who waited for a region how long. */
#ifndef VAPRO_REPORT_REGION_EFFECTS_H
#define VAPRO_REPORT_REGION_EFFECTS_H

#include "report/regions.h"

#define IMPACTS_MOST 4 /* kinds of waiting for a region that are distinguished */

/* Which region waited for which, by their places. */
struct region_effects {
	uint32_t *first, *next; /* effects of a region; UINT32_MAX: no further one */
	bool *is_effect;
};

/* Waiting of one class for a region. */
struct region_impact {
	const char *class;
	char *who; /* owned; NULL when out of memory */
	double seconds;
};

/*
 * Lists the effects of each region, in the order of the regions, whose places were made. Returns 0 or -ENOMEM; to be
 * freed in both cases.
 */
int region_effects__find(struct region_effects *effects, const struct regions *regions);
void region_effects__free(struct region_effects *effects);

/*
 * Sums who waited for the region at a place: each rank is in one sum of a class, and all sums together are no more than
 * what others waited for it as its record says, since an effect may be that of several regions. Fills at most
 * IMPACTS_MOST impacts and returns how many.
 */
uint32_t region_effects__sum(const struct region_effects *effects, const struct regions *regions, size_t at,
			     struct region_impact *impacts);

/*
 * Writes who waited for a region among the ranks of one that is its effect: those that are not of the region itself, or
 * all, "for each other" or, where it is one rank, "for other ranks". Returns the text, or NULL where a rank would wait
 * for itself.
 */
const char *region_effects__waiters(const struct region *cause, const struct region *effect, char *text, size_t size);

#endif
