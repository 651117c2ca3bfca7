/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hangs in words, and as lines of records. */
#ifndef VAPRO_REPORT_HANG_TEXT_H
#define VAPRO_REPORT_HANG_TEXT_H

#include "report/json.h"
#include "report/json_context.h"
#include "report/record.h"
#include "report/source_names.h"

/* Writes a hang as a sentence without its end: who is where, since when, and for whom. malloc'ed; NULL without memory.
 */
char *hang_text__write(const struct result_hang *hang, const struct source_names *names);

/* Puts the line of a hang. Returns 0, -ENOMEM or the value of put. */
int hang_text__put(const struct job_result *result, const struct json_context *context, record_put put, void *arg);

#endif
