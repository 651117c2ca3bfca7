/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The demand of a job's own threads for the CPUs that a thread of the job may use. Where threads outnumber CPUs, the
 * job is oversubscribed, and its threads wait for each other (ARCHITECTURE section 8). Elsewhere, a thread of the job
 * that ran on another one's CPU was displaced by a task outside the job.
 */
#ifndef VAPRO_ANALYSIS_SHARING_H
#define VAPRO_ANALYSIS_SHARING_H

#include "analysis/window.h"

/*
 * Counts the waits for a CPU of each variance of the job, and those for the job's own threads where these outnumber the
 * CPUs. Returns 0 or -ENOMEM.
 */
int sharing__count_waits(const struct analysis_context *context, struct analysis_job *job,
			 const struct analysis_span *span);

#endif
