/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection of `vapro top` to a vaprod: requests snapshots, takes them as they come, and connects again after
 * vaprod has ended. Nothing here waits.
 */
#ifndef VAPRO_TOP_FEED_H
#define VAPRO_TOP_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "query/client.h"

enum feed_state {
	FEED_WAITING,	/* no vaprod; the next attempt comes by itself */
	FEED_CONNECTED, /* no snapshot yet, or the latest one was taken */
	FEED_SNAPSHOT,	/* there is a new one */
	FEED_REFUSED,	/* vaprod has refused the request */
};

struct feed;

/* where: a socket, by either of its names. interval_ms: 0 for one snapshot. Returns NULL when out of memory. */
struct feed *feed__new(const char *where, unsigned interval_ms);
void feed__free(struct feed *feed);

/* Goes on as far as possible without waiting; now_ns: CLOCK_MONOTONIC. */
enum feed_state feed__step(struct feed *feed, uint64_t now_ns);

/* Returns the descriptor to wait for, or -1 while there is none. */
int feed__fd(const struct feed *feed);

/* Takes the new snapshot: its text is the feed's, until the next step. */
const char *feed__take(struct feed *feed, size_t *size);

/* Says why there is no connection, in one sentence; "" where there is one. */
const char *feed__why(const struct feed *feed);

#endif
