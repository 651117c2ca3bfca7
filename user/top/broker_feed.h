/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jobs of many nodes for `vapro top`: reads what workers publish, and makes snapshots of it in the form that vaprod
 * has (query/status.h). A connection that is lost is made again.
 */
#ifndef VAPRO_TOP_BROKER_FEED_H
#define VAPRO_TOP_BROKER_FEED_H

#include "source/source.h"
#include "top/feed.h"

struct broker_feed;

/* The options' texts outlive the feed; version: of this program. Returns NULL when out of memory. */
struct broker_feed *broker_feed__new(const struct source_options *options, unsigned interval_ms, const char *version);
void broker_feed__free(struct broker_feed *feed);

/* Works for some tenths of a second, or longer where the broker does not answer; now_ns: CLOCK_MONOTONIC. */
enum feed_state broker_feed__step(struct broker_feed *feed, uint64_t now_ns);

/* As those of feed.h. */
const char *broker_feed__take(struct broker_feed *feed, size_t *size);
const char *broker_feed__why(const struct broker_feed *feed);

#endif
