/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides which of an image's functions can be probed within a share of its processes' time.
 *
 * A function is never opened to find out its cost: the rate of hits comes from a look that lasts milliseconds
 * (row_costs.c), the cost of a hit from the calibration. The functions that cost least are opened until the share is
 * used up, since that leaves the fewest out.
 *
 * Functions that end in the same function share its exits, whose probes are hit as long as one of them is open: these
 * functions are a family, opened and left out together.
 *
 * Pure: rates and times come in as arguments. Costs are ns, shares 0..1 of the time of one process.
 */
#ifndef VAPRO_ROW_PLAN_H
#define VAPRO_ROW_PLAN_H

#include <stdbool.h>
#include <stddef.h>

/* A function that may be opened. */
struct row_load {
	unsigned int family; /* 0: it shares no exit */
	double share;	     /* of a process's time that its probes would cost alone, shared exits included */
	double own_share;    /* the same without exits that are charged to another of its family: these add up */
	double family_share; /* what its family costs, by the plan */
	bool open;	     /* the plan's decision */
};

/* Sets what the family of each of the loads costs: the sum of its own shares, each shared exit once. */
void row_plan__sum_families(struct row_load *loads, size_t count);

/*
 * Sets open in each of the loads, alike in all of a family; those that are open cost at most a share together. Returns
 * what they cost.
 */
double row_plan__choose(struct row_load *loads, size_t count, double share);

/* Functions of one class share links: 0 is called least. A class that becomes hot is closed without the others. */
#define ROW_CLASSES 4
unsigned int row_plan__class(double calls_per_s);

#endif
