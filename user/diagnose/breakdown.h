/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The breakdown of a case: contributions over the whole factor tree. A part that one stage measured goes
 * below the whole that an earlier stage measured, and counts that cost time by regression (VAPRO (PPoPP'22)
 * section 4.2) have their node: coefficient times excess count. Each level is a partition of the loss of
 * its parent; time of counts whose parent is not known in time is subtracted from the time on the CPU,
 * which contains the time of those counts.
 */
#ifndef VAPRO_BREAKDOWN_H
#define VAPRO_BREAKDOWN_H

#include "diagnose/contribution.h"

struct breakdown_node {
	double impact_ns; /* not below 0 */
	double share;	  /* 0..1 of the node's level */
	double p;	  /* NAN where no regression gave it */
	bool present, major, regression;
	bool implied;	 /* estimated from the nodes in shared: no part of the level's sum */
	uint64_t shared; /* bit per node inseparable from this one */
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
