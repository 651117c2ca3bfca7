/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A report as one self-contained HTML page: no network, a strict content security policy, and the run as data (JSON,
 * and the cells of the heat maps compressed) that the page's script shows. The page is built from user/page/web.
 */
#ifndef VAPRO_PAGE_PAGE_H
#define VAPRO_PAGE_PAGE_H

#include <stdio.h>

#include "page/report_input.h"
#include "page/run_report.h"

/* How each page begins; nothing else is replaced by one. */
#define PAGE_BEGIN "<!DOCTYPE html>\n<!-- vapro report -->\n"

/*
 * Writes the page. version: of vapro. Returns 0, or a negative errno where memory or out fails (out's errors are also
 * its own).
 */
int page__write(const struct run_report *report, const struct report_input *input, const char *version, FILE *out);

#endif
