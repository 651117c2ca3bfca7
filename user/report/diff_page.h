/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result of `vapro diff` as one HTML page without a script: sentences, tables, and the change of each rank drawn.
 */
#ifndef VAPRO_REPORT_DIFF_PAGE_H
#define VAPRO_REPORT_DIFF_PAGE_H

#include "report/diff_report.h"

/* How each page begins; nothing else is replaced by one. */
#define DIFF_PAGE_BEGIN "<!DOCTYPE html>\n<!-- vapro diff -->\n"

/* Writes the page of comparisons of runs with one run. Returns 0 or -ENOMEM; errors of out are its own. */
int diff_page__begin(FILE *out);
int diff_page__add(const struct diff_report *report, FILE *out);
void diff_page__end(FILE *out);

#endif
