/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The summary at the end of a run, for a person: what was slow, when, which ranks, the cost, the cause,
 * the interferers, and how far the numbers can be trusted. The summary collects job results window by
 * window, and copies them.
 */
#ifndef VAPRO_REPORT_SUMMARY_H
#define VAPRO_REPORT_SUMMARY_H

#include <stdio.h>
#include <vapro/analysis.h>

#include "report/source_names.h"

struct summary;

struct summary *summary__new(void);
void summary__free(struct summary *summary);

/* Names call-sites from here on; NULL: no more. The names are read in summary__add() only. */
void summary__name(struct summary *summary, const struct source_names *names);

/* Adds one job's window. daemon_cpu_pct NAN where unknown. Returns 0 or -ENOMEM. */
int summary__add(struct summary *summary, const struct job_result *result, double daemon_cpu_pct);

/* Adds a copied fact from elsewhere that must be shown ("!!!"): lost lines or input. */
int summary__add_trouble(struct summary *summary, const char *text);

/* Sorts and prints the summary. width 0: 80 columns. */
void summary__print(struct summary *summary, FILE *out, unsigned width);

#endif
