// SPDX-License-Identifier: GPL-2.0-or-later
/* The thread that sends what waits in the ring. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/publisher_private.h"
#include "broker/streams.h"

#define FLIGHT_MOST 64		/* messages sent and not acknowledged */
#define FLIGHT_BYTES (4U << 20) /* of these; the library has a copy of each */
#define ACK_MS 5000		/* an acknowledgement is waited for */
#define BACKOFF_LEAST_NS 100000000ULL
#define BACKOFF_MOST_NS 10000000000ULL
#define LOOK_NS 100000000ULL  /* the connection is looked at while there is none */
#define STAND_NS 500000000ULL /* and while it stands: what is put or acknowledged wakes the thread */
#define JETSTREAM_MS 2000     /* requests about streams */

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
		publisher__unlink(publisher, place);
		done = item;
		if (hopeless) {
			publisher__count_drop(publisher, item->run, item->fragments, item->named);
		} else {
			publisher->failures = 0;
			publisher->totals.acknowledged++;
			publisher->totals.duplicates += duplicate;
			publisher->totals.bytes += item->size;
		}
	} else if (item) {
		publisher__set_flying(publisher, item, false);
		publisher->totals.again++;
		pause_sending(publisher);
	}
	pthread_cond_broadcast(&publisher->changed);
	pthread_mutex_unlock(&publisher->lock);
	if (done)
		publisher__free_item(done);
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
		publisher__say(publisher, PUBLISHER_TROUBLE,
			       "brokers at %s: %s; blocks are sent again until they are taken", publisher->servers,
			       status == NATS_ERR && text && *text ? text : broker__reason(status));
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
	    publisher->due_ns > now_ns && publisher->due_ns < now_ns + STAND_NS ? publisher->due_ns : now_ns + STAND_NS;
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
		publisher__set_flying(publisher, item, true);
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
		publisher__set_flying(publisher, item, false);
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
		publisher__say(publisher, PUBLISHER_CONNECTED, "connected to a broker at %s", publisher->servers);
	if (!connected && publisher->connected)
		publisher__say(publisher, PUBLISHER_TROUBLE,
			       "the connection to the brokers at %s was lost: blocks wait in memory, the oldest are "
			       "discarded where publish-memory is used up",
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
			publisher__say(
			    publisher, PUBLISHER_TROUBLE,
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
		until = publisher__deadline(next_ns);
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
		publisher__free_item(item);
	}
	natsOptions_Destroy(publisher->options);
	pthread_cond_destroy(&publisher->changed);
	pthread_mutex_destroy(&publisher->lock);
	free(publisher->drops);
	free(publisher);
}
