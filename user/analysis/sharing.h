/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The demand of a job's own threads for the CPUs that a thread of the job may use. Where threads outnumber CPUs, the
 * job is oversubscribed, and its threads wait for each other (ARCHITECTURE section 8). Elsewhere, a thread of the job
 * that ran on another one's CPU was displaced by a task outside the job.
 */
#ifndef VAPRO_ANALYSIS_SHARING_H
#define VAPRO_ANALYSIS_SHARING_H

#include "analysis/window.h"

struct sharing;

/* Covers the bins of the view. Returns NULL when out of memory. */
struct sharing *sharing__new(const struct analysis_context *context, const struct analysis_job *job,
			     const struct analysis_span *span);
void sharing__free(struct sharing *sharing);

/*
 * Returns the CPUs that the thread of a row may use, and the mean number of the job's threads that may use no
 * others and were runnable: on a CPU or waiting for one. cpus is 0 where the CPUs are not known.
 */
struct cpu_demand sharing__of(struct sharing *sharing, uint32_t row);

/* Whether the threads outnumber the CPUs. */
bool sharing__oversubscribed(const struct cpu_demand *demand);

#endif
