/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NoiseMiner's expected duration (NoiseMiner section 4.3) as ARCHITECTURE section 6 (a) and (c) use
 * it: buckets between valleys form a group around each peak; expected is the mean of the lowest
 * group that holds at least populous_share of the fragments. Unlike the paper a valley must be
 * significant, else a few dozen fragments of random work would fall into many small groups.
 */
#ifndef VAPRO_REFERENCE_H
#define VAPRO_REFERENCE_H

#include "model/histogram.h"

#include <vapro/config.h>

enum { REFERENCE_CENTRES = 8 }; /* most centres of groups that a reference retains */

struct reference {
	double expected_ns;   /* 0 where the histogram is empty */
	double near_share;    /* share of time within certify_width of the mean of a near group */
	unsigned groups;      /* populous groups */
	unsigned near_groups; /* groups that are populous, or have as great a share of the time */
	/* The means of the lowest groups that are a tenth of the fragments, or of the time. */
	double centre_ns[REFERENCE_CENTRES];
	unsigned centre_count;
};

struct reference reference__of(const struct histogram *histogram, const struct vapro_config *config);

#endif
