/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `vapro stg`: the State Transition Graph of a capture (papers/000 section 3.2) as a table or as
 * Graphviz DOT. Vertices are call-sites, edges the computation between them; labels tell states of
 * one call-site apart in the table and are folded in the drawing.
 */
#ifndef VAPRO_REPORT_STG_VIEW_H
#define VAPRO_REPORT_STG_VIEW_H

#include <stdio.h>

#include "collect/stream.h"

struct stg_view;

/* rank -1: all ranks. NULL when out of memory. */
struct stg_view *stg_view__new(int rank);
void stg_view__free(struct stg_view *view);

/* Where a replay feeds the graph; belongs to the view. */
struct stream_sink *stg_view__sink(struct stg_view *view);

/* States by the time spent in them, one a line. */
void stg_view__table(struct stg_view *view, FILE *out);

/* The graph for dot(1). */
void stg_view__dot(struct stg_view *view, FILE *out);

/* argv[0] is "stg". Returns 0, 1 failure, 2 usage. */
int stg__main(int argc, char **argv);

#endif
