// SPDX-License-Identifier: GPL-2.0-or-later
#include "broker/requests.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HELD 64		  /* messages */
#define LOOK_S 1	  /* between looks at the connection */
#define BACKOFF_MOST_S 30 /* between attempts to connect */

struct held {
	size_t size;
	char bytes[WIRE_REQUEST_MAX];
};

struct requests {
	natsOptions *options;
	char subject[WIRE_SUBJECT_MAX];
	natsConnection *connection;
	natsSubscription *subscription;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct held held[HELD]; /* a ring */
	unsigned first, count;
	uint64_t dropped;
	bool stop;
};

/* Called by a thread of the library. */
static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *closure)
{
	struct requests *requests = closure;
	int size = natsMsg_GetDataLength(message);

	(void)connection;
	(void)subscription;
	pthread_mutex_lock(&requests->lock);
	if (size <= 0 || size > WIRE_REQUEST_MAX || requests->count == HELD) {
		requests->dropped++;
	} else {
		struct held *held = &requests->held[(requests->first + requests->count++) % HELD];

		held->size = (size_t)size;
		memcpy(held->bytes, natsMsg_GetData(message), held->size);
	}
	pthread_mutex_unlock(&requests->lock);
	natsMsg_Destroy(message);
}

static void disconnect(struct requests *requests)
{
	natsSubscription_Unsubscribe(requests->subscription);
	natsSubscription_Destroy(requests->subscription);
	if (requests->connection)
		natsConnection_Close(requests->connection);
	natsConnection_Destroy(requests->connection);
	requests->subscription = NULL;
	requests->connection = NULL;
}

/* Connects and subscribes. Returns whether it has. */
static bool open_connection(struct requests *requests)
{
	natsStatus status = natsConnection_Connect(&requests->connection, requests->options);

	if (status == NATS_OK)
		status = natsConnection_Subscribe(&requests->subscription, requests->connection, requests->subject,
						  on_message, requests);
	/* what the library holds is bounded, too */
	if (status == NATS_OK)
		status = natsSubscription_SetPendingLimits(requests->subscription, HELD, HELD * WIRE_REQUEST_MAX);
	if (status != NATS_OK)
		disconnect(requests);
	return status == NATS_OK;
}

static void *run(void *ctx)
{
	struct requests *requests = ctx;
	unsigned wait_s = LOOK_S;
	bool stop = false;

	while (!stop) {
		struct timespec until;

		/* the library connects again by itself, but closes a connection whose credentials are refused */
		if (requests->connection && natsConnection_IsClosed(requests->connection))
			disconnect(requests);
		if (requests->connection || open_connection(requests))
			wait_s = LOOK_S;
		else
			wait_s = 2 * wait_s < BACKOFF_MOST_S ? 2 * wait_s : BACKOFF_MOST_S;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += wait_s;
		pthread_mutex_lock(&requests->lock);
		while (!requests->stop &&
		       pthread_cond_timedwait(&requests->changed, &requests->lock, &until) != ETIMEDOUT)
			;
		stop = requests->stop;
		pthread_mutex_unlock(&requests->lock);
	}
	disconnect(requests);
	return NULL;
}

/* Signals are the caller's: the thread, and those that the library makes from it, get none. */
static int start(struct requests *requests)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&requests->thread, NULL, run, requests);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static void destroy(struct requests *requests)
{
	natsOptions_Destroy(requests->options);
	pthread_cond_destroy(&requests->changed);
	pthread_mutex_destroy(&requests->lock);
	free(requests);
}

struct requests *requests__new(const struct broker_options *options, const char *subject, char *err, size_t err_size)
{
	struct requests *requests = calloc(1, sizeof(*requests));
	pthread_condattr_t monotonic;
	int error;

	if (!requests) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	requests->options = broker__options(options, err, err_size);
	if (!requests->options) {
		free(requests);
		return NULL;
	}
	snprintf(requests->subject, sizeof(requests->subject), "%s", subject);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&requests->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&requests->lock, NULL);
	error = start(requests);
	if (!error)
		return requests;
	snprintf(err, err_size, "no thread for requests of workers: %s", strerror(error));
	destroy(requests);
	return NULL;
}

void requests__free(struct requests *requests)
{
	if (!requests)
		return;
	pthread_mutex_lock(&requests->lock);
	requests->stop = true;
	pthread_cond_broadcast(&requests->changed);
	pthread_mutex_unlock(&requests->lock);
	pthread_join(requests->thread, NULL);
	destroy(requests);
}

bool requests__next(struct requests *requests, char bytes[WIRE_REQUEST_MAX], size_t *size)
{
	bool any;

	pthread_mutex_lock(&requests->lock);
	any = requests->count > 0;
	if (any) {
		const struct held *held = &requests->held[requests->first];

		*size = held->size;
		memcpy(bytes, held->bytes, held->size);
		requests->first = (requests->first + 1) % HELD;
		requests->count--;
	}
	pthread_mutex_unlock(&requests->lock);
	return any;
}

uint64_t requests__dropped(struct requests *requests)
{
	uint64_t dropped;

	pthread_mutex_lock(&requests->lock);
	dropped = requests->dropped;
	pthread_mutex_unlock(&requests->lock);
	return dropped;
}
