/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The protocol over the status socket, to which every user may connect. `vapro top` sends one request and gets a
 * snapshot of vaprod's state at once and after each interval, until one side closes. `vapro report` gets one response,
 * the records of what vaprod retains, and the end.
 *
 *   vapro/1 status            ok BYTES           and so many bytes of records (NDJSON); again and again, or
 *   interval_ms 1000          error KIND SENTENCE    and the end
 *   (an empty line)
 *
 *   vapro/1 report            ok BYTES           and so many bytes of records (NDJSON); or
 *   (an empty line)           error KIND SENTENCE
 *
 * `vapro diagnose` of a user other than root sends a request of protocol.h, which is answered as there, about the
 * user's own jobs.
 *
 * The interval is 0 for one snapshot, or STATUS_LEAST_MS to STATUS_MOST_MS. A snapshot is late where vaprod has more to
 * do, or where the earlier one is not read yet. Neither side trusts the other.
 */
#ifndef VAPRO_QUERY_STATUS_H
#define VAPRO_QUERY_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include "query/protocol.h"

#define STATUS_REQUEST_MAX 256 /* bytes of a request for snapshots or a report */
#define STATUS_LEAST_MS 500
#define STATUS_MOST_MS 3600000
#define STATUS_RESPONSE_MAX (32U << 20)

struct status_request {
	bool report;   /* a report; else snapshots, or */
	bool diagnose; /* the diagnosis of a region */
	struct query_request query;
	unsigned interval_ms; /* between snapshots; 0: one */
};

/*
 * Parses the bytes received so far. Returns 0; -EAGAIN where the request is not complete yet; or -EINVAL
 * with a sentence in err, also where there are bytes after the request.
 */
int status_request__parse(const char *text, size_t size, struct status_request *request, char *err, size_t err_size);

/* Formats a request. Returns its length, or -EINVAL where it does not fit. */
int status_request__format(const struct status_request *request, char *buf, size_t size);

#endif
