/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one word that names why a variance is slow, and the task that is to blame: what regions of one cause have in
 * common when they are rolled up (analysis/causes.h). A word is the name of a factor or one of the constants below.
 */
#ifndef VAPRO_DIAGNOSE_ROOT_CAUSE_H
#define VAPRO_DIAGNOSE_ROOT_CAUSE_H

#include <vapro/analysis.h>

#define CAUSE_LATE_PEER "late_peer"	      /* ranks waited for others that came late */
#define CAUSE_BARRIER "barrier"		      /* threads waited for each other at the end of a parallel region */
#define CAUSE_TRANSFER "transfer"	      /* transfers of all ranks of a call took longer */
#define CAUSE_SLOW_PATH "slow_path"	      /* transfers of a few ranks took longer, while no rank was late */
#define CAUSE_OVERSUBSCRIBED "oversubscribed" /* the job has more runnable threads than CPUs */
#define CAUSE_PREEMPTED "preempted" /* a task ran instead; waits for a CPU after a wake-up are the same cause */
#define CAUSE_POLLING "polling"	    /* time on the CPU inside a call: MPI polls while it waits for others */
#define CAUSE_UNKNOWN "unknown"

/*
 * Returns the factor with most impact among those that are not split further; NULL where nothing is major. Suspension
 * as a whole says little and comes last.
 */
const struct result_factor *root_cause__factor(const struct result_diagnosis *diagnosis);

/* Returns the finest major part of a factor, by impact: its name, or that of the factor where no part is major. */
const char *root_cause__finest(const struct result_diagnosis *diagnosis, const char *factor);

/* Returns the IO call that a variance of IO is about, of this length; NULL: it is of another class. */
const char *root_cause__called(const struct result_variance *variance, int *length);

/*
 * Returns the name of the parallel region at whose barrier most was lost, of *length bytes; NULL where most was lost
 * elsewhere than at the barrier of a team of threads.
 */
const char *root_cause__region(const struct result_variance *variance, int *length);

/*
 * Fills cause and culprit of a variance's diagnosis, which is complete otherwise. The culprit points into the
 * diagnosis' interferers.
 */
void root_cause__find(struct result_variance *variance, bool waiting, bool transfer);

/* Returns whether a factor is time on the CPU, which inside a call of communication is polling. */
bool root_cause__polls(enum vapro_class class, const char *factor);

#endif
