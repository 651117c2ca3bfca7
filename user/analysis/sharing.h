/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many of a job's own threads want the CPUs that a thread of it may use: where they are more than the CPUs, the
 * job is oversubscribed, and its threads are what each other waits for (ARCHITECTURE section 8). Where they are not,
 * a thread of the job that ran on another one's CPU was displaced by somebody else.
 */
#ifndef VAPRO_ANALYSIS_SHARING_H
#define VAPRO_ANALYSIS_SHARING_H

#include "analysis/window.h"

struct sharing;

/* Of the bins of the view. NULL when out of memory. */
struct sharing *sharing__new(const struct analysis_context *context, const struct analysis_job *job,
			     const struct analysis_span *span);
void sharing__free(struct sharing *sharing);

/*
 * The CPUs that the thread of a row may use, and how many threads of the job that may use no others were
 * runnable on average: on a CPU or waiting for one. cpus is 0 where the CPUs are not known.
 */
struct cpu_demand sharing__of(struct sharing *sharing, uint32_t row);

/* Whether the threads are more than the CPUs. */
bool sharing__oversubscribed(const struct cpu_demand *demand);

#endif
