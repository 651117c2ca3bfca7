/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vaprod's side of `vapro diagnose`: takes questions (protocol.h) between two turns of its loop and has
 * each answered by a forked copy of the daemon, which may compute as long as it takes and spoil what it
 * likes. The loop is never held up: nothing blocks, and who has not asked after two seconds is dropped. A copy
 * closes everything but its client at once, so that it holds no probe, and dies with the daemon.
 */
#ifndef VAPRO_ASK_SERVER_H
#define VAPRO_ASK_SERVER_H

#include <stdint.h>
#include <stdio.h>

#include "query/protocol.h"

struct ask_server;

/*
 * In the copy: writes the answer to out, a sentence on what is left out into note (ASK_SENTENCE_MAX bytes).
 * Returns 0, or -1 with the error's kind and its sentence in note.
 */
typedef int (*ask_answer)(void *ctx, const struct ask_request *request, FILE *out, char *note, enum ask_error *error);

/* where as for ask_socket__listen. NULL with a sentence in err. */
struct ask_server *ask_server__open(const char *where, ask_answer answer, void *ctx, char *err, size_t err_size);

/* One turn; now_ns CLOCK_MONOTONIC. */
void ask_server__turn(struct ask_server *server, uint64_t now_ns);

/* Where it is reached. */
const char *ask_server__path(const struct ask_server *server);

/* Ends copies that are still at work, and takes the socket away. NULL is fine. */
void ask_server__close(struct ask_server *server);

#endif
