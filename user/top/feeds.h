/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connections of `vapro top` to all vaprods of a directory of sockets, or to the one of a socket. Their snapshots
 * become one (query/joined_records.h). vaprods that begin and end meanwhile come and go. Nothing here waits.
 */
#ifndef VAPRO_TOP_FEEDS_H
#define VAPRO_TOP_FEEDS_H

#include <poll.h>

#include "query/joined_records.h"
#include "top/feed.h"

struct feeds;

/* As feed__new(); of more than JOINED_PARTS sockets the further ones do not count. */
struct feeds *feeds__new(const char *where, unsigned interval_ms);
void feeds__free(struct feeds *feeds);

/*
 * Goes on as far as possible without waiting; now_ns: CLOCK_MONOTONIC. There is a new snapshot once each vaprod has sent
 * one, or half a second after the first. FEED_REFUSED: all have refused.
 */
enum feed_state feeds__step(struct feeds *feeds, uint64_t now_ns);

/* Fills the descriptors to wait for, JOINED_PARTS at most. Returns how many there are. */
size_t feeds__fds(const struct feeds *feeds, struct pollfd fds[JOINED_PARTS]);

/* Takes the new snapshot: its text is the feeds' until the next step; NULL when out of memory. */
const char *feeds__take(struct feeds *feeds, size_t *size);

/* Says why there is no connection, in one sentence; "" where there is one. */
const char *feeds__why(const struct feeds *feeds);

#endif
