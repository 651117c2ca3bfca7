/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What windows have dropped and somebody may still ask for (analysis__remember). Judged anew when asked:
 * here it is only kept, bounded in time and in bytes. Internal to the analysis.
 */
#ifndef VAPRO_ANALYSIS_PAST_H
#define VAPRO_ANALYSIS_PAST_H

#include "analysis_window.h"

/* Each does nothing where nothing is to be remembered. Returns 0 or -ENOMEM. */
int past__add(const struct analysis_context *context, struct past *past, const struct kept *kept);
int past__add_interference(const struct analysis_context *context, struct past *past,
			   const struct kept_interference *interference);

/* The open fragments of a job as they were at this window's end, in place of those before. Returns 0 or -ENOMEM. */
int past__hold_open(const struct analysis_context *context, struct analysis_job *job);

/* All that a silent job holds, its open fragments apart: whoever fell silent is in none. Returns 0 or -ENOMEM. */
int past__add_all(const struct analysis_context *context, struct analysis_job *job);

/* After a window: what is too old goes. */
void past__trim(const struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span);

/* After a window, over all jobs: the oldest goes where it is too much. end: the window's, a bin. */
void past__bound(const struct analysis_context *context, struct analysis_job *jobs, size_t count, uint64_t end);

void past__clear(struct past *past);

#endif
