/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Results as NDJSON lines (ARCHITECTURE section 9): one job's window becomes lines of the types window, heatmap,
 * variance, diagnosis, imbalance, drift, rare and variability.
 */
#ifndef VAPRO_REPORT_WINDOW_JSON_H
#define VAPRO_REPORT_WINDOW_JSON_H

#include "report/json_context.h"
#include "report/record.h"

/* Puts the lines of a window. Returns 0, -ENOMEM or the value of put. */
int window_json__put(const struct job_result *result, const struct json_context *context, record_put put, void *arg);

/* Puts the lines of the heat maps of a result. Returns as window_json__put() does. */
int window_json__put_heatmaps(const struct job_result *result, const struct json_context *context, record_put put,
			      void *arg);

/* Puts the variance and diagnosis lines of a window, as window_json__put() does. */
int window_json__put_variances(const struct job_result *result, const struct json_context *context, record_put put,
			       void *arg);

#endif
