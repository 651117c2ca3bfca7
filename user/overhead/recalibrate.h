/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of a probe is measured at the start, when the machine may be idle, or just then busy; turbo,
 * sibling threads and hosts of virtual machines change the cost later. So vaprod measures it again while
 * running, once a minute, on a child, in some 50 ms of which a few are spent calling, and longer where the
 * child waits for a CPU, while vaprod goes on. A difference of more than a quarter, twice in a row, scales
 * all costs alike.
 */
#ifndef VAPRO_RECALIBRATE_H
#define VAPRO_RECALIBRATE_H

#include "overhead/calibrate.h"

#define RECALIBRATE_EVERY_NS 60000000000ULL
#define RECALIBRATE_SOON_NS 3000000000ULL /* time to the next measurement after one that differs */

struct recalibration {
	uint64_t due_ns;
	double doubted_ns;		 /* last result, where it differed too much; 0 = it did not */
	struct remeasurement *measuring; /* under way; or NULL */
};

/* Returns whether found_ns differs for good from a call's assumed cost: then *ratio is the factor for all costs. */
bool recalibrate__judge(struct recalibration *recalibration, double call_ns, double found_ns, double *ratio);

/* Multiplies all costs by ratio. */
void recalibrate__scale(struct costs *costs, double ratio);

/*
 * Begins to measure entry and return again, or goes on with that; never waits for the child. Returns true once it has
 * ended, with the cost in ns: 0 where it failed, or where attaching would disturb tracked processes.
 */
bool recalibrate__step(struct recalibration *recalibration, struct kernel_side *side, double *found_ns);

/* Cancels a measurement that is under way. */
void recalibrate__stop(struct recalibration *recalibration);

#endif
