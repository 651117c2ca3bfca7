/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contributions of factors (VAPRO (PPoPP'22) section 4.3): abnormal fragments cost more than k_a times
 * their cluster's reference; a factor's contribution is its time in abnormal fragments less what
 * normal fragments spend on it, summed over the abnormal ones of a variance. Merged bundles are
 * judged by their mean; where their slowest member was abnormal and their mean is not, the result
 * is marked approx. Sums add over windows.
 *
 * Counts are not time: their excess is summed, and rows for the regression that prices them are
 * collected (section 4.2). A row is a bundle's mean per fragment, weighted by its fragments: the time
 * that holds the price of the counts, and the counts, both less what is normal for its workload, so
 * that rows of several workloads go together.
 */
#ifndef VAPRO_CONTRIBUTION_H
#define VAPRO_CONTRIBUTION_H

#include "diagnose/factors.h"
#include "diagnose/regression.h"
#include "model/series.h"

/* Counts that are priced together, since they are parts of the same factor. */
enum priced { PRICED_KERNEL, PRICED_MEMORY, PRICED_SETS };

struct priced_info {
	enum factor_node parent, first;
	uint32_t count; /* nodes from first on */
};

extern const struct priced_info priced_infos[PRICED_SETS];

struct contribution {
	double impact[FACTOR_NODES];   /* ns, or a number for counts; may be negative */
	double duration[FACTOR_NODES]; /* ns of abnormal fragments whose major factors include it */
	double
	    counted[COUNTER_GROUPS]; /* of the abnormal fragments, those that were counted with a group of counters */
	double abnormal, normal;     /* fragments */
	double dur, ref;	     /* ns of all fragments, and their expected ns */
	bool approx, kernel;	     /* kernel: the kernel's time is known, not only its events */
	struct regression_moments rows[PRICED_SETS];
};

/*
 * Adds a share of a bundle of a class; abnormal: the bundle's excess time is to be explained. The normal pile may be
 * empty: then the reference stands for the pile. In calls, time off the CPU has no greater impact than the calls took
 * longer.
 */
void contribution__add(struct contribution *contribution, const struct bundle_rec *rec, enum vapro_class class,
		       double share, bool abnormal, const struct series_pile *normal,
		       const struct vapro_config *config);

/* A bundle as a row of the regressions. */
struct contribution_row {
	double y[PRICED_SETS], x[PRICED_SETS][REGRESSION_FACTORS];
	double n; /* fragments */
};

/* Makes a row; false where there is nothing normal to compare its counts with. */
bool contribution__row(const struct bundle_rec *rec, const struct series_pile *normal, struct contribution_row *row);

/* Adds a share of a row: normal fragments outside of a variance show as much about prices as those inside. */
void contribution__add_row(struct contribution *contribution, const struct contribution_row *row, double share);

/* Adds all of `from`: sums are equal in any order (base/exact.h), the rows of regressions up to rounding. */
void contribution__merge(struct contribution *into, const struct contribution *from);

/*
 * Computes shares per level, 0..1: they sum to 1 at stage 1, and below a factor with any impact.
 * Negative impacts count as 0, and counts do too.
 */
void contribution__shares(const double *impact, double *shares);

/* Whether a bundle is abnormal by its mean. */
static inline bool contribution__abnormal(const struct bundle_rec *rec, const struct vapro_config *config)
{
	return rec->sum_ns > config->abnormal_ratio * rec->reference * rec->n;
}

#endif
