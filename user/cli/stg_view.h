/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `vapro stg`: the State Transition Graph of a capture (papers/000 section 3.2) as a table or as
 * Graphviz DOT. Vertices are call-sites, edges the computation between them; labels tell states of
 * one call-site apart in the table and are folded in the drawing. Clusters are those of the whole
 * capture (papers/000 section 3.4); lines of source come from the images, where they are still there.
 */
#ifndef VAPRO_REPORT_STG_VIEW_H
#define VAPRO_REPORT_STG_VIEW_H

#include <stdio.h>

#include "capture/capture.h"

struct stg_view;

/* rank -1: all ranks. What the capture says of itself tells what workload is, and is copied. NULL: out of memory. */
struct stg_view *stg_view__new(int rank, const struct capture_info *info);
void stg_view__free(struct stg_view *view);

/* Where a replay feeds the graph; belongs to the view. */
struct stream_sink *stg_view__sink(struct stg_view *view);

/* Asks for the lines of source of all call-sites; what cannot be had is said to complaints. 0 or -ENOMEM. */
int stg_view__ask_lines(struct stg_view *view, FILE *complaints);

/* States by the time spent in them, one a line. */
void stg_view__table(struct stg_view *view, FILE *out);

/* The graph for dot(1). */
void stg_view__dot(struct stg_view *view, FILE *out);

/* One state per line as JSON, for programs. 0 or -ENOMEM. */
int stg_view__json(struct stg_view *view, FILE *out);

/* argv[0] is "stg". Returns 0, 1 failure, 2 usage. */
int stg__main(int argc, char **argv);

#endif
