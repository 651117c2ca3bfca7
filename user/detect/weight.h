/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of variances to the job: their own loss and the waiting they cause (that of their effects), as a share of
 * the time of all ranks while they last, at least over one stride. The loss of the job decides, not that of a rank: a
 * variance that delays many ranks weighs more than one that delays few.
 */
#ifndef VAPRO_WEIGHT_H
#define VAPRO_WEIGHT_H

#include "detect/variance.h"

/*
 * Sets caused_ns, share, severity and small of all matched variances, and takes the alarm from small ones: those
 * that lost less than min_lost_s and, with what they cause, less than min_share. An effect of a
 * variance that is not listed becomes waiting without a cause. To be called after evidence__judge.
 * Returns 0 or -ENOMEM.
 */
int weight__judge(struct variance_book *book, const struct stg_job *job, const struct vapro_config *config);

#endif
