/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What calls of the same labels take, whatever their call-sites: the greatest reference of a job's series by
 * common labels, and by common labels and size. Many ranks may be stuck in one window, and each asks.
 */
#ifndef VAPRO_ALIKE_H
#define VAPRO_ALIKE_H

#include "model/series.h"

struct alike;

/* NULL when out of memory. */
struct alike *alike__new(void);
void alike__free(struct alike *alike);

/* References have changed: who asks next looks through all series, and who asks after that does not. */
void alike__forget(struct alike *alike);

/*
 * The greatest reference among other series of the same common labels; of the same size, where there are any. 0
 * where there is none, or no memory to look.
 */
double alike__reference(struct alike *alike, const struct series_book *book, const struct series *series);

#endif
