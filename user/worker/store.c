// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "broker/streams.h"

#define BUCKET "vapro_leases"
#define IN_SUBJECTS WIRE_PREFIX ".in.>"
#define OUT_SUBJECTS WIRE_PREFIX ".out.>"

#define WAIT_MS 2000			   /* for a response of the broker */
#define ACK_WAIT_NS (300LL * 1000000000LL) /* blocks are acknowledged after their window and its late time */
#define SILENT_NS 3000000000ULL		   /* without a block: none is on its way */
#define ACK_PENDING (1 << 24) /* in effect no limit; the library sends no -1, and the broker's default is 1,000 */
#define INACTIVE_NS (60LL * 1000000000LL) /* a reader that is gone is removed by the broker */

struct store {
	const struct store_options options;
	natsConnection *connection;
	jsCtx *stream;
	kvStore *bucket;
	char in[64], out[64]; /* names of the streams */
};

static int error_of(natsStatus status, jsErrCode code)
{
	if (code == JSStreamWrongLastSequenceErr)
		return -ESTALE;
	switch (status) {
	case NATS_OK:
		return 0;
	case NATS_TIMEOUT:
		return -ETIMEDOUT;
	case NATS_NOT_FOUND:
		return -ENOENT;
	case NATS_NO_MEMORY:
		return -ENOMEM;
	case NATS_MAX_PAYLOAD:
		return -EMSGSIZE;
	case NATS_NOT_PERMITTED:
		return -EACCES;
	case NATS_CONNECTION_CLOSED:
	case NATS_CONNECTION_DISCONNECTED:
	case NATS_NO_RESPONDERS:
		return -ENOTCONN;
	default:
		return -EIO;
	}
}

/* Finds the stream that holds the subjects, whatever its name: an administrator may have made it. */
static natsStatus find_stream(struct store *store, const char *subjects, char *name, size_t size)
{
	jsStreamNamesList *names = NULL;
	jsOptions options;
	natsStatus status;
	jsErrCode code = 0;

	jsOptions_Init(&options);
	options.Wait = WAIT_MS;
	options.Stream.Info.SubjectsFilter = subjects;
	status = js_StreamNames(&names, store->stream, &options, &code);
	if (status == NATS_OK && names->Count < 1)
		status = NATS_NOT_FOUND;
	if (status == NATS_OK)
		snprintf(name, size, "%s", names->List[0]);
	jsStreamNamesList_Destroy(names);
	return status;
}

/* Makes the stream of a role where no stream holds its subjects. */
static int make_stream(struct store *store, enum wire_role role, const char *subjects, char *found, size_t size,
		       char *err, size_t err_size)
{
	natsStatus status = find_stream(store, subjects, found, size);

	if (status == NATS_NOT_FOUND) {
		status = broker__create_stream(store->stream, role, store->options.replicas);
		snprintf(found, size, "%s", broker__stream(role));
	}
	if (status == NATS_OK)
		return 0;
	snprintf(
	    err, err_size,
	    "the stream %s of %s cannot be made: %s; does the broker run JetStream, has it room for %lld MiB, and may "
	    "this user make streams?",
	    broker__stream(role), subjects, natsStatus_GetText(status), STREAM_LEAST_BYTES >> 20);
	return error_of(status, 0);
}

static int open_bucket(struct store *store, char *err, size_t err_size)
{
	natsStatus status = js_KeyValue(&store->bucket, store->stream, BUCKET);
	kvConfig config;

	if (status == NATS_NOT_FOUND) {
		kvConfig_Init(&config);
		config.Bucket = BUCKET;
		config.History = 1;
		config.MaxValueSize = 1024;
		config.MaxBytes = 64 << 20;
		config.StorageType = js_FileStorage;
		config.Replicas = store->options.replicas;
		status = js_CreateKeyValue(&store->bucket, store->stream, &config);
		if (status != NATS_OK) /* another worker was faster */
			status = js_KeyValue(&store->bucket, store->stream, BUCKET);
	}
	if (status == NATS_OK)
		return 0;
	snprintf(err, err_size, "the bucket %s cannot be made: %s", BUCKET, natsStatus_GetText(status));
	return error_of(status, 0);
}

struct store *store__open(const struct store_options *options, char *err, size_t err_size)
{
	struct store *store = calloc(1, sizeof(*store));
	natsOptions *nats = NULL;
	char printable[512];
	jsOptions js;
	natsStatus status;

	if (!store) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	memcpy((void *)&store->options, options, sizeof(*options));
	nats = broker__options(&options->broker, err, err_size);
	if (!nats)
		goto failed;
	status = natsConnection_Connect(&store->connection, nats);
	natsOptions_Destroy(nats);
	if (status != NATS_OK) {
		snprintf(err, err_size, "no connection to %s: %s",
			 broker__printable(printable, sizeof(printable), options->broker.servers),
			 broker__reason(status));
		goto failed;
	}
	jsOptions_Init(&js);
	js.Wait = WAIT_MS;
	status = natsConnection_JetStream(&store->stream, store->connection, &js);
	if (status != NATS_OK) {
		snprintf(err, err_size, "out of memory");
		goto failed;
	}
	if (make_stream(store, WIRE_IN, IN_SUBJECTS, store->in, sizeof(store->in), err, err_size) ||
	    make_stream(store, WIRE_OUT, OUT_SUBJECTS, store->out, sizeof(store->out), err, err_size) ||
	    open_bucket(store, err, err_size))
		goto failed;
	return store;
failed:
	store__close(store);
	return NULL;
}

void store__close(struct store *store)
{
	if (!store)
		return;
	kvStore_Destroy(store->bucket);
	jsCtx_Destroy(store->stream);
	if (store->connection)
		natsConnection_Close(store->connection);
	natsConnection_Destroy(store->connection);
	free(store);
}

/* Lists a stream's subjects that match the filter. */
static int list_subjects(struct store *store, const char *stream, const char *filter, struct store_subject **list,
			 size_t *count)
{
	const jsStreamStateSubjects *subjects;
	jsStreamInfo *info = NULL;
	jsErrCode code = 0;
	jsOptions options;
	natsStatus status;
	int ret;

	*list = NULL;
	*count = 0;
	jsOptions_Init(&options);
	options.Wait = WAIT_MS;
	options.Stream.Info.SubjectsFilter = filter;
	status = js_GetStreamInfo(&info, store->stream, stream, &options, &code);
	ret = error_of(status, code);
	subjects = ret ? NULL : info->State.Subjects;
	if (subjects && subjects->Count > 0) {
		*list = calloc((size_t)subjects->Count, sizeof(**list));
		ret = *list ? 0 : -ENOMEM;
	}
	for (int i = 0; !ret && subjects && i < subjects->Count; i++) {
		snprintf((*list)[i].text, sizeof((*list)[i].text), "%s", subjects->List[i].Subject);
		(*list)[i].messages = subjects->List[i].Msgs;
		(*count)++;
	}
	jsStreamInfo_Destroy(info);
	return ret;
}

int store__subjects(struct store *store, struct store_subject **list, size_t *count)
{
	char filter[WIRE_SUBJECT_MAX];

	wire__filter(filter, sizeof(filter), WIRE_IN, store->options.cluster, NULL, NULL);
	return list_subjects(store, store->in, filter, list, count);
}

/* Gets the last message of a subject; -ENOENT: there is none. */
static int last_message(struct store *store, const char *stream, const char *subject, natsMsg **message)
{
	jsErrCode code = 0;
	natsStatus status = js_GetLastMsg(message, store->stream, stream, subject, NULL, &code);

	return code == JSNoMessageFoundErr ? -ENOENT : error_of(status, code);
}

int store__last_block(struct store *store, const char *subject, uint64_t *sequence)
{
	natsMsg *message = NULL;
	int ret = last_message(store, store->in, subject, &message);

	if (!ret)
		*sequence = natsMsg_GetSequence(message);
	natsMsg_Destroy(message);
	return ret;
}

int store__get(struct store *store, const char *key, char *value, size_t size, uint64_t *revision)
{
	kvEntry *entry = NULL;
	natsStatus status = kvStore_Get(&entry, store->bucket, key);

	if (status == NATS_OK) {
		const char *text = kvEntry_ValueString(entry);

		snprintf(value, size, "%s", text ? text : "");
		*revision = kvEntry_Revision(entry);
	}
	kvEntry_Destroy(entry);
	return error_of(status, 0);
}

int store__set(struct store *store, const char *key, const char *value, uint64_t *revision)
{
	natsStatus status;

	if (*revision)
		status = kvStore_UpdateString(revision, store->bucket, key, value, *revision);
	else
		status = kvStore_CreateString(revision, store->bucket, key, value);
	/* the library has no other status for a revision that is not the latest */
	return status == NATS_ERR ? -ESTALE : error_of(status, 0);
}

int store__put(struct store *store, const char *key, const char *value)
{
	return error_of(kvStore_PutString(NULL, store->bucket, key, value), 0);
}

int store__remove(struct store *store, const char *key)
{
	return error_of(kvStore_Purge(store->bucket, key, NULL), 0);
}

int store__keys(struct store *store, const char *prefix, char (**keys)[WIRE_SUBJECT_MAX], size_t *count)
{
	char filter[WIRE_SUBJECT_MAX];
	struct store_subject *list;
	size_t skipped = strlen("$KV." BUCKET ".");
	int ret;

	*keys = NULL;
	*count = 0;
	snprintf(filter, sizeof(filter), "$KV." BUCKET ".%s.>", prefix);
	ret = list_subjects(store, "KV_" BUCKET, filter, &list, count);
	if (!ret && *count)
		*keys = calloc(*count, sizeof(**keys));
	if (!ret && *count && !*keys)
		ret = -ENOMEM;
	for (size_t i = 0; !ret && i < *count; i++)
		snprintf((*keys)[i], sizeof((*keys)[i]), "%s", list[i].text + skipped);
	free(list);
	return ret;
}

int store__send(struct store *store, const char *subject, const void *bytes, size_t size)
{
	return error_of(natsConnection_Publish(store->connection, subject, bytes, (int)size), 0);
}

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
	uint64_t sequence; /* in the stream, of the latest block */
	uint64_t delivery; /* number of its delivery: they are dense, whatever else the stream holds */
	uint64_t left;	   /* blocks of the stream that were still to come with the latest one */
	bool any;
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

struct store_reader *store_reader__new(struct store *store, const char *filter, const char *name, char *err,
				       size_t err_size)
{
	struct store_reader *reader = calloc(1, sizeof(*reader));
	natsStatus status;

	if (!reader) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	reader->store = store;
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

/* Gives one block. Returns 0, -EPIPE where one before it was lost on its way, or another negative errno. */
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
	request.Expires = WAIT_MS * 1000000LL;
	status = natsSubscription_FetchRequest(&list, reader->subscription, &request);
	for (int i = 0; i < list.Count; i++) {
		if (!ret)
			ret = give_block(reader, list.Msgs[i], take, arg);
		count += !ret;
	}
	if (count)
		reader->came_ns = mono_now();
	natsMsgList_Destroy(&list);
	if (reader->first && reader->first == reader->count)
		reader->first = reader->count = 0;
	/* what was lost on its way, or with the broker's memory, is requested again */
	if (!ret && status != NATS_OK && status != NATS_TIMEOUT && status != NATS_NOT_FOUND)
		ret = -EPIPE;
	if (!ret && reader->any && reader->left && is_silent(reader))
		ret = -EPIPE;
	if (ret == -EPIPE)
		unsubscribe(reader);
	return ret && ret != -EPIPE ? ret : count;
}

bool store_reader__caught_up(const struct store_reader *reader)
{
	return reader->any ? !reader->left : is_silent(reader);
}

int store_reader__acknowledge(struct store_reader *reader, uint64_t sequence)
{
	while (reader->first < reader->count && reader->pending[reader->first].sequence <= sequence) {
		struct pending *pending = &reader->pending[reader->first++];

		natsConnection_PublishString(reader->store->connection, pending->reply, "+ACK");
		free(pending->reply);
	}
	return 0;
}

static uint64_t header_number(natsMsg *message, const char *key)
{
	const char *text = NULL;

	if (natsMsgHeader_Get(message, key, &text) != NATS_OK || !text)
		return 0;
	return strtoull(text, NULL, 10);
}

int store__last_result(struct store *store, const char *subject, struct store_result *last)
{
	natsMsg *message = NULL;
	int ret = last_message(store, store->out, subject, &message);

	memset(last, 0, sizeof(*last));
	if (!ret) {
		last->sequence = natsMsg_GetSequence(message);
		last->epoch = header_number(message, "Vapro-Epoch");
		last->judged_ns = header_number(message, "Vapro-Judged");
	}
	natsMsg_Destroy(message);
	return ret == -ENOENT ? 0 : ret;
}

static natsStatus add_number(natsMsg *message, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return natsMsgHeader_Set(message, key, text);
}

int store__publish(struct store *store, const char *subject, const char *id, const void *lines, size_t size,
		   const char *encoding, struct store_result *result)
{
	natsMsg *message = NULL;
	jsPubAck *ack = NULL;
	jsPubOptions options;
	jsErrCode code = 0;
	natsStatus status = natsMsg_Create(&message, subject, NULL, lines, (int)size);

	if (status == NATS_OK)
		status = add_number(message, "Vapro-Epoch", result->epoch);
	if (status == NATS_OK)
		status = add_number(message, "Vapro-Judged", result->judged_ns);
	if (status == NATS_OK && encoding)
		status = natsMsgHeader_Set(message, "Vapro-Encoding", encoding);
	jsPubOptions_Init(&options);
	options.MaxWait = WAIT_MS;
	options.MsgId = id;
	options.ExpectLastSubjectSeq = result->sequence;
	options.ExpectNoMessage = !result->sequence;
	if (status == NATS_OK)
		status = js_PublishMsg(&ack, store->stream, message, &options, &code);
	if (status == NATS_OK)
		result->sequence = ack->Sequence;
	jsPubAck_Destroy(ack);
	natsMsg_Destroy(message);
	return error_of(status, code);
}
