// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages that a worker publishes: results, and states of jobs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/store_private.h"

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
	int ret = store__last_message(store, store->out, subject, &message);

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

/* Publishes a message that was made, unless status is an error of that, and frees it. *sequence: in its stream. */
static int publish(struct store *store, natsMsg *message, natsStatus status, jsPubOptions *options, uint64_t *sequence)
{
	jsPubAck *ack = NULL;
	jsErrCode code = 0;

	options->MaxWait = STORE_WAIT_MS;
	if (status == NATS_OK)
		status = js_PublishMsg(&ack, store->stream, message, options, &code);
	if (status == NATS_OK)
		*sequence = ack->Sequence;
	jsPubAck_Destroy(ack);
	natsMsg_Destroy(message);
	return store__error(status, code);
}

int store__publish(struct store *store, const char *subject, const char *id, const void *lines, size_t size,
		   const char *encoding, struct store_result *result)
{
	natsMsg *message = NULL;
	jsPubOptions options;
	natsStatus status = natsMsg_Create(&message, subject, NULL, lines, (int)size);

	if (status == NATS_OK)
		status = add_number(message, "Vapro-Epoch", result->epoch);
	if (status == NATS_OK)
		status = add_number(message, "Vapro-Judged", result->judged_ns);
	if (status == NATS_OK && encoding)
		status = natsMsgHeader_Set(message, "Vapro-Encoding", encoding);
	jsPubOptions_Init(&options);
	options.MsgId = id;
	options.ExpectLastSubjectSeq = result->sequence;
	options.ExpectNoMessage = !result->sequence;
	return publish(store, message, status, &options, &result->sequence);
}

bool store__has_state(const struct store *store)
{
	return store->state[0];
}

int store__put_state(struct store *store, const char *subject, const char *id, const void *bytes, size_t size,
		     const struct store_chunk *chunk, uint64_t *number)
{
	natsMsg *message = NULL;
	jsPubOptions options;
	natsStatus status = natsMsg_Create(&message, subject, NULL, bytes, (int)size);

	if (status == NATS_OK)
		status = add_number(message, "Vapro-Before", chunk->before);
	if (status == NATS_OK && chunk->chunks)
		status = add_number(message, "Vapro-Chunks", chunk->chunks);
	if (status == NATS_OK && chunk->chunks)
		status = add_number(message, "Vapro-First", chunk->first);
	if (status == NATS_OK && chunk->chunks)
		status = add_number(message, "Vapro-Older", chunk->older);
	if (status == NATS_OK && chunk->chunks)
		status = add_number(message, "Vapro-End", chunk->end_ns);
	jsPubOptions_Init(&options);
	options.MsgId = id;
	return publish(store, message, status, &options, number);
}

int store__get_state(struct store *store, const char *subject, uint64_t number, struct store_chunk *chunk, void **bytes,
		     size_t *size)
{
	natsMsg *message = NULL;
	jsErrCode code = 0;
	natsStatus status = js_GetMsg(&message, store->stream, store->state, number, NULL, &code);
	int ret = code == JSNoMessageFoundErr ? -ENOENT : store__error(status, code);

	*bytes = NULL;
	if (!ret && strcmp(natsMsg_GetSubject(message), subject) != 0)
		ret = -ENOENT;
	if (!ret) {
		*size = (size_t)natsMsg_GetDataLength(message);
		*bytes = malloc(*size + 1);
		ret = *bytes ? 0 : -ENOMEM;
	}
	if (!ret) {
		memcpy(*bytes, natsMsg_GetData(message), *size);
		*chunk = (struct store_chunk){
		    .before = header_number(message, "Vapro-Before"),
		    .chunks = header_number(message, "Vapro-Chunks"),
		    .first = header_number(message, "Vapro-First"),
		    .older = header_number(message, "Vapro-Older"),
		    .end_ns = header_number(message, "Vapro-End"),
		};
	}
	natsMsg_Destroy(message);
	return ret;
}

int store__drop_state(struct store *store, const char *subject, uint64_t before)
{
	jsErrCode code = 0;
	jsOptions options;

	jsOptions_Init(&options);
	options.Wait = STORE_WAIT_MS;
	options.Stream.Purge.Subject = subject;
	options.Stream.Purge.Sequence = before;
	return store__error(js_PurgeStream(store->stream, store->state, &options, &code), code);
}
