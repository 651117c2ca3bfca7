/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of the profiles of a job's ranks. */
#ifndef VAPRO_REPORT_PROFILE_JSON_H
#define VAPRO_REPORT_PROFILE_JSON_H

#include "report/json_context.h"
#include "report/record.h"

/* Puts the profile of a rank. Returns 0, -ENOMEM or the value of put. */
int profile_json__put(const struct job_result *result, const struct result_rank_profile *profile,
		      const struct json_context *context, record_put put, void *arg);

#endif
