/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contributions of factors (papers/000 section 4.3): abnormal fragments cost more than k_a times
 * their cluster's reference; a factor's contribution is its time in abnormal fragments less what
 * normal fragments spend on it, summed over the abnormal ones of a variance. Merged bundles are
 * judged by their mean; where their slowest member was abnormal and their mean is not, the result
 * is marked approx. Sums add over windows.
 */
#ifndef VAPRO_CONTRIBUTION_H
#define VAPRO_CONTRIBUTION_H

#include "diagnose/factors.h"
#include "model/series.h"

struct contribution {
	double impact[FACTOR_NODES];   /* ns; may be negative */
	double duration[FACTOR_NODES]; /* ns of abnormal fragments whose major factors include it */
	double abnormal, normal;       /* fragments */
	bool approx, counters;
};

/* Adds a share of a bundle; the normal pile may be empty, then the reference stands for it. */
void contribution__add(struct contribution *contribution, const struct kept *kept, double share,
		       const struct series_pile *normal, const struct vapro_config *config);
void contribution__merge(struct contribution *into, const struct contribution *from);

/*
 * Shares per level, 0..1: they sum to 1 at stage 1, and at stage 2 where anything was suspended.
 * Negative impacts count as nothing.
 */
void contribution__shares(const double *impact, double *shares);

/* Whether a bundle is abnormal by its mean. */
bool contribution__abnormal(const struct kept *kept, const struct vapro_config *config);

#endif
