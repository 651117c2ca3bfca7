/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The variability of a workload as an NDJSON line. */
#ifndef VAPRO_REPORT_VARIABILITY_JSON_H
#define VAPRO_REPORT_VARIABILITY_JSON_H

#include "report/json_context.h"
#include "report/record.h"

/* Puts the line of one workload. Returns as window_json__put() does. */
int variability_json__put(const struct job_result *result, const struct result_variability *at,
			  const struct json_context *context, record_put put, void *arg);

#endif
