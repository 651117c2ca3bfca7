/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds cases from parts of variances: normal, abnormal, and tasks that ran instead. Internal to the analysis. */
#ifndef VAPRO_ANALYSIS_DIAGNOSE_H
#define VAPRO_ANALYSIS_DIAGNOSE_H

#include "analysis/window.h"

/*
 * Whether a bundle shows the undisturbed cost of its work. In a set of ranks that is slower by less than the threshold
 * no bundle is abnormal by itself, but all are disturbed.
 */
static inline bool analysis__normal(const struct analysis_context *context, const struct bundle_rec *rec)
{
	return rec->covered && !rec->no_reference && !rec->attributed_only && !rec->disturbed &&
	       !contribution__abnormal(rec, &context->config);
}

/* Makes a selection's times UTC where they are relative to the begin of the first window. */
void analysis__finalize_selection(struct selection_of *selection, uint64_t begin_ns);

/* Returns the share of a bundle of this row that lies in the region. */
double analysis__share_selected(const struct selection_of *selection, const struct stg_row *row,
				const struct bundle_rec *rec);

/* Whether a row is one of the region's. */
bool analysis__row_selected(const struct selection_of *selection, const struct stg_row *row);

/* Serves a query about one job, for the region in the context; result is as in analysis__query. Returns 0 or -ENOMEM.
 */
int analysis__respond(struct analysis_context *context, struct analysis_job *job, uint64_t now_ns, bool wanted,
		      struct job_result *result);

/* Builds the cases of the region chosen by hand, where there is one. Returns 0 or -ENOMEM. */
int analysis__diagnose_selection(struct analysis_context *context, struct analysis_job *job,
				 const struct analysis_span *span);

/* To be called once all bundles are judged, before analysis__normal_pile. Returns 0 or -ENOMEM. */
int analysis__forget_normal(struct analysis_context *context);

/* Returns the normal pile for a bundle; empty where nothing is known to be normal. */
struct series_pile analysis__normal_pile(const struct analysis_context *context, const struct bundle_rec *rec);

/* MPI time is waiting, and counts follow the time: counts explain nothing there. */
static inline bool analysis__priceable(const struct series *series)
{
	return series->class != VAPRO_COMMUNICATION;
}

/* Builds the cases of all variances of the window. Returns 0 or -ENOMEM. */
int analysis__diagnose(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span,
		       const struct parts *parts);

/* Ends a window of all jobs for the driver: the next group of counters may follow. */
void analysis__switch_stage(struct analysis_context *context, struct analysis_job *jobs);

#endif
