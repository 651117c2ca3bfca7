/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `vapro stg`: the State Transition Graph of a capture (VAPRO (PPoPP'22) section 3.2) as a table or as
 * Graphviz DOT. Vertices are call-sites, edges the computation between them; labels distinguish states
 * of one call-site in the table and are folded in the drawing. Clusters are those of the whole
 * capture (VAPRO (PPoPP'22) section 3.4); lines of source come from images that still exist.
 */
#ifndef VAPRO_REPORT_STG_VIEW_H
#define VAPRO_REPORT_STG_VIEW_H

#include <stdio.h>

#include "capture/capture.h"
#include "cli/stg_table.h"

struct stg_view;

/* Makes a view. rank -1: all ranks. info defines what workload is, and is copied. Returns NULL when out of memory. */
struct stg_view *stg_view__new(int rank, const struct capture_info *info);
void stg_view__free(struct stg_view *view);

/* Returns the sink by which a replay feeds the graph; it belongs to the view. */
struct stream_sink *stg_view__sink(struct stg_view *view);

/* Reads the lines of source of all call-sites; failures are reported to complaints. Returns 0 or -ENOMEM. */
int stg_view__query_lines(struct stg_view *view, FILE *complaints);

/* Prints the states by the time spent in them. Returns 0 or -ENOMEM. */
int stg_view__table(struct stg_view *view, FILE *out, const struct stg_table_options *options);

/* Prints the graph for dot(1). */
void stg_view__dot(struct stg_view *view, FILE *out);

/* Prints one state per line as JSON, for programs. Returns 0 or -ENOMEM. */
int stg_view__json(struct stg_view *view, FILE *out);

#endif
