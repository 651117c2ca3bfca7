/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A noise component as an NDJSON line. */
#ifndef VAPRO_REPORT_NOISE_JSON_H
#define VAPRO_REPORT_NOISE_JSON_H

#include "report/json_context.h"
#include "report/record.h"

/* Puts the line of one component. Returns as window_json__put() does. */
int noise_json__put(const struct job_result *result, const struct result_noise *noise,
		    const struct json_context *context, record_put put, void *arg);

#endif
