/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `vapro report` writes beside the page: a picture, tables, a trace. */
#ifndef VAPRO_CLI_REPORT_EXPORTS_H
#define VAPRO_CLI_REPORT_EXPORTS_H

#include <stdbool.h>

#include "page/run_report.h"

/* Paths; NULL: not wanted. */
struct report_exports {
	const char *svg, *csv, *trace;
	const char *class; /* of the picture; NULL: computation */
};

/* Returns whether anything is wanted. */
bool report_exports__any(const struct report_exports *exports);

/* Writes what is wanted; after a failure the others are still written. Returns an exit code. */
int report_exports__write(const struct report_exports *exports, const struct run_report *report);

#endif
