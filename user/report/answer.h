/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The answer to a question about a region (analysis__ask), for people and for programs: what is in it, or
 * a sentence why there is nothing to tell.
 */
#ifndef VAPRO_REPORT_ANSWER_H
#define VAPRO_REPORT_ANSWER_H

#include <stdio.h>
#include <vapro/analysis.h>

#include "report/json.h"

struct answer {
	const struct job_result *jobs;
	uint32_t job_count;
	struct json_context context;
};

/* What was asked, its times UTC. */
struct question {
	struct vapro_selection selection;
	const char *job; /* NULL: all */
	uint64_t now_ns;
	uint64_t start_ns; /* of the run: seconds in texts count from here */
};

/* A number of people can find themselves in: "2026-01-31 12:00:05.2 UTC (12.4 s)", after the start. Returns buf. */
char *answer__time(const struct question *question, uint64_t utc_ns, char *buf, size_t size);

/*
 * Whether there is an answer. If not, why is a sentence that names what could be asked instead; if so,
 * why is a sentence on what of the region is not in it, or "".
 */
bool answer__check(const struct answer *answer, const struct question *question, char *why, size_t size);

/* The answer as `diagnosis` records. Returns 0, -ENOMEM or what put returned. */
int answer__json(const struct answer *answer, json_put put, void *arg);

/* The answer for a person, width columns wide. Returns 0 or -ENOMEM. */
int answer__text(const struct answer *answer, const struct question *question, FILE *out, unsigned width);

#endif
