// SPDX-License-Identifier: GPL-2.0-or-later
/* Blocks of a job, in the order of the stream, each once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "worker/store_private.h"

#define ACK_WAIT_NS (3600LL * 1000000000LL) /* blocks are acknowledged after the checkpoint that has their window */
#define SILENT_NS 3000000000ULL		    /* without a block: none is on its way */
#define ACK_PENDING (1 << 24) /* in effect no limit; the library sends no -1, and the broker's default is 1,000 */
#define INACTIVE_NS (60LL * 1000000000LL) /* a reader that is gone is removed by the broker */

/* A block that was given and is not acknowledged yet. */
struct pending {
	uint64_t sequence;
	char *reply;
};

struct store_reader {
	struct store *store;
	natsSubscription *subscription; /* NULL: to be made again */
	char filter[WIRE_SUBJECT_MAX], name[64];
	struct pending *pending; /* in the order in which they came */
	size_t first, count, capacity;
	uint64_t sequence;     /* in the stream, of the latest block */
	uint64_t acknowledged; /* in the stream: blocks until this number are not needed any more */
	uint64_t delivery;     /* number of its delivery: they are dense, whatever else the stream holds */
	uint64_t left;	       /* blocks of the stream that were still to come with the latest one */
	bool any;
	bool compared;	  /* since the latest block, with the latest one that the stream has */
	uint64_t came_ns; /* own clock, of the latest block or subscription */
};

static void forget_pending(struct store_reader *reader)
{
	for (size_t i = reader->first; i < reader->count; i++)
		free(reader->pending[i].reply);
	reader->first = reader->count = 0;
}

static void unsubscribe(struct store_reader *reader)
{
	natsSubscription_Unsubscribe(reader->subscription);
	natsSubscription_Destroy(reader->subscription);
	reader->subscription = NULL;
}

/* Subscribes to what follows the latest block. */
static natsStatus subscribe(struct store_reader *reader)
{
	struct store *store = reader->store;
	jsSubOptions options;
	jsErrCode code = 0;
	natsStatus status;

	/* one of an earlier lease or pass may have this name */
	js_DeleteConsumer(store->stream, store->in, reader->name, NULL, NULL);
	forget_pending(reader);
	jsSubOptions_Init(&options);
	options.Stream = store->in;
	options.ManualAck = true;
	options.Config.DeliverPolicy = reader->sequence ? js_DeliverByStartSequence : js_DeliverAll;
	options.Config.OptStartSeq = reader->sequence ? reader->sequence + 1 : 0;
	options.Config.AckPolicy = js_AckExplicit;
	options.Config.AckWait = ACK_WAIT_NS;
	options.Config.MaxAckPending =
	    ACK_PENDING; /* a job that is taken over is read whole before the first window is judged */
	options.Config.InactiveThreshold = INACTIVE_NS;
	status =
	    js_PullSubscribe(&reader->subscription, store->stream, reader->filter, reader->name, NULL, &options, &code);
	if (status == NATS_OK)
		natsSubscription_SetPendingLimits(reader->subscription, -1, -1);
	reader->delivery = 0;
	reader->came_ns = mono_now();
	return status;
}

struct store_reader *store_reader__new(struct store *store, const char *filter, const char *name, uint64_t from,
				       char *err, size_t err_size)
{
	struct store_reader *reader = calloc(1, sizeof(*reader));
	natsStatus status;

	if (!reader) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	reader->store = store;
	reader->sequence = reader->acknowledged = from ? from - 1 : 0;
	snprintf(reader->filter, sizeof(reader->filter), "%s", filter);
	snprintf(reader->name, sizeof(reader->name), "%s", name);
	status = subscribe(reader);
	if (status == NATS_OK)
		return reader;
	snprintf(err, err_size, "blocks cannot be read: %s", natsStatus_GetText(status));
	store_reader__free(reader);
	return NULL;
}

void store_reader__free(struct store_reader *reader)
{
	if (!reader)
		return;
	forget_pending(reader);
	free(reader->pending);
	unsubscribe(reader);
	free(reader);
}

/* Passes one block on. Returns 0, -EPIPE where a block before it was lost in transit, or another negative errno. */
static int give_block(struct store_reader *reader, natsMsg *message, store_take take, void *arg)
{
	size_t size = (size_t)natsMsg_GetDataLength(message);
	jsMsgMetaData *meta = NULL;
	struct pending pending;
	void *bytes;
	int ret = 0;

	if (natsMsg_GetMetaData(&meta, message) != NATS_OK)
		return -EPIPE;
	pending = (struct pending){meta->Sequence.Stream, NULL};
	if (meta->Sequence.Consumer != reader->delivery + 1)
		ret = -EPIPE;
	else if (grow(&reader->pending, &reader->capacity, reader->count + 1, sizeof(pending)))
		ret = -ENOMEM;
	if (!ret) {
		reader->delivery = meta->Sequence.Consumer;
		/* a block that was not acknowledged for long is delivered again */
		if (meta->Sequence.Stream > reader->sequence)
			reader->sequence = meta->Sequence.Stream;
		reader->left = meta->NumPending;
		reader->any = true;
	}
	jsMsgMetaData_Destroy(meta);
	if (ret)
		return ret;
	bytes = malloc(size ? size : 1);
	pending.reply = strdup(natsMsg_GetReply(message));
	if (!bytes || !pending.reply) {
		free(bytes);
		free(pending.reply);
		return -ENOMEM;
	}
	reader->pending[reader->count++] = pending;
	memcpy(bytes, natsMsg_GetData(message), size);
	return take(arg, natsMsg_GetSubject(message), pending.sequence, bytes, size);
}

static bool is_silent(const struct store_reader *reader)
{
	return mono_now() - reader->came_ns > SILENT_NS;
}

/* Whether the stream has a later block than the latest one that came, where none has come for a while. */
static bool is_behind(struct store_reader *reader)
{
	uint64_t last;

	if (!reader->any || reader->left || reader->compared || !is_silent(reader))
		return false;
	reader->compared = true;
	return !store__last_block(reader->store, reader->filter, &last) && last > reader->sequence;
}

int store_reader__next(struct store_reader *reader, int most, store_take take, void *arg)
{
	natsMsgList list = {0};
	jsFetchRequest request;
	natsStatus status;
	int count = 0, ret = 0;

	if (!reader->subscription && subscribe(reader) != NATS_OK)
		return 0;
	/* a block that is under way while a request expires would be missing until it is delivered again */
	jsFetchRequest_Init(&request);
	request.Batch = most;
	request.NoWait = true;
	request.Expires = STORE_WAIT_MS * 1000000LL;
	status = natsSubscription_FetchRequest(&list, reader->subscription, &request);
	for (int i = 0; i < list.Count; i++) {
		if (!ret)
			ret = give_block(reader, list.Msgs[i], take, arg);
		count += !ret;
	}
	if (count) {
		reader->came_ns = mono_now();
		reader->compared = false;
	}
	natsMsgList_Destroy(&list);
	if (reader->first && reader->first == reader->count)
		reader->first = reader->count = 0;
	/* what was lost on its way, or with the broker's memory, is requested again */
	if (!ret && status != NATS_OK && status != NATS_TIMEOUT && status != NATS_NOT_FOUND)
		ret = -EPIPE;
	if (!ret && ((reader->any && reader->left && is_silent(reader)) || is_behind(reader)))
		ret = -EPIPE;
	if (ret == -EPIPE)
		unsubscribe(reader);
	return ret && ret != -EPIPE ? ret : count;
}

void store_reader__rewind(struct store_reader *reader)
{
	reader->sequence = reader->acknowledged;
	reader->any = false;
	unsubscribe(reader);
}

bool store_reader__caught_up(const struct store_reader *reader)
{
	return reader->any ? !reader->left : is_silent(reader);
}

int store_reader__acknowledge(struct store_reader *reader, uint64_t sequence)
{
	while (reader->first < reader->count && reader->pending[reader->first].sequence <= sequence) {
		struct pending *pending = &reader->pending[reader->first++];

		reader->acknowledged = pending->sequence;
		natsConnection_PublishString(reader->store->connection, pending->reply, "+ACK");
		free(pending->reply);
	}
	return 0;
}
