/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * History retains what windows have dropped and queries may still cover (analysis__remember), bounded in
 * time and in bytes; a query judges it again. Internal to the analysis.
 */
#ifndef VAPRO_ANALYSIS_HISTORY_H
#define VAPRO_ANALYSIS_HISTORY_H

#include "analysis/window.h"

/* Remembers a bundle; out of memory it is freed. Returns 0 or -ENOMEM. */
int history__hold(struct analysis_context *context, struct history *history, const struct bundle_rec *rec);

/* Takes the bundle over in any case: it is remembered, or its memory is freed. Returns 0 or -ENOMEM. */
static inline int history__add(struct analysis_context *context, struct history *history, const struct bundle_rec *rec)
{
	if (context->remember_bins)
		return history__hold(context, history, rec);
	if (rec->factor != bundle_rec_no_factors)
		series__drop(&context->series, rec);
	return 0;
}

/* Does nothing where nothing is to be remembered. Returns 0 or -ENOMEM. */
int history__add_interference(const struct analysis_context *context, struct history *history,
			      const struct interference_rec *interference);

/*
 * Takes over the open fragments of a job as they were at this window's end, in place of those before; the
 * job has none then. Returns 0 or -ENOMEM.
 */
int history__hold_open(struct analysis_context *context, struct analysis_job *job);

/* Takes over all that a silent job holds; such a job has nothing open. Returns 0 or -ENOMEM. */
int history__add_all(struct analysis_context *context, struct analysis_job *job);

/* Drops what is too old, after a window. */
void history__trim(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span);

/* Drops the oldest over all jobs beyond the bound on bytes, after a window. end: the window's end, a bin. */
void history__bound(struct analysis_context *context, struct analysis_job *jobs, size_t count, uint64_t end);

/* Drops all but open fragments, to save memory: queries reach back to the view only. Returns how many. */
size_t history__forget(struct analysis_context *context, struct history *history);

void history__clear(struct analysis_context *context, struct history *history);

#endif
