/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run in few words: one line for a resource manager's comment on a job, and a page of text of ten lines. */
#ifndef VAPRO_PAGE_REPORT_TEXT_H
#define VAPRO_PAGE_REPORT_TEXT_H

#include <stdio.h>

#include "page/run_report.h"

#define REPORT_LINE_SIZE 251  /* the line, with its NUL */
#define REPORT_TEXT_LINES 10  /* most lines of the text */
#define REPORT_TEXT_WIDTH 400 /* most bytes of a line of it */

/*
 * Writes the verdict on a run in one line of at most 250 bytes of printable ASCII, without quotation marks: it may
 * stand in a command of a shell. job: how a report on it is selected; NULL: not said. Returns buf, of REPORT_LINE_SIZE
 * bytes.
 */
char *report_text__line(const struct run_report *report, const char *job, char *buf);

/*
 * Writes a run in at most REPORT_TEXT_LINES lines: whose job it is, the verdict, its worst causes, what was evaluated.
 * more: a last line that says where more is; NULL: none. Returns 0 or -EIO.
 */
int report_text__write(const struct run_report *report, const char *more, FILE *out);

#endif
