/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the parts of variances to cases: what is normal, what is not, and who ran instead. Internal to the analysis. */
#ifndef VAPRO_ANALYSIS_DIAGNOSE_H
#define VAPRO_ANALYSIS_DIAGNOSE_H

#include "analysis_window.h"

/* Whether a bundle tells what its work costs when nothing is wrong. */
static inline bool analysis__normal(const struct analysis_context *context, const struct kept *kept)
{
	return kept->covered && !kept->blind && !contribution__abnormal(kept, &context->config);
}

/* Builds the cases of all variances of the window. Returns 0 or -ENOMEM. */
int analysis__diagnose(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span,
		       const struct parts *parts);

/* Ends a window of all jobs for the driver: the next group of counters may come. */
void analysis__turn(struct analysis_context *context, struct analysis_job *jobs);

#endif
