/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vaprod's side of `vapro diagnose` accepts requests (protocol.h) between two iterations of the daemon's loop.
 * A forked copy of the daemon computes each response, takes as long as it needs and may overwrite its memory. The
 * loop never blocks: a client without a request after two seconds is dropped. A copy closes everything but
 * its client at once, so that it holds no probe, and dies with the daemon.
 */
#ifndef VAPRO_QUERY_SERVER_H
#define VAPRO_QUERY_SERVER_H

#include <stdint.h>
#include <stdio.h>

#include "query/protocol.h"

struct query_server;

/*
 * Runs in the copy: writes the response to out, a sentence on omissions into note (QUERY_SENTENCE_MAX bytes).
 * Returns 0, or -1 with the error's kind and its sentence in note.
 */
typedef int (*query_answerer)(void *ctx, const struct query_request *request, FILE *out, char *note,
			      enum query_error *error);

/* Opens a server; where is as for query_socket__listen(). Returns NULL with a sentence in err. */
struct query_server *query_server__open(const char *where, query_answerer response, void *ctx, char *err,
					size_t err_size);

/* Serves all clients once, without blocking; now_ns: CLOCK_MONOTONIC. */
void query_server__step(struct query_server *server, uint64_t now_ns);

/* Returns the path of the server's socket. */
const char *query_server__path(const struct query_server *server);

/* Ends copies that still run, and removes the socket. NULL is fine. */
void query_server__close(struct query_server *server);

#endif
