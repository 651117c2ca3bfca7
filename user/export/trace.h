/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run as a trace in JSON, the Trace Event Format ("JSON object format") that Perfetto and chrome://tracing open. A
 * host is a process and a rank a thread of it; slow regions and their slowest fragments are complete events, tasks that
 * ran instead are rows of a process of their own, performance by class is a counter, and changes of counters and
 * warnings are instants. Times are microseconds from the run's begin.
 */
#ifndef VAPRO_EXPORT_TRACE_H
#define VAPRO_EXPORT_TRACE_H

#include <stdio.h>

#include "page/run_report.h"

#define TRACE_BEGIN "{\"otherData\":{\"program\":\"vapro report\"," /* how each trace begins */
#define TRACE_SLICES 1000000 /* most complete events; those of the worst regions come first */

/*
 * Writes the trace. left_out: filled with the number of complete events for which there were too many. Returns 0,
 * or a negative errno where memory or out fails.
 */
int trace__write(const struct run_report *report, const char *version, FILE *out, uint64_t *left_out);

#endif
