/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Results as NDJSON lines (ARCHITECTURE section 9): one job's window becomes lines of the types window, heatmap,
 * variance, diagnosis, imbalance, drift and rare.
 */
#ifndef VAPRO_REPORT_WINDOW_JSON_H
#define VAPRO_REPORT_WINDOW_JSON_H

#include <vapro/analysis.h>

#include "capture/stream.h"
#include "report/record_write.h"

struct node_variances;
struct source_names;

/* Facts that a line reports beside the result itself. */
struct json_context {
	const char *host;
	struct stream_clock clock;	  /* present clock pair; zeros where unknown */
	double daemon_cpu_pct;		  /* NAN where unknown */
	double io_traced_pct, io_tax_pct; /* NAN where unknown; see struct stream_window */
	double bystander_hits, bystander_pct;
	const struct vapro_thread *threads; /* by id, for the ranks of exemplars; may be NULL */
	uint32_t thread_count;
	const struct source_names *names;   /* NULL: none */
	const struct node_variances *nodes; /* NULL: none */
};

/* Puts the lines of a window. Returns 0, -ENOMEM or the value of put. */
int window_json__put(const struct job_result *result, const struct json_context *context, record_put put, void *arg);

/* Puts the lines of the heat maps of a result. Returns as window_json__put() does. */
int window_json__put_heatmaps(const struct job_result *result, const struct json_context *context, record_put put,
			      void *arg);

/* Puts the variance and diagnosis lines of a window, as window_json__put() does. */
int window_json__put_variances(const struct job_result *result, const struct json_context *context, record_put put,
			       void *arg);

#endif
