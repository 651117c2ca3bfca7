// SPDX-License-Identifier: GPL-2.0-or-later
#include "broker/publisher.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "broker/streams.h"

#define FLIGHT_MOST 64		/* messages sent and not acknowledged */
#define FLIGHT_BYTES (4U << 20) /* of these; the library has a copy of each */
#define ACK_MS 5000		/* an acknowledgement is waited for */
#define BACKOFF_LEAST_NS 100000000ULL
#define BACKOFF_MOST_NS 10000000000ULL
#define LOOK_NS 100000000ULL /* the connection is looked at */
#define JETSTREAM_MS 2000    /* requests about streams */
#define NEWS_MOST 4
#define ITEM_BYTES 128 /* of a message beside its texts and bytes */

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
	unsigned opened;    /* since the last one that was made */
	natsStatus trouble; /* the last of a send, reported once */
	char servers[256];
};

static void item__free(struct item *item)
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

static void __attribute__((format(printf, 3, 4)))
say(struct publisher *publisher, enum publisher_news kind, const char *format, ...)
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
static void count_drop(struct publisher *publisher, uint64_t run, uint64_t fragments, uint64_t named)
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

static void set_flying(struct publisher *publisher, struct item *item, bool flying)
{
	item->flying = flying;
	publisher->flying += flying ? 1 : (size_t)-1;
	publisher->flying_bytes += flying ? item->size : -item->size;
}

/* Takes an item out of the ring; with the lock held. */
static void unlink_item(struct publisher *publisher, struct item **place)
{
	struct item *item = *place;

	*place = item->next;
	if (publisher->last == &item->next)
		publisher->last = place;
	if (item->flying)
		set_flying(publisher, item, false);
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
		unlink_item(publisher, place);
		count_drop(publisher, item->run, item->fragments, item->named);
		item__free(item);
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
		count_drop(publisher, message->run, message->fragments, message->named);
	}
	pthread_mutex_unlock(&publisher->lock);
	if (ret && item)
		item__free(item);
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

static struct timespec deadline(uint64_t mono_ns)
{
	return (struct timespec){.tv_sec = (time_t)(mono_ns / 1000000000), .tv_nsec = (long)(mono_ns % 1000000000)};
}

bool publisher__flush(struct publisher *publisher, uint64_t most_ns)
{
	struct timespec end = deadline(mono_now() + most_ns);
	bool empty;

	pthread_mutex_lock(&publisher->lock);
	while (publisher->first && !pthread_cond_timedwait(&publisher->changed, &publisher->lock, &end))
		;
	empty = !publisher->first;
	pthread_mutex_unlock(&publisher->lock);
	return empty;
}

/* ---- the thread */

/* The next back-off, with up to half of it at random so that nodes do not come at once. With the lock held. */
static uint64_t backoff_ns(struct publisher *publisher, unsigned tries)
{
	uint64_t wait = BACKOFF_LEAST_NS << (tries < 7 ? tries : 7);

	if (wait > BACKOFF_MOST_NS)
		wait = BACKOFF_MOST_NS;
	publisher->seed = publisher->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return wait / 2 + (publisher->seed >> 33) % (wait / 2 + 1);
}

/* What failed together is one failure. With the lock held. */
static void pause_sending(struct publisher *publisher)
{
	uint64_t now = mono_now();

	if (now >= publisher->due_ns)
		publisher->due_ns = now + backoff_ns(publisher, publisher->failures++);
}

static struct item **find(struct publisher *publisher, const char *id)
{
	struct item **place = &publisher->first;

	while (*place && (!(*place)->flying || strcmp((*place)->id, id)))
		place = &(*place)->next;
	return *place ? place : NULL;
}

/* A flying message is acknowledged, or is to be sent again; one that no broker takes is discarded. */
static void land(struct publisher *publisher, const char *id, natsStatus status, bool duplicate)
{
	struct item **place, *item, *done = NULL;
	bool hopeless = status == NATS_MAX_PAYLOAD || status == NATS_INVALID_SUBJECT;

	pthread_mutex_lock(&publisher->lock);
	place = find(publisher, id);
	item = place ? *place : NULL;
	if (item && (status == NATS_OK || hopeless)) {
		unlink_item(publisher, place);
		done = item;
		if (hopeless) {
			count_drop(publisher, item->run, item->fragments, item->named);
		} else {
			publisher->failures = 0;
			publisher->totals.acknowledged++;
			publisher->totals.duplicates += duplicate;
			publisher->totals.bytes += item->size;
		}
	} else if (item) {
		set_flying(publisher, item, false);
		publisher->totals.again++;
		pause_sending(publisher);
	}
	pthread_cond_broadcast(&publisher->changed);
	pthread_mutex_unlock(&publisher->lock);
	if (done)
		item__free(done);
}

/* Says why messages are not taken, once for each reason. */
static void complain(struct publisher *publisher, natsStatus status, const char *text)
{
	bool known;

	pthread_mutex_lock(&publisher->lock);
	known = publisher->trouble == status;
	publisher->trouble = status;
	pthread_mutex_unlock(&publisher->lock);
	if (!known && status != NATS_OK)
		say(publisher, PUBLISHER_TROUBLE, "brokers at %s: %s; blocks are sent again until they are taken",
		    publisher->servers, status == NATS_ERR && text && *text ? text : broker__reason(status));
}

static void on_ack(jsCtx *context, natsMsg *message, jsPubAck *ack, jsPubAckErr *failure, void *closure)
{
	struct publisher *publisher = closure;
	const char *id = NULL;

	(void)context;
	if (message && natsMsgHeader_Get(message, "Nats-Msg-Id", &id) == NATS_OK) {
		complain(publisher, failure ? failure->Err : NATS_OK, failure ? failure->ErrText : NULL);
		land(publisher, id, failure ? failure->Err : NATS_OK, ack && ack->Duplicate);
	}
	natsMsg_Destroy(message);
}

/* Returns the first item that is due, NULL with the time of the next one. With the lock held. */
static struct item *next_due(struct publisher *publisher, uint64_t now_ns, uint64_t *next_ns)
{
	*next_ns =
	    publisher->due_ns > now_ns && publisher->due_ns < now_ns + LOOK_NS ? publisher->due_ns : now_ns + LOOK_NS;
	if (publisher->due_ns > now_ns || publisher->flying >= FLIGHT_MOST || publisher->flying_bytes >= FLIGHT_BYTES)
		return NULL;
	for (struct item *item = publisher->first; item; item = item->next) {
		if (!item->flying)
			return item;
	}
	return NULL;
}

/* Makes the connection's message of an item, with the lock held. */
static natsStatus make_message(natsMsg **message, const struct item *item)
{
	return natsMsg_Create(message, item->subject, NULL, item->bytes, (int)item->size);
}

/* Sends what is due; returns when the next look is needed. */
static uint64_t send_due(struct publisher *publisher)
{
	uint64_t next_ns = 0;

	for (;;) {
		jsPubOptions options;
		natsMsg *message = NULL;
		struct item *item;
		natsStatus status;
		char id[256];

		pthread_mutex_lock(&publisher->lock);
		item = publisher->stop ? NULL : next_due(publisher, mono_now(), &next_ns);
		if (!item) {
			pthread_mutex_unlock(&publisher->lock);
			return next_ns;
		}
		status = make_message(&message, item);
		snprintf(id, sizeof(id), "%s", item->id);
		set_flying(publisher, item, true);
		pthread_mutex_unlock(&publisher->lock);

		jsPubOptions_Init(&options);
		options.MsgId = id;
		options.MaxWait = ACK_MS;
		if (status == NATS_OK)
			status = js_PublishMsgAsync(publisher->context, &message, &options);
		natsMsg_Destroy(message);
		if (status != NATS_OK) {
			complain(publisher, status, NULL);
			land(publisher, id, status, false);
		}
	}
}

/* What was on its way is sent again, in its order; the broker recognises what it has already. With the lock held. */
static void land_all(struct publisher *publisher)
{
	for (struct item *item = publisher->first; item; item = item->next) {
		if (!item->flying)
			continue;
		set_flying(publisher, item, false);
		publisher->totals.again++;
	}
}

/* Forgets a connection that is closed for good; what was on its way is sent again. */
static void drop_connection(struct publisher *publisher)
{
	natsConnection_Close(publisher->connection);
	jsCtx_Destroy(publisher->context);
	natsConnection_Destroy(publisher->connection);
	publisher->context = NULL;
	publisher->connection = NULL;
	pthread_mutex_lock(&publisher->lock);
	land_all(publisher);
	publisher->open_ns = mono_now() + backoff_ns(publisher, publisher->opened++);
	pthread_mutex_unlock(&publisher->lock);
}

/* Opens the connection, which the library then keeps, or makes again, for ever. */
static void open_connection(struct publisher *publisher)
{
	natsStatus status;
	jsOptions options;

	if (mono_now() < publisher->open_ns)
		return;
	status = natsConnection_Connect(&publisher->connection, publisher->options);
	if (status == NATS_OK) {
		jsOptions_Init(&options);
		options.Wait = JETSTREAM_MS;
		options.PublishAsync.MaxPending = 2 * FLIGHT_MOST;
		options.PublishAsync.AckHandler = on_ack;
		options.PublishAsync.AckHandlerClosure = publisher;
		status = natsConnection_JetStream(&publisher->context, publisher->connection, &options);
	}
	if (status != NATS_OK) {
		complain(publisher, status, NULL);
		drop_connection(publisher);
	}
}

/* Says why there is no connection, where the library knows. */
static void explain(struct publisher *publisher)
{
	const char *text = NULL;
	natsStatus status = natsConnection_GetLastError(publisher->connection, &text);

	/* a refusal may have the status of any error of the broker */
	if (text && (strstr(text, "uthorization") || strstr(text, "uthentication")))
		status = NATS_CONNECTION_AUTH_FAILED;
	complain(publisher, status, text);
}

/* Looks at the connection, and reports where it changed. */
static bool look(struct publisher *publisher)
{
	bool connected;

	/* the library closes a connection whose credentials are refused */
	if (publisher->context && natsConnection_IsClosed(publisher->connection))
		drop_connection(publisher);
	if (!publisher->context)
		open_connection(publisher);
	connected = publisher->context && natsConnection_Status(publisher->connection) == NATS_CONN_STATUS_CONNECTED;
	if (connected && !publisher->connected)
		say(publisher, PUBLISHER_CONNECTED, "connected to a broker at %s", publisher->servers);
	if (!connected && publisher->connected)
		say(publisher, PUBLISHER_TROUBLE,
		    "the connection to the brokers at %s was lost: blocks wait in memory, the oldest are "
		    "discarded where --publish-memory is used up",
		    publisher->servers);
	publisher->connected = connected;
	if (connected)
		publisher->opened = 0;
	else if (publisher->context)
		explain(publisher);
	if (connected && publisher->create && !publisher->created) {
		natsStatus status = broker__create_stream(publisher->context, WIRE_IN, 1);

		/* a node need not be permitted: the administrator or a worker creates it then */
		publisher->created = true;
		if (status != NATS_OK)
			say(publisher, PUBLISHER_TROUBLE,
			    "connected to a broker at %s, where no stream of blocks was looked for or made: %s",
			    publisher->servers, broker__reason(status));
	}
	return connected;
}

static void *run(void *ctx)
{
	struct publisher *publisher = ctx;
	bool stop = false;

	while (!stop) {
		uint64_t next_ns = mono_now() + LOOK_NS;
		struct timespec until;

		if (look(publisher))
			next_ns = send_due(publisher);
		until = deadline(next_ns);
		pthread_mutex_lock(&publisher->lock);
		stop = publisher->stop;
		if (!stop)
			pthread_cond_timedwait(&publisher->changed, &publisher->lock, &until);
		pthread_mutex_unlock(&publisher->lock);
	}
	/* no acknowledgement comes once the connection is closed */
	drop_connection(publisher);
	return NULL;
}

/* A broker that does not permit a message answers apart from it, and acknowledges nothing. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status, void *closure)
{
	(void)connection;
	(void)subscription;
	if (status == NATS_NOT_PERMITTED)
		complain(closure, status, NULL);
}

/* Acknowledgements of what was sent before do not come any more: it is not waited for until they are overdue. */
static void on_reconnected(natsConnection *connection, void *closure)
{
	struct publisher *publisher = closure;

	(void)connection;
	pthread_mutex_lock(&publisher->lock);
	land_all(publisher);
	pthread_cond_broadcast(&publisher->changed);
	pthread_mutex_unlock(&publisher->lock);
}

/* Signals are the caller's: the thread, and those that the library makes from it, get none. */
static int start(struct publisher *publisher)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&publisher->thread, NULL, run, publisher);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

struct publisher *publisher__new(const struct publisher_options *options, char *err, size_t err_size)
{
	struct publisher *publisher = calloc(1, sizeof(*publisher));
	pthread_condattr_t monotonic;
	int error;

	if (!publisher) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	publisher->options = broker__options(&options->broker, err, err_size);
	if (!publisher->options) {
		free(publisher);
		return NULL;
	}
	natsOptions_SetErrorHandler(publisher->options, on_error, publisher);
	natsOptions_SetReconnectedCB(publisher->options, on_reconnected, publisher);
	broker__printable(publisher->servers, sizeof(publisher->servers), options->broker.servers);
	publisher->memory_bytes = options->memory_bytes;
	publisher->create = options->create;
	publisher->last = &publisher->first;
	publisher->seed = mono_now();
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&publisher->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&publisher->lock, NULL);
	error = start(publisher);
	if (!error)
		return publisher;
	snprintf(err, err_size, "no thread for the publisher: %s", strerror(error));
	natsOptions_Destroy(publisher->options);
	pthread_cond_destroy(&publisher->changed);
	pthread_mutex_destroy(&publisher->lock);
	free(publisher);
	return NULL;
}

void publisher__free(struct publisher *publisher)
{
	if (!publisher)
		return;
	pthread_mutex_lock(&publisher->lock);
	publisher->stop = true;
	pthread_cond_broadcast(&publisher->changed);
	pthread_mutex_unlock(&publisher->lock);
	pthread_join(publisher->thread, NULL);
	while (publisher->first) {
		struct item *item = publisher->first;

		publisher->first = item->next;
		item__free(item);
	}
	natsOptions_Destroy(publisher->options);
	pthread_cond_destroy(&publisher->changed);
	pthread_mutex_destroy(&publisher->lock);
	free(publisher->drops);
	free(publisher);
}
