// SPDX-License-Identifier: GPL-2.0-or-later
/* The ring of messages that wait, its bound and its counts, and the news. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "broker/publisher_private.h"

#define ITEM_BYTES 128 /* of a message beside its texts and bytes */

void publisher__free_item(struct item *item)
{
	free(item->subject);
	free(item->id);
	free(item->bytes);
	free(item);
}

static uint64_t item__bytes(const struct item *item)
{
	return ITEM_BYTES + strlen(item->subject) + strlen(item->id) + item->size;
}

void publisher__say(struct publisher *publisher, enum publisher_news kind, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&publisher->lock);
	if (publisher->news_count == NEWS_MOST)
		publisher->news_count--; /* the latest counts */
	publisher->kinds[publisher->news_count] = kind;
	vsnprintf(publisher->news[publisher->news_count++], sizeof(publisher->news[0]), format, args);
	pthread_mutex_unlock(&publisher->lock);
	va_end(args);
}

/* With the lock held. A count that finds no memory stays in the totals only. */
void publisher__count_drop(struct publisher *publisher, uint64_t run, uint64_t fragments, uint64_t named)
{
	struct block_drop *drop = NULL;

	publisher->totals.dropped++;
	publisher->totals.fragments += fragments;
	for (size_t i = 0; i < publisher->drop_count && !drop; i++)
		drop = publisher->drops[i].run == run ? &publisher->drops[i] : NULL;
	if (!drop) {
		if (grow(&publisher->drops, &publisher->drop_capacity, publisher->drop_count + 1, sizeof(*drop)))
			return;
		drop = &publisher->drops[publisher->drop_count++];
		*drop = (struct block_drop){.run = run};
	}
	drop->blocks++;
	drop->fragments += fragments;
	drop->named += named;
}

void publisher__set_flying(struct publisher *publisher, struct item *item, bool flying)
{
	item->flying = flying;
	publisher->flying += flying ? 1 : (size_t)-1;
	publisher->flying_bytes += flying ? item->size : -item->size;
}

/* Takes an item out of the ring; with the lock held. */
void publisher__unlink(struct publisher *publisher, struct item **place)
{
	struct item *item = *place;

	*place = item->next;
	if (publisher->last == &item->next)
		publisher->last = place;
	if (item->flying)
		publisher__set_flying(publisher, item, false);
	publisher->used_bytes -= item__bytes(item);
	publisher->totals.waiting--;
}

/* Discards the oldest items that are not on their way until there is room. With the lock held. */
static void make_room(struct publisher *publisher, uint64_t bytes)
{
	struct item **place = &publisher->first;

	while (*place && publisher->used_bytes + bytes > publisher->memory_bytes) {
		struct item *item = *place;

		if (item->flying) {
			place = &item->next;
			continue;
		}
		publisher__unlink(publisher, place);
		publisher__count_drop(publisher, item->run, item->fragments, item->named);
		publisher__free_item(item);
	}
}

int publisher__put(struct publisher *publisher, const struct publish_message *message)
{
	struct item *item = calloc(1, sizeof(*item));
	int ret = -ENOMEM;

	if (item) {
		item->subject = strdup(message->subject);
		item->id = strdup(message->id);
		item->bytes = message->bytes;
		item->size = message->size;
		item->run = message->run;
		item->fragments = message->fragments;
		item->named = message->named;
	} else {
		free(message->bytes);
	}
	pthread_mutex_lock(&publisher->lock);
	if (item && item->subject && item->id) {
		make_room(publisher, item__bytes(item));
		if (publisher->used_bytes + item__bytes(item) <= publisher->memory_bytes)
			ret = 0;
	}
	if (!ret) {
		publisher->used_bytes += item__bytes(item);
		publisher->totals.waiting++;
		*publisher->last = item;
		publisher->last = &item->next;
		pthread_cond_broadcast(&publisher->changed);
	} else {
		publisher__count_drop(publisher, message->run, message->fragments, message->named);
	}
	pthread_mutex_unlock(&publisher->lock);
	if (ret && item)
		publisher__free_item(item);
	return ret;
}

bool publisher__dropped(struct publisher *publisher, struct block_drop *drop)
{
	bool any;

	pthread_mutex_lock(&publisher->lock);
	any = publisher->drop_count > 0;
	if (any)
		*drop = publisher->drops[--publisher->drop_count];
	pthread_mutex_unlock(&publisher->lock);
	return any;
}

enum publisher_news publisher__news(struct publisher *publisher, char *text, size_t size)
{
	enum publisher_news kind = PUBLISHER_NO_NEWS;

	pthread_mutex_lock(&publisher->lock);
	if (publisher->news_count) {
		kind = publisher->kinds[0];
		snprintf(text, size, "%s", publisher->news[0]);
		memmove(publisher->kinds, publisher->kinds + 1, sizeof(publisher->kinds) - sizeof(publisher->kinds[0]));
		memmove(publisher->news[0], publisher->news[1], --publisher->news_count * sizeof(publisher->news[0]));
	}
	pthread_mutex_unlock(&publisher->lock);
	return kind;
}

struct publisher_totals publisher__totals(struct publisher *publisher)
{
	struct publisher_totals totals;

	pthread_mutex_lock(&publisher->lock);
	totals = publisher->totals;
	totals.ring_bytes = publisher->used_bytes;
	pthread_mutex_unlock(&publisher->lock);
	return totals;
}

struct timespec publisher__deadline(uint64_t mono_ns)
{
	return (struct timespec){.tv_sec = (time_t)(mono_ns / 1000000000), .tv_nsec = (long)(mono_ns % 1000000000)};
}

bool publisher__flush(struct publisher *publisher, uint64_t most_ns)
{
	struct timespec end = publisher__deadline(mono_now() + most_ns);
	bool empty;

	pthread_mutex_lock(&publisher->lock);
	while (publisher->first && !pthread_cond_timedwait(&publisher->changed, &publisher->lock, &end))
		;
	empty = !publisher->first;
	pthread_mutex_unlock(&publisher->lock);
	return empty;
}
