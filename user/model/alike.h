/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the greatest reference of a job's series by common labels, and by common labels and size, whatever their
 * call-sites. Many ranks may be stuck in one window, and each needs a look-up.
 */
#ifndef VAPRO_ALIKE_H
#define VAPRO_ALIKE_H

#include "model/series.h"

struct alike;

/* NULL when out of memory. */
struct alike *alike__new(void);
void alike__free(struct alike *alike);

/* Drops the index after references have changed: the next look-up reads all series once. */
void alike__forget(struct alike *alike);

/*
 * Returns the greatest reference among other series of the same common labels, and size where there are any; 0
 * where there is none, or when out of memory.
 */
double alike__reference(struct alike *alike, const struct series_book *book, const struct series *series);

#endif
