/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The response to a query about a region (analysis__query), for people and for programs: the findings in the
 * region, or a sentence why there is nothing to report.
 */
#ifndef VAPRO_REPORT_RESPONSE_H
#define VAPRO_REPORT_RESPONSE_H

#include <stdio.h>
#include <vapro/analysis.h>

#include "report/window_json.h"

struct response {
	const struct job_result *jobs;
	uint32_t job_count;
	struct json_context context;
};

/* A query, its times UTC. */
struct query {
	struct vapro_selection selection;
	const char *job; /* NULL: all */
	uint64_t now_ns;
	uint64_t start_ns; /* start of the run: seconds in texts count from here */
	/* Returns the executable of a job's processes, or NULL where it is not known; NULL: of no job. */
	const char *(*program)(const void *ctx, const char *job, uint32_t user);
	const void *ctx;
};

/* Writes a time for people: "2026-01-31 12:00:05.2 UTC (12.4 s)", with seconds after the start. Returns buf. */
char *response__time(const struct query *query, uint64_t utc_ns, char *buf, size_t size);

/*
 * Returns whether there is a response. If not, why is a sentence that names a possible query; if so, why is
 * a sentence on the part of the region that the response lacks, or "".
 */
bool response__check(const struct response *response, const struct query *query, char *why, size_t size);

/*
 * Returns whether the last window of a replay has a diagnosis of the region that was chosen by hand. If not, why is a
 * sentence as response__check() writes it. start_ns: begin of the input.
 */
bool response__chosen(const struct job_result *results, uint32_t count, const struct vapro_selection *selection,
		      uint64_t start_ns, char *why, size_t size);

/* Returns whether a user may see the name of a task that is no process of the user's job, as board_shows. */
typedef bool (*response_shows)(void *ctx, uint32_t user, const struct result_interferer *task);

/*
 * Leaves of a response what a user (as in struct vapro_thread) may see: the jobs of that user, and the names of tasks
 * as shows() has it. The results themselves are changed: for a copy of the daemon, which ends after the response.
 * Returns 0 or -ENOMEM.
 */
int response__restrict(struct response *response, uint32_t user, response_shows shows, void *ctx);

/* Puts the response as `diagnosis` records. Returns 0, -ENOMEM or the value of put. */
int response__json(const struct response *response, record_put put, void *arg);

/* Prints the response for a person, width columns wide. Returns 0 or -ENOMEM. */
int response__text(const struct response *response, const struct query *query, FILE *out, unsigned width);

#endif
