// SPDX-License-Identifier: GPL-2.0-or-later
#include "broker/requests.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HELD 64		/* messages */
#define LOOK_MS 500	/* that a message is waited for */
#define BACKOFF_MS 1000 /* between attempts to connect, at first */
#define BACKOFF_MOST_MS 30000

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

static void add(struct requests *requests, const natsMsg *message)
{
	int size = natsMsg_GetDataLength(message);

	pthread_mutex_lock(&requests->lock);
	if (size <= 0 || size > WIRE_REQUEST_MAX || requests->count == HELD) {
		requests->dropped++;
	} else {
		struct held *held = &requests->held[(requests->first + requests->count++) % HELD];

		held->size = (size_t)size;
		memcpy(held->bytes, natsMsg_GetData(message), held->size);
	}
	pthread_mutex_unlock(&requests->lock);
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
		status = natsConnection_SubscribeSync(&requests->subscription, requests->connection, requests->subject);
	/* what the library holds is bounded, too */
	if (status == NATS_OK)
		status = natsSubscription_SetPendingLimits(requests->subscription, HELD, HELD * WIRE_REQUEST_MAX);
	if (status != NATS_OK)
		disconnect(requests);
	return status == NATS_OK;
}

/* Waits for the end of the thread. Returns whether it has come. */
static bool is_over(struct requests *requests, uint64_t wait_ms)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(wait_ms / 1000);
	until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&requests->lock);
	while (wait_ms && !requests->stop &&
	       pthread_cond_timedwait(&requests->changed, &requests->lock, &until) != ETIMEDOUT)
		;
	stop = requests->stop;
	pthread_mutex_unlock(&requests->lock);
	return stop;
}

/* Waits a while for a message. Returns for how long none should be waited for. */
static uint64_t receive(struct requests *requests)
{
	natsMsg *message = NULL;
	natsStatus status = natsSubscription_NextMsg(&message, requests->subscription, LOOK_MS);

	if (status == NATS_OK)
		add(requests, message);
	natsMsg_Destroy(message);
	if (status == NATS_SLOW_CONSUMER) { /* the library has dropped some */
		pthread_mutex_lock(&requests->lock);
		requests->dropped++;
		pthread_mutex_unlock(&requests->lock);
	}
	return status == NATS_OK || status == NATS_TIMEOUT || status == NATS_SLOW_CONSUMER ? 0 : LOOK_MS;
}

static void *run(void *ctx)
{
	struct requests *requests = ctx;
	uint64_t backoff_ms = BACKOFF_MS, wait_ms = 0;

	while (!is_over(requests, wait_ms)) {
		/* the library connects again by itself, but closes a connection whose credentials are refused */
		if (requests->connection && natsConnection_IsClosed(requests->connection))
			disconnect(requests);
		if (requests->connection || open_connection(requests)) {
			backoff_ms = BACKOFF_MS;
			wait_ms = receive(requests);
		} else {
			wait_ms = backoff_ms;
			backoff_ms = 2 * backoff_ms < BACKOFF_MOST_MS ? 2 * backoff_ms : BACKOFF_MOST_MS;
		}
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
