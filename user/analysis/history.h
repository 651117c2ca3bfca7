/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What windows have dropped and somebody may still ask for (analysis__remember). Judged anew when asked:
 * here it is only kept, bounded in time and in bytes. Internal to the analysis.
 */
#ifndef VAPRO_ANALYSIS_PAST_H
#define VAPRO_ANALYSIS_PAST_H

#include "analysis/window.h"

/* Takes the bundle over in any case: it is remembered, or gives back what it holds. Returns 0 or -ENOMEM. */
int past__add(struct analysis_context *context, struct past *past, const struct kept *kept);

/* Does nothing where nothing is to be remembered. Returns 0 or -ENOMEM. */
int past__add_interference(const struct analysis_context *context, struct past *past,
			   const struct kept_interference *interference);

/*
 * Takes over the open fragments of a job as they were at this window's end, in place of those before; the
 * job has none then. Returns 0 or -ENOMEM.
 */
int past__hold_open(struct analysis_context *context, struct analysis_job *job);

/* Takes over all that a silent job holds; whoever fell silent has nothing open. Returns 0 or -ENOMEM. */
int past__add_all(struct analysis_context *context, struct analysis_job *job);

/* After a window: what is too old goes. */
void past__trim(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span);

/* After a window, over all jobs: the oldest goes where it is too much. end: the window's, a bin. */
void past__bound(struct analysis_context *context, struct analysis_job *jobs, size_t count, uint64_t end);

/* All but what is open, for the sake of memory: questions reach back no further than the view. Returns how much. */
size_t past__forget(struct analysis_context *context, struct past *past);

void past__clear(struct analysis_context *context, struct past *past);

#endif
