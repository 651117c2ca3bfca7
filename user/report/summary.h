/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a run for a person: what was slow, when, which ranks, what it cost, why, who took the
 * time, and how far the numbers can be trusted. Collects job results window by window; everything
 * it keeps is copied.
 */
#ifndef VAPRO_REPORT_SUMMARY_H
#define VAPRO_REPORT_SUMMARY_H

#include <stdio.h>
#include <vapro/analysis.h>

struct summary;

struct summary *summary__new(void);
void summary__free(struct summary *summary);

/* Adds one job's window. daemon_cpu_pct NAN where unknown. Returns 0 or -ENOMEM. */
int summary__add(struct summary *summary, const struct job_result *result, double daemon_cpu_pct);

/* Facts from elsewhere that must be shown: lines or input that were lost ("!!!"). Copied. */
int summary__add_trouble(struct summary *summary, const char *text);

/* width 0: 80 columns. Sorts what it keeps. */
void summary__print(struct summary *summary, FILE *out, unsigned width);

#endif
