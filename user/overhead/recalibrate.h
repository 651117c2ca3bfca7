/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a probe costs is measured at the start, when the machine may have been idle, or just then busy;
 * turbo, sibling threads and hosts of virtual machines change it later. So it is measured again while
 * running, once a minute, on a child of our own, in some 50 ms of which a few are spent calling. What
 * differs by more than a quarter, and does so twice in a row, is taken for all costs alike.
 */
#ifndef VAPRO_RECHECK_H
#define VAPRO_RECHECK_H

#include "overhead/calibrate.h"

#define RECHECK_EVERY_NS 60000000000ULL
#define RECHECK_SOON_NS 3000000000ULL /* once more where one differs */

struct recheck {
	uint64_t due_ns;
	double doubted_ns; /* what the last one found, where it differed too much; 0 = it did not */
};

/* Whether found_ns differs from what a call is thought to cost for good: then *ratio is what to take costs times. */
bool recheck__judge(struct recheck *recheck, double call_ns, double found_ns, double *ratio);

/* Costs other than they were. */
void recheck__scale(struct costs *costs, double ratio);

/* Measures entry and return again, ns; 0 where that fails, or where attaching would disturb the watched. */
double recheck__measure(struct kernel_side *side);

#endif
