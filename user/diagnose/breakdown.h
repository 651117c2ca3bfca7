/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The answer of a case: contributions over the whole factor tree. What one stage shows of a part is
 * put below what an earlier stage showed of the whole, and counts that cost time by regression (papers/000
 * section 4.2) take their place: coefficient times excess count. Each level is a partition of the
 * loss of its parent; time of counts whose parent is not known in time is taken out of the time on
 * the CPU, which holds it.
 */
#ifndef VAPRO_BREAKDOWN_H
#define VAPRO_BREAKDOWN_H

#include "diagnose/contribution.h"

struct breakdown_node {
	double impact_ns; /* not below 0 */
	double share;	  /* 0..1 of its level */
	double p;	  /* NAN where no regression gave it */
	bool present, major, regression;
	bool implied;	 /* by what it cannot be distinguished from: no part of its level's sum */
	uint64_t shared; /* bit per node it cannot be distinguished from */
};

struct breakdown {
	struct breakdown_node node[FACTOR_NODES];
	enum regression_outcome outcome[PRICED_SETS];
	uint64_t rows[PRICED_SETS];
	double r2[PRICED_SETS]; /* NAN where nothing was fitted */
};

void breakdown__make(const struct contribution *contribution, const struct vapro_config *config,
		     struct breakdown *breakdown);

#endif
