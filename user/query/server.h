/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vaprod's side of `vapro diagnose` accepts requests (protocol.h) between two iterations of the daemon's loop.
 * A forked copy of the daemon computes each response, takes as long as it needs and may overwrite its memory. The
 * loop never blocks: a client without a request after two seconds is dropped. A copy closes everything but
 * its client at once, so that it holds no probe, and dies with the daemon.
 */
#ifndef VAPRO_ASK_SERVER_H
#define VAPRO_ASK_SERVER_H

#include <stdint.h>
#include <stdio.h>

#include "query/protocol.h"

struct ask_server;

/*
 * Runs in the copy: writes the response to out, a sentence on omissions into note (ASK_SENTENCE_MAX bytes).
 * Returns 0, or -1 with the error's kind and its sentence in note.
 */
typedef int (*ask_answer)(void *ctx, const struct ask_request *request, FILE *out, char *note, enum ask_error *error);

/* Opens a server; where is as for ask_socket__listen(). Returns NULL with a sentence in err. */
struct ask_server *ask_server__open(const char *where, ask_answer answer, void *ctx, char *err, size_t err_size);

/* Serves all clients once, without blocking; now_ns: CLOCK_MONOTONIC. */
void ask_server__turn(struct ask_server *server, uint64_t now_ns);

/* Returns the path of the server's socket. */
const char *ask_server__path(const struct ask_server *server);

/* Ends copies that still run, and removes the socket. NULL is fine. */
void ask_server__close(struct ask_server *server);

#endif
