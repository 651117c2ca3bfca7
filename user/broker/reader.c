// SPDX-License-Identifier: GPL-2.0-or-later
#include "broker/reader.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/streams.h"

#define WAIT_MS 2000		  /* for a response of the broker */
#define FETCH_MS 100		  /* that a request for messages waits where there is none */
#define BATCH 256		  /* messages of a request: at most 256 MiB */
#define SILENT_NS 10000000000ULL  /* without a message of those that are there: the broker is away */
#define INACTIVE_NS 60000000000LL /* a reader that is gone is removed by the broker */

struct broker_reader {
	natsConnection *connection;
	jsCtx *context;
	enum wire_role role;
	char stream[64], servers[512];
	char filter[WIRE_SUBJECT_MAX];
	atomic_bool denied; /* the broker has refused a subject since the latest request */
	natsSubscription *subscription;
	natsMsgList list; /* of the latest request, and how many of them were given */
	int given;
	uint64_t since_ns; /* UTC: what was stored before is passed over */
	uint64_t sequence; /* in the stream, of the latest message */
	uint64_t delivery; /* number of its delivery: they are dense */
	uint64_t left;	   /* messages that were still to come with it */
	uint64_t came_ns;  /* own clock */
	bool read_up;	   /* to the end, and the caller does not know yet */
};

/* A broker that does not permit a request answers apart from it. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status, void *closure)
{
	(void)connection;
	(void)subscription;
	if (status == NATS_NOT_PERMITTED)
		atomic_store(&((struct broker_reader *)closure)->denied, true);
}

/* Writes the sentence of a failed request. Returns its errno. */
static int fail(struct broker_reader *reader, natsStatus status, char *err, size_t err_size)
{
	const char *what = reader->role == WIRE_IN ? "blocks" : "results";

	if (atomic_exchange(&reader->denied, false) || status == NATS_NOT_PERMITTED) {
		snprintf(err, err_size,
			 "%s: this user may not read %s (the stream %s): deploy/nats/add_user.sh adds one of the role "
			 "'%s'",
			 reader->servers, what, reader->stream, reader->role == WIRE_IN ? "analyst" : "reader");
		return -EACCES;
	}
	switch (status) {
	case NATS_NOT_FOUND:
		snprintf(err, err_size, "%s has no stream of %s: %s", reader->servers, what,
			 reader->role == WIRE_IN ? "no vaprod --broker has sent any"
						 : "no vapro-worker has published any");
		return -ENOENT;
	case NATS_NO_RESPONDERS:
		snprintf(err, err_size, "%s runs no JetStream, which keeps the %s: see deploy/nats/broker.conf",
			 reader->servers, what);
		return -ENOENT;
	case NATS_TIMEOUT:
		snprintf(err, err_size, "%s did not answer in time", reader->servers);
		return -ETIMEDOUT;
	case NATS_NO_MEMORY:
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	case NATS_CONNECTION_CLOSED:
	case NATS_CONNECTION_DISCONNECTED:
		snprintf(err, err_size, "the connection to %s was lost", reader->servers);
		return -ENOTCONN;
	default:
		snprintf(err, err_size, "%s: %s cannot be read: %s", reader->servers, what, broker__reason(status));
		return -EIO;
	}
}

/* Finds the stream of the role, whatever its name: an administrator may have made it. */
static natsStatus find_stream(struct broker_reader *reader)
{
	jsStreamInfo *info = NULL;
	jsErrCode code = 0;
	natsStatus status;

	snprintf(reader->stream, sizeof(reader->stream), "%s", broker__stream(reader->role));
	status = js_GetStreamInfo(&info, reader->context, reader->stream, NULL, &code);
	jsStreamInfo_Destroy(info);
	if (status != NATS_NOT_FOUND)
		return status;
	status = broker__find_stream(reader->context, reader->role, reader->stream, sizeof(reader->stream));
	atomic_store(&reader->denied, false);
	/* the name alone may be all that the user may look for */
	return status == NATS_OK ? NATS_OK : NATS_NOT_FOUND;
}

int broker_reader__open(struct broker_reader **opened, const struct broker_options *options, enum wire_role role,
			char *err, size_t err_size)
{
	struct broker_reader *reader = calloc(1, sizeof(*reader));
	natsOptions *nats;
	natsStatus status;
	jsOptions js;
	int ret = -EINVAL;

	if (!reader) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	reader->role = role;
	broker__printable(reader->servers, sizeof(reader->servers), options->servers);
	nats = broker__options(options, err, err_size);
	if (!nats)
		goto failed;
	natsOptions_SetErrorHandler(nats, on_error, reader);
	status = natsConnection_Connect(&reader->connection, nats);
	natsOptions_Destroy(nats);
	if (status != NATS_OK) {
		snprintf(err, err_size, "no connection to %s: %s", reader->servers, broker__reason(status));
		ret = status == NATS_CONNECTION_AUTH_FAILED ? -EACCES : -ENOTCONN;
		goto failed;
	}
	jsOptions_Init(&js);
	js.Wait = WAIT_MS;
	status = natsConnection_JetStream(&reader->context, reader->connection, &js);
	if (status == NATS_OK)
		status = find_stream(reader);
	if (status == NATS_OK) {
		*opened = reader;
		return 0;
	}
	ret = fail(reader, status, err, err_size);
failed:
	broker_reader__close(reader);
	return ret;
}

static void unsubscribe(struct broker_reader *reader)
{
	natsMsgList_Destroy(&reader->list);
	reader->list = (natsMsgList){0};
	reader->given = 0;
	natsSubscription_Unsubscribe(reader->subscription);
	natsSubscription_Destroy(reader->subscription);
	reader->subscription = NULL;
}

void broker_reader__close(struct broker_reader *reader)
{
	if (!reader)
		return;
	unsubscribe(reader);
	jsCtx_Destroy(reader->context);
	/* errors are reported to the reader until the connection is gone */
	if (reader->connection)
		natsConnection_Close(reader->connection);
	natsConnection_Destroy(reader->connection);
	free(reader);
}

int broker_reader__subjects(struct broker_reader *reader, const char *filter, struct wire_subject **list, size_t *count,
			    char *err, size_t err_size)
{
	const jsStreamStateSubjects *subjects;
	jsStreamInfo *info = NULL;
	jsErrCode code = 0;
	jsOptions options;
	natsStatus status;
	int ret = 0;

	*list = NULL;
	*count = 0;
	jsOptions_Init(&options);
	options.Wait = WAIT_MS;
	options.Stream.Info.SubjectsFilter = filter;
	status = js_GetStreamInfo(&info, reader->context, reader->stream, &options, &code);
	if (status != NATS_OK)
		return fail(reader, status, err, err_size);
	subjects = info->State.Subjects;
	if (subjects && subjects->Count > 0) {
		*list = calloc((size_t)subjects->Count, sizeof(**list));
		ret = *list ? 0 : fail(reader, NATS_NO_MEMORY, err, err_size);
	}
	for (int i = 0; !ret && subjects && i < subjects->Count; i++) {
		/* what is no subject of this version is none that this program reads */
		if (subjects->List[i].Msgs && !wire_subject__parse(&(*list)[*count], subjects->List[i].Subject))
			(*count)++;
	}
	jsStreamInfo_Destroy(info);
	return ret;
}

/* Subscribes to what follows the latest message. */
static natsStatus subscribe(struct broker_reader *reader)
{
	jsConsumerInfo *info = NULL;
	jsSubOptions options;
	jsErrCode code = 0;
	natsStatus status;

	jsSubOptions_Init(&options);
	options.Stream = reader->stream;
	options.Config.DeliverPolicy = reader->sequence ? js_DeliverByStartSequence : js_DeliverAll;
	options.Config.OptStartSeq = reader->sequence ? reader->sequence + 1 : 0;
	if (!reader->sequence && reader->since_ns) {
		options.Config.DeliverPolicy = js_DeliverByStartTime;
		options.Config.OptStartTime = (int64_t)reader->since_ns;
	}
	options.Config.AckPolicy = js_AckNone;
	options.Config.InactiveThreshold = INACTIVE_NS;
	status = js_PullSubscribe(&reader->subscription, reader->context, reader->filter, NULL, NULL, &options, &code);
	if (status == NATS_OK) {
		natsSubscription_SetPendingLimits(reader->subscription, -1, -1);
		status = natsSubscription_GetConsumerInfo(&info, reader->subscription, NULL, &code);
	}
	if (status == NATS_OK)
		reader->left = info->NumPending;
	else
		unsubscribe(reader);
	jsConsumerInfo_Destroy(info);
	reader->delivery = 0;
	reader->read_up = !reader->left;
	reader->came_ns = mono_now();
	return status;
}

int broker_reader__start(struct broker_reader *reader, const char *filter, uint64_t since_ns, char *err,
			 size_t err_size)
{
	natsStatus status;

	unsubscribe(reader);
	reader->sequence = 0;
	reader->since_ns = since_ns;
	snprintf(reader->filter, sizeof(reader->filter), "%s", filter);
	status = subscribe(reader);
	return status == NATS_OK ? 0 : fail(reader, status, err, err_size);
}

/* Requests messages. Returns a status other than NATS_OK where the subscription has to be made again. */
static natsStatus request(struct broker_reader *reader)
{
	jsFetchRequest fetch;
	natsStatus status;

	natsMsgList_Destroy(&reader->list);
	reader->list = (natsMsgList){0};
	reader->given = 0;
	jsFetchRequest_Init(&fetch);
	fetch.Batch = BATCH;
	fetch.NoWait = true;
	fetch.Expires = FETCH_MS * 1000000LL;
	status = natsSubscription_FetchRequest(&reader->list, reader->subscription, &fetch);
	if (reader->list.Count)
		reader->came_ns = mono_now();
	/* there is no further message at present, or one is under way */
	return status == NATS_TIMEOUT || status == NATS_NOT_FOUND ? NATS_OK : status;
}

static uint64_t header_number(natsMsg *message, const char *key)
{
	const char *text = NULL;

	if (natsMsgHeader_Get(message, key, &text) != NATS_OK || !text)
		return 0;
	return strtoull(text, NULL, 10);
}

/* Reads the next message of the list. Returns false where a message before it was lost in transit. */
static bool give(struct broker_reader *reader, struct broker_message *message)
{
	natsMsg *next = reader->list.Msgs[reader->given++];
	const char *encoding = NULL;
	jsMsgMetaData *meta = NULL;
	bool dense = natsMsg_GetMetaData(&meta, next) == NATS_OK && meta->Sequence.Consumer == reader->delivery + 1;

	if (dense) {
		reader->delivery = meta->Sequence.Consumer;
		reader->sequence = meta->Sequence.Stream;
		reader->left = meta->NumPending;
		reader->read_up = !reader->left;
		*message = (struct broker_message){
		    .subject = natsMsg_GetSubject(next),
		    .bytes = natsMsg_GetData(next),
		    .size = (size_t)natsMsg_GetDataLength(next),
		    .packed = natsMsgHeader_Get(next, "Vapro-Encoding", &encoding) == NATS_OK && encoding &&
			      !strcmp(encoding, "zstd"),
		    .epoch = header_number(next, "Vapro-Epoch"),
		    .judged_ns = header_number(next, "Vapro-Judged"),
		};
	}
	jsMsgMetaData_Destroy(meta);
	return dense;
}

int broker_reader__next(struct broker_reader *reader, struct broker_message *message, char *err, size_t err_size)
{
	for (;;) {
		natsStatus status = NATS_OK;
		bool idle;

		/* requests without a connection would wait for their time */
		if (natsConnection_Status(reader->connection) != NATS_CONN_STATUS_CONNECTED)
			return fail(reader, NATS_CONNECTION_DISCONNECTED, err, err_size);
		if (!reader->subscription)
			status = subscribe(reader);

		if (status == NATS_OK && reader->given < reader->list.Count) {
			if (give(reader, message))
				return 1;
			unsubscribe(reader);
			continue;
		}
		if (status == NATS_OK && reader->read_up) {
			reader->read_up = false;
			return 0;
		}
		idle = !reader->left;
		if (status == NATS_OK)
			status = request(reader);
		if (status != NATS_OK) {
			unsubscribe(reader);
			return fail(reader, status, err, err_size);
		}
		if (reader->list.Count)
			continue;
		if (idle)
			return 0;
		if (mono_now() - reader->came_ns < SILENT_NS)
			continue;
		unsubscribe(reader);
		return fail(reader, NATS_TIMEOUT, err, err_size);
	}
}
