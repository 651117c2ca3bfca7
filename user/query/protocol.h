/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The protocol of `vapro diagnose` and vaprod over a local socket: one request, one response, text.
 *
 *   vapro/1 diagnose          note SENTENCE      any number of them
 *   region 8-15@12.5..20      ok BYTES           and so many bytes, NDJSON or readable text; or
 *   job slurm:1234.0          error KIND SENTENCE    usage, refused or failed
 *   format json
 *   width 100
 *   (an empty line)
 *
 * In place of a region, "jobs all" requests the names of the jobs that are watched, one a line. Job, format (text) and
 * width (80) may be missing. Neither side trusts the other: input that is too
 * long, unknown, given twice or not text is refused.
 */
#ifndef VAPRO_QUERY_PROTOCOL_H
#define VAPRO_QUERY_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>

#include "query/region_option.h"

#define QUERY_REQUEST_MAX 8192
#define QUERY_JOB_MAX 256
#define QUERY_SENTENCE_MAX 1024
#define QUERY_RESPONSE_MAX (64U << 20)

struct query_request {
	struct region_option region;
	char region_text[4096], job[QUERY_JOB_MAX]; /* job "": all jobs */
	bool json, jobs;			    /* jobs: their names, and no region */
	unsigned int width;
};

/*
 * Parses the bytes received so far. Returns 0; -EAGAIN where the request is not complete yet; or -EINVAL
 * with a sentence in err. Bytes after a request are ignored.
 */
int query_request__parse(const char *text, size_t size, struct query_request *request, char *err, size_t err_size);

/* Formats a request (region_text, not region). Returns the length, or -EINVAL where the text does not fit. */
int query_request__format(const struct query_request *request, char *buf, size_t size);

enum query_line { QUERY_NOTE, QUERY_OK, QUERY_ERROR };
enum query_error { QUERY_USAGE, QUERY_REFUSED, QUERY_FAILED, QUERY_ERRORS };

/* A line of a response's head. */
struct query_head {
	enum query_line line;
	enum query_error error;
	size_t bytes;	      /* bytes that follow an QUERY_OK line */
	const char *sentence; /* sentence of the other lines; in the text */
};

/* Reads a line without its newline, in place. Returns 0 or -EINVAL. */
int query_head__parse(char *text, struct query_head *head);

/* Formats a line with its newline. Returns buf. */
char *query_head__format(const struct query_head *head, char *buf, size_t size);

#endif
