/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends the events of the daemon to a broker, divided by job (docs/publishing.md). */
#ifndef VAPRO_PUBLISHING_H
#define VAPRO_PUBLISHING_H

#include "broker/publisher.h"
#include "broker/requests.h"
#include "capture/stream.h"

#define PUBLISHING_CLUSTER "main"
#define PUBLISHING_INBOX "_INBOX_" /* and the host's token: a node may be permitted to read its own only */
#define PUBLISHING_MEMORY (16ULL << 20)
#define PUBLISHING_MEMORY_LEAST (1ULL << 20)
#define PUBLISHING_MEMORY_MOST (64ULL << 30)
#define PUBLISHING_FLUSH_NS 2000000000ULL /* at the end, for what is not acknowledged yet */

struct publishing_options {
	struct broker_options broker; /* servers NULL: nothing is published */
	const char *cluster;	      /* NULL: PUBLISHING_CLUSTER */
	uint64_t memory_bytes;	      /* 0: PUBLISHING_MEMORY */
	bool only;		      /* no analysis on this node */
};

struct publishing;

/* host: of this node; tunables: JSON of the config. Returns NULL with a sentence in err. */
struct publishing *publishing__new(const struct publishing_options *options, const char *host, const char *tunables,
				   char *err, size_t err_size);

/* Takes an event; facts of its job get the fragments that were discarded since its last ones. Returns 0 or -ENOMEM. */
int publishing__put(struct publishing *publishing, struct stream_event *event);

/* Packs what is due, and counts what was discarded. */
void publishing__step(struct publishing *publishing, uint64_t now_ns);

/* Takes a sentence about the connection; trouble: it is a warning. Returns false where there is none. */
bool publishing__news(struct publishing *publishing, char *text, size_t size, bool *trouble);

/*
 * Sends the last blocks and waits until they are acknowledged, at most so long. Returns whether all blocks of the run
 * were, with a sentence about those that were not.
 */
bool publishing__finish(struct publishing *publishing, uint64_t most_ns, char *text, size_t size);

/* The requests of workers to this node; they live as long as the object. */
struct requests *publishing__requests(struct publishing *publishing);

struct publisher_totals publishing__totals(struct publishing *publishing);
void publishing__free(struct publishing *publishing);

#endif
