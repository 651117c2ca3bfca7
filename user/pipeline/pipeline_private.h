/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pipeline as its events (pipeline.c) and its checkpoints (pipeline_checkpoint.c) see it. */
#ifndef VAPRO_PIPELINE_PRIVATE_H
#define VAPRO_PIPELINE_PRIVATE_H

#include "analysis/causes.h"
#include "model/bands.h"
#include "report/job_book.h"
#include "report/node_variances.h"
#include "pipeline/pipeline.h"
#include "pipeline/reported.h"
#include "report/source_names.h"

struct pipeline {
	struct stream_sink sink; /* first */
	struct analysis *analysis;
	struct line_sink *lines;
	struct summary *summary;
	struct source_names *names;
	struct narrator *narrator;
	void (*tap)(void *arg, const char *line); /* NULL: none */
	void *tap_arg;
	void (*take)(void *arg, const struct job_result *result); /* NULL: none */
	void *take_arg;
	struct board *board;	     /* or NULL */
	struct state_totals *states; /* or NULL */
	struct causes *causes;
	struct stream_clock clock;
	char *host;
	struct reported_variances *reported, *reported_hangs;
	struct node_variances nodes;
	struct job_book *jobs; /* their names */
	double rank_seconds, judged_seconds;
	uint64_t selections;
	struct line_totals totals;
	uint64_t begin_ns, end_ns, memory_cap;
	struct vapro_selection selection; /* its ranks are the caller's */
	bool selected;
	bool begun;	    /* a thread was announced */
	char *unanswered;   /* why the region chosen by hand has no diagnosis; NULL: it has one, or none was chosen */
	bool shed_reported; /* the summary has it: the first time is enough */
	struct rules rules;
	struct bands *bands; /* NULL where no rule splits states */
};

#endif
