/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of causes (analysis/causes.h). */
#ifndef VAPRO_REPORT_CAUSE_JSON_H
#define VAPRO_REPORT_CAUSE_JSON_H

#include "analysis/causes.h"
#include "report/record.h"

/*
 * Puts a line for each cause that changed much since its last one; final: for all of them, which are then the whole of
 * the run. Causes of a job that is over are final, and forgotten. Returns 0, -ENOMEM or the value of put.
 */
int cause_json__put(struct causes *causes, uint64_t end_ns, const char *host, bool final, record_put put, void *arg);

#endif
