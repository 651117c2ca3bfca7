/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of variances to the job: their own loss and the waiting they cause (detect/caused.h), as a share of the time
 * of all ranks. Whether a variance is small is a matter of the time while it lasts, at least one stride, so that it
 * does not depend on when in a job it comes. Its severity is that of its greatest share in any hour of the job, in
 * steps of whole minutes, or of the whole job so far where that is shorter. The loss of the job decides, not that of a
 * rank: a variance that delays many ranks weighs more than one that delays few.
 */
#ifndef VAPRO_WEIGHT_H
#define VAPRO_WEIGHT_H

#include "detect/variance.h"

/*
 * Sets caused_ns, share, rated_share, severity and small of all matched variances, and takes the alarm from small ones:
 * those that lost less than min_lost_s and, with what they cause, less than min_share. An effect of a variance that is
 * not listed becomes waiting without a cause. now_ns: end of the window. To be called after evidence__judge. Returns 0
 * or -ENOMEM.
 */
int weight__judge(struct variance_book *book, const struct stg_job *job, const struct vapro_config *config,
		  uint64_t now_ns);

#endif
