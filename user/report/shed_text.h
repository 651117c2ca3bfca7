/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an analysis dropped for the memory cap, in words. */
#ifndef VAPRO_REPORT_SHED_TEXT_H
#define VAPRO_REPORT_SHED_TEXT_H

#include <vapro/analysis.h>

#include <stddef.h>

/* Writes a warning's text, cut where it does not fit. cap: bytes. */
void shed_text__write(const struct vapro_shed *shed, uint64_t cap, char *text, size_t size);

#endif
