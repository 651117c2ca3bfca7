/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result of `vapro runs` for people, and the distribution of the runs' times as comma-separated values. */
#ifndef VAPRO_RUNS_REPORT_H
#define VAPRO_RUNS_REPORT_H

#include <stdio.h>

#include "compare/runs.h"

/* What a run is called behind its name: why it is not compared; "" where it is. */
const char *runs_report__use(const struct runs_run *run);

/* Prints a line for each run, then the outlying runs, hosts, ranks and states. from_records: of vaprod's output. */
void runs_report__text(const struct runs *found, bool from_records, unsigned width, FILE *out);

/* Prints records of type runs, one a line. Returns 0 or -ENOMEM. */
int runs_report__json(const struct runs *found, bool from_records, FILE *out);

/*
 * Prints the compared runs in the order of their times, with the share of the runs that took no longer: the empirical
 * distribution function. Returns 0 or -ENOMEM.
 */
int runs_report__csv(const struct runs *found, FILE *out);

#endif
