/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory cap: what the analysis holds is added up at each window's end, and checked again when an
 * array of bundles is full or histories were added. Beyond the cap detail is shed, in this order, each
 * step only where the one before was not enough:
 *
 *  0. what windows have dropped and history retains for queries goes;
 *  1. histories of states that were not met for long go, those met last longest ago first;
 *  2. bundles of one state, bin and norm cell become one: their sums stay, single fragments go;
 *  3. the heat map keeps little more than the view: older parts of a region stay as they were emitted;
 *  4. with instructions: cells of workloads become coarser, as beyond cluster-cells;
 *  5. bundles of one state and bin become one whatever they took: a disturbance counts by its mean;
 *  6. states that were not met before, and what does not fit at all, are dropped: their time is
 *     uncovered, reason `shed`.
 *
 * Histories have owners, the users of jobs. Each user is sure of a share of the room, one part in SHARES_LEAST or in as
 * many as there are users. Who has more gives way first: steps 1 and 6 take the histories of that user alone where
 * more would leave less than their shares to the others.
 *
 * analysis__shed reports all steps, and none ends the run; step 1 loses nothing of what goes on. The cap excludes
 * what a window needs while it is processed and reported, and the numbers of threads and states, which grow
 * with new ones until their jobs are over.
 */
#ifndef VAPRO_ANALYSIS_MEMORY_H
#define VAPRO_ANALYSIS_MEMORY_H

#include "analysis/window.h"

/*
 * Room for one more bundle of a job. Returns 0, -ENOSPC where the cap leaves none, or -ENOMEM; either
 * way the job stays as it is.
 */
int analysis_memory__reserve(struct analysis_context *context, struct analysis_job *jobs, size_t job_count,
			     struct analysis_job *job);

/* To be called when histories may have been added: checks the cap again where many were. */
void analysis_memory__look(struct analysis_context *context, struct analysis_job *jobs, size_t job_count);

/* Notes a bundle that was dropped. */
void analysis_memory__refused(struct analysis_context *context, struct analysis_job *job,
			      const struct vapro_bundle *bundle);

/* To be called before a window is processed, and after it. */
void analysis_memory__begin(struct analysis_context *context);
void analysis_memory__finalize(struct analysis_context *context, struct analysis_job *jobs, size_t job_count);

#endif
