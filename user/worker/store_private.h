/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by store.c (connection, streams, leases), store_reader.c (blocks) and store_messages.c (results, states of
 * jobs). */
#ifndef VAPRO_WORKER_STORE_PRIVATE_H
#define VAPRO_WORKER_STORE_PRIVATE_H

#include "worker/store.h"

#define STORE_WAIT_MS 2000 /* for a response of the broker */

struct store {
	const struct store_options options;
	natsConnection *connection;
	jsCtx *stream;
	kvStore *bucket;
	char in[64], out[64], state[64]; /* names of the streams; state may be empty */
};

int store__error(natsStatus status, jsErrCode code);

/* Reads the last message of a subject; -ENOENT: there is none. */
int store__last_message(struct store *store, const char *stream, const char *subject, natsMsg **message);

#endif
