/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The distribution of the times of many runs as a picture for a paper (SVG 1.1), as wide as a column of two: the share
 * of the runs that took no longer, over the time, with a dot for each run, a filled one for an outlying run.
 */
#ifndef VAPRO_EXPORT_SVG_RUNS_H
#define VAPRO_EXPORT_SVG_RUNS_H

#include <stdio.h>

#include "compare/runs.h"

/* Draws the compared runs. Returns 0 or -ENOMEM. */
int svg_runs__write(const struct runs *found, FILE *out);

#endif
