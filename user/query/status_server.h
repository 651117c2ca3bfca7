/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vaprod's side of `vapro top` and of `vapro report` without a file (status.h). The daemon's loop itself serves
 * snapshots, in small steps that never wait: what a client does not accept stays in one buffer, and a client that stops
 * to read is dropped. A report is made by a copy of the daemon (listener.h). Clients, those of one user, new
 * connections in a second and the share of CPU time that all this takes are bounded; some places are root's.
 */
#ifndef VAPRO_QUERY_STATUS_SERVER_H
#define VAPRO_QUERY_STATUS_SERVER_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "query/protocol.h"

#define STATUS_ACCEPTS_PER_S 640
#define STATUS_CLIENTS 32      /* open at a time */
#define STATUS_USER_CLIENTS 24 /* of them, those of other users than root */
#define STATUS_PER_USER 4      /* of them, those of one user, who is not root */

struct status_server;

/* Writes a snapshot or, in a copy of the daemon, a report for a user into out. Returns 0, or -1 where there is none. */
typedef int (*status_answerer)(void *ctx, uid_t uid, FILE *out);

/* Writes, in a copy of the daemon, the response to a query about the jobs of a user; as query_answerer. */
typedef int (*status_diagnoser)(void *ctx, uid_t uid, const struct query_request *request, FILE *out, char *note,
				enum query_error *error);

struct status_answers {
	status_answerer snapshot, report;
	status_diagnoser diagnose;
	void *ctx;
};

/*
 * Opens the server beside the socket at path, on which this process listens; answers are copied. Returns NULL with a
 * sentence in err.
 */
struct status_server *status_server__open(const char *path, const struct status_answers *answers, char *err,
					  size_t err_size);

/* Serves all clients once, without blocking; now_ns: CLOCK_MONOTONIC. */
void status_server__step(struct status_server *server, uint64_t now_ns);

/* Returns the path of the server's socket. */
const char *status_server__path(const struct status_server *server);

/* Closes all connections and removes the socket. NULL is fine. */
void status_server__close(struct status_server *server);

#endif
