/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The streams of a broker and their limits (docs/publishing.md has the arithmetic). */
#ifndef VAPRO_BROKER_STREAMS_H
#define VAPRO_BROKER_STREAMS_H

#include <nats/nats.h>

#include "wire/subject.h"

/*
 * Ids of messages are remembered for so long: a block may be stored while its acknowledgement is lost with the
 * connection. It is sent again after the fail-over or absence of a broker (60 s), the time that an acknowledgement is
 * waited for (5 s), and the longest back-off (10 s).
 */
#define STREAM_DUPLICATES_NS 120000000000LL
#define STREAM_AGE_NS 86400000000000LL
#define STREAM_BYTES (8LL << 30) /* less, in steps of 4, where a broker has not so much */
#define STREAM_LEAST_BYTES (32LL << 20)
#define STREAM_MESSAGE_BYTES (1 << 20)

/* Name of the stream of a role; NULL for requests, which are not stored. */
const char *broker__stream(enum wire_role role);

/*
 * Gets the name of the stream that holds the subjects of a role: an administrator may have made one of another name.
 * NATS_NOT_FOUND: there is none.
 */
natsStatus broker__find_stream(jsCtx *context, enum wire_role role, char *name, size_t size);

/*
 * Creates the stream of a role where it is absent; one that is there stays as it is. May take as long as the context
 * waits. replicas: of a cluster of brokers, 1 to 5.
 */
natsStatus broker__create_stream(jsCtx *context, enum wire_role role, int replicas);

#endif
