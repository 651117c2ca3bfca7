/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sends messages to a stream of a broker from a thread of its own, behind a ring that is bounded in bytes. The caller
 * never waits: where the broker is absent, slow or full, messages wait in the ring, and when it is full the oldest ones
 * that are not on their way are discarded and counted. A message is sent again, under the same id and with back-off,
 * until the broker acknowledges it.
 */
#ifndef VAPRO_BROKER_PUBLISHER_H
#define VAPRO_BROKER_PUBLISHER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/connection.h"
#include "wire/block.h"

struct publisher_options {
	struct broker_options broker;
	uint64_t memory_bytes; /* of the ring: messages with their texts */
	bool create;	       /* creates the stream of blocks where it is absent and the broker permits it */
};

struct publisher;

/* Starts the thread, which connects. Returns NULL with a sentence in err; a broker that is absent is no error. */
struct publisher *publisher__new(const struct publisher_options *options, char *err, size_t err_size);

/* Ends the thread; what was not acknowledged is lost: flush first. Takes up to a few seconds where a broker hangs. */
void publisher__free(struct publisher *publisher);

struct publish_message {
	const char *subject, *id; /* copied */
	void *bytes;		  /* the publisher frees them, also on an error */
	size_t size;
	uint64_t run, fragments, named; /* for the counts of drops, as in struct block */
};

/* Adds a message, and discards the oldest ones, or this one, where there is no room. Returns 0 or -ENOMEM (discarded).
 */
int publisher__put(struct publisher *publisher, const struct publish_message *message);

/* Takes counts of discarded messages of one run; false where there are none. */
bool publisher__dropped(struct publisher *publisher, struct block_drop *drop);

enum publisher_news {
	PUBLISHER_NO_NEWS,
	PUBLISHER_CONNECTED,
	PUBLISHER_TROUBLE, /* lost, refused, or no stream */
};

/* Takes a sentence about a change. */
enum publisher_news publisher__news(struct publisher *publisher, char *text, size_t size);

struct publisher_totals {
	uint64_t acknowledged, bytes; /* messages, and their bytes */
	uint64_t duplicates;	      /* acknowledged ones that the broker had already */
	uint64_t again;		      /* messages sent again */
	uint64_t dropped, fragments;  /* messages discarded, and the fragments in them */
	uint64_t waiting;	      /* messages in the ring */
	uint64_t ring_bytes;
};

struct publisher_totals publisher__totals(struct publisher *publisher);

/* Waits until all is acknowledged, at most so long. Returns whether it is. */
bool publisher__flush(struct publisher *publisher, uint64_t most_ns);

#endif
