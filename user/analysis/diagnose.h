/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the parts of variances to cases: what is normal, what is not, and who ran instead. Internal to the analysis. */
#ifndef VAPRO_ANALYSIS_DIAGNOSE_H
#define VAPRO_ANALYSIS_DIAGNOSE_H

#include "analysis/window.h"

/*
 * Whether a bundle shows what its work costs when nothing is wrong. Of a set of ranks that is slower by less than the
 * threshold no bundle is abnormal by itself, but all are disturbed.
 */
static inline bool analysis__normal(const struct analysis_context *context, const struct kept *kept)
{
	return kept->covered && !kept->blind && !kept->taken && !kept->disturbed &&
	       !contribution__abnormal(kept, &context->config);
}

/* Times that count from the first window become UTC with it. */
void analysis__settle_selection(struct selection_of *selection, uint64_t begin_ns);

/* The share of a bundle of this row that lies in the region. */
double analysis__share_selected(const struct selection_of *selection, const struct stg_row *row,
				const struct kept *kept);

/* Whether a row is one of the region's. */
bool analysis__row_selected(const struct selection_of *selection, const struct stg_row *row);

/* A job's answer to a question, of the region in the context; results as of analysis__ask. Returns 0 or -ENOMEM. */
int analysis__answer(struct analysis_context *context, struct analysis_job *job, uint64_t now_ns, bool asked,
		     struct job_result *result);

/* Builds the cases of the region chosen by hand, where there is one. Returns 0 or -ENOMEM. */
int analysis__diagnose_selection(struct analysis_context *context, struct analysis_job *job,
				 const struct analysis_span *span);

/* To be called once all bundles were judged, before anybody asks what is normal. Returns 0 or -ENOMEM. */
int analysis__forget_normal(struct analysis_context *context);

/* What is normal where a bundle belongs; empty where nothing is known to be. */
struct series_pile analysis__normal_pile(const struct analysis_context *context, const struct kept *kept);

/* In MPI time is waited away, and counts follow it: they explain nothing there. */
static inline bool analysis__priceable(const struct series *series)
{
	return series->class != VAPRO_COMMUNICATION;
}

/* Builds the cases of all variances of the window. Returns 0 or -ENOMEM. */
int analysis__diagnose(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span,
		       const struct parts *parts);

/* Ends a window of all jobs for the driver: the next group of counters may come. */
void analysis__turn(struct analysis_context *context, struct analysis_job *jobs);

#endif
