/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by publisher.c (the sender thread) and publisher_ring.c (the blocks that wait, and the statistics). */
#ifndef VAPRO_BROKER_PUBLISHER_PRIVATE_H
#define VAPRO_BROKER_PUBLISHER_PRIVATE_H

#include <pthread.h>
#include <time.h>

#include "broker/publisher.h"

#define NEWS_MOST 4

struct item {
	struct item *next;
	char *subject, *id;
	void *bytes;
	size_t size;
	uint64_t run, fragments, named;
	bool flying; /* sent, and neither acknowledged nor failed */
};

struct publisher {
	pthread_mutex_t lock; /* of all below; never held while the library works */
	pthread_cond_t changed;
	pthread_t thread;
	uint64_t memory_bytes, used_bytes;
	struct item *first, **last; /* in order of put */
	size_t flying, flying_bytes;
	struct block_drop *drops;
	size_t drop_count, drop_capacity;
	struct publisher_totals totals;
	char news[NEWS_MOST][512];
	enum publisher_news kinds[NEWS_MOST];
	unsigned news_count;
	bool stop, create;
	uint64_t due_ns;   /* nothing is sent before: after a failure */
	unsigned failures; /* pauses one after another without an acknowledgement */
	uint64_t seed;
	/* the thread's own */
	natsOptions *options;
	natsConnection *connection;
	jsCtx *context;
	bool connected, created;
	uint64_t open_ns;   /* no connection is opened before */
	unsigned opened;    /* since the last checkpoint was made */
	natsStatus trouble; /* the last of a send, reported once */
	char servers[256];
};

void publisher__free_item(struct item *item);

/* Adds a sentence to the news. */
void publisher__say(struct publisher *publisher, enum publisher_news kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The following want the lock. A count that finds no memory stays in the totals only. */
void publisher__count_drop(struct publisher *publisher, uint64_t run, uint64_t fragments, uint64_t named);
void publisher__set_flying(struct publisher *publisher, struct item *item, bool flying);

/* Takes an item out of the ring. */
void publisher__unlink(struct publisher *publisher, struct item **place);

/* CLOCK_MONOTONIC ns as the time that a wait ends. */
struct timespec publisher__deadline(uint64_t mono_ns);

#endif
