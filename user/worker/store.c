// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "broker/streams.h"
#include "worker/store_private.h"

#define BUCKET "vapro_leases"
#define OPENING_TRIES 10 /* with STORE_WAIT_MS each, while streams are made at the start */
#define OPENING_PAUSE_MS 500

int store__error(natsStatus status, jsErrCode code)
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

/* Whether brokers that are still choosing a leader may answer soon; waits a little before the next try. */
static bool tries_again(natsStatus status, int tries)
{
	if ((status != NATS_TIMEOUT && status != NATS_NO_RESPONDERS) || tries >= OPENING_TRIES)
		return false;
	nats_Sleep(OPENING_PAUSE_MS);
	return true;
}

/* Makes the stream of a role where no stream holds its subjects. */
static int make_stream(struct store *store, enum wire_role role, char *found, size_t size, char *err, size_t err_size)
{
	char subjects[WIRE_SUBJECT_MAX];
	natsStatus status;
	int tries = 0;

	do {
		status = broker__find_stream(store->stream, role, found, size);
		if (status != NATS_NOT_FOUND)
			continue;
		status = broker__create_stream(store->stream, role, store->options.replicas);
		snprintf(found, size, "%s", broker__stream(role));
	} while (tries_again(status, ++tries));
	if (status == NATS_OK)
		return 0;
	wire__filter(subjects, sizeof(subjects), role, NULL, NULL, NULL);
	snprintf(
	    err, err_size,
	    "the stream %s of %s cannot be made: %s; does the broker run JetStream, has it room for %lld MiB, and may "
	    "this user make streams?",
	    broker__stream(role), subjects, natsStatus_GetText(status), STREAM_LEAST_BYTES >> 20);
	return store__error(status, 0);
}

/* Opens the bucket of the leases, or makes it. */
static natsStatus find_bucket(struct store *store)
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
	return status;
}

static int open_bucket(struct store *store, char *err, size_t err_size)
{
	natsStatus status;
	int tries = 0;

	do
		status = find_bucket(store);
	while (tries_again(status, ++tries));
	if (status == NATS_OK)
		return 0;
	snprintf(err, err_size, "the bucket %s cannot be made: %s", BUCKET, natsStatus_GetText(status));
	return store__error(status, 0);
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
	js.Wait = STORE_WAIT_MS;
	status = natsConnection_JetStream(&store->stream, store->connection, &js);
	if (status != NATS_OK) {
		snprintf(err, err_size, "out of memory");
		goto failed;
	}
	if (make_stream(store, WIRE_IN, store->in, sizeof(store->in), err, err_size) ||
	    make_stream(store, WIRE_OUT, store->out, sizeof(store->out), err, err_size) ||
	    open_bucket(store, err, err_size))
		goto failed;
	if (make_stream(store, WIRE_STATE, store->state, sizeof(store->state), err, err_size)) {
		log__warning("no checkpoints, jobs that are taken over are read from their start: %s", err);
		store->state[0] = '\0';
	}
	return store;
failed:
	store__close(store);
	return NULL;
}

void store__abandon(struct store *store)
{
	natsConnection_Close(store->connection);
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
	options.Wait = STORE_WAIT_MS;
	options.Stream.Info.SubjectsFilter = filter;
	status = js_GetStreamInfo(&info, store->stream, stream, &options, &code);
	ret = store__error(status, code);
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

/* Reads the last message of a subject; -ENOENT: there is none. */
int store__last_message(struct store *store, const char *stream, const char *subject, natsMsg **message)
{
	jsErrCode code = 0;
	natsStatus status = js_GetLastMsg(message, store->stream, stream, subject, NULL, &code);

	return code == JSNoMessageFoundErr ? -ENOENT : store__error(status, code);
}

int store__last_block(struct store *store, const char *subject, uint64_t *sequence)
{
	natsMsg *message = NULL;
	int ret = store__last_message(store, store->in, subject, &message);

	if (!ret)
		*sequence = natsMsg_GetSequence(message);
	natsMsg_Destroy(message);
	return ret;
}

int store__first_number(struct store *store, uint64_t *sequence)
{
	jsStreamInfo *info = NULL;
	jsErrCode code = 0;
	natsStatus status = js_GetStreamInfo(&info, store->stream, store->in, NULL, &code);

	if (status == NATS_OK)
		*sequence = info->State.FirstSeq;
	jsStreamInfo_Destroy(info);
	return store__error(status, code);
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
	return store__error(status, 0);
}

int store__set(struct store *store, const char *key, const char *value, uint64_t *revision)
{
	natsStatus status;

	if (*revision)
		status = kvStore_UpdateString(revision, store->bucket, key, value, *revision);
	else
		status = kvStore_CreateString(revision, store->bucket, key, value);
	/* the library has no other status for a revision that is not the latest */
	return status == NATS_ERR ? -ESTALE : store__error(status, 0);
}

int store__put(struct store *store, const char *key, const char *value)
{
	return store__error(kvStore_PutString(NULL, store->bucket, key, value), 0);
}

int store__remove(struct store *store, const char *key)
{
	return store__error(kvStore_Purge(store->bucket, key, NULL), 0);
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
	return store__error(natsConnection_Publish(store->connection, subject, bytes, (int)size), 0);
}
