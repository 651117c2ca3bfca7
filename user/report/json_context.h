/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that the lines of a window report beside its result. */
#ifndef VAPRO_REPORT_JSON_CONTEXT_H
#define VAPRO_REPORT_JSON_CONTEXT_H

#include <vapro/analysis.h>

#include "capture/stream.h"

struct job_book;
struct node_variances;
struct source_names;

/* Facts that a line reports beside the result itself. */
struct json_context {
	const char *host;
	struct stream_clock clock;	  /* present clock pair; zeros where unknown */
	double daemon_cpu_pct;		  /* NAN where unknown */
	double io_traced_pct, io_tax_pct; /* NAN where unknown; see struct stream_window */
	double bystander_hits, bystander_pct;
	const struct source_names *names;   /* NULL: none */
	const struct node_variances *nodes; /* NULL: none */
	struct job_book *jobs;		    /* names of jobs; NULL: none */
};

#endif
