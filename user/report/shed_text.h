/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an analysis dropped for the memory cap, in words. */
#ifndef VAPRO_REPORT_SHED_TEXT_H
#define VAPRO_REPORT_SHED_TEXT_H

#include <vapro/analysis.h>

#include <stddef.h>

/*
 * Writes a warning's text, cut where it does not fit. cap: bytes; worst: the job that lost most of it, where there are
 * several; or NULL.
 */
void shed_text__write(const struct vapro_shed *shed, uint64_t cap, const struct job_result *worst, char *text,
		      size_t size);

#endif
