// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/publishing.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/blocks.h"
#include "wire/split.h"

struct publishing {
	struct wire_receiver receiver; /* first */
	struct wire_split *split;
	struct publisher *publisher;
	struct requests *requests;
	char name[WIRE_TEXT_MAX + 16], inbox[WIRE_TOKEN_MAX + 16];
};

/* Hands a block over to the sender. */
static void take(struct wire_receiver *receiver, const struct wire_job *job, const char *host,
		 const struct block *block)
{
	struct publishing *publishing = (struct publishing *)receiver;
	blocks__put(publishing->publisher, job, host, block);
}

struct publishing *publishing__new(const struct publishing_options *options, const char *host, const char *tunables,
				   char *err, size_t err_size)
{
	struct publishing *publishing = calloc(1, sizeof(*publishing));
	struct publisher_options publisher = {.broker = options->broker,
					      .memory_bytes =
						  options->memory_bytes ? options->memory_bytes : PUBLISHING_MEMORY,
					      .create = true};
	char token[WIRE_TOKEN_MAX + 1], subject[WIRE_SUBJECT_MAX];
	const char *cluster = options->cluster ? options->cluster : PUBLISHING_CLUSTER;

	snprintf(err, err_size, "out of memory");
	if (!publishing)
		return NULL;
	publishing->receiver.take = take;
	wire__token(token, sizeof(token), host);
	snprintf(publishing->name, sizeof(publishing->name), "vaprod of %s", host);
	snprintf(publishing->inbox, sizeof(publishing->inbox), PUBLISHING_INBOX "%s", token);
	publisher.broker.name = publishing->name;
	publisher.broker.inbox = publishing->inbox;
	publishing->split = wire_split__new(cluster, host, tunables, &publishing->receiver);
	if (publishing->split)
		publishing->publisher = publisher__new(&publisher, err, err_size);
	wire__filter(subject, sizeof(subject), WIRE_REQ, cluster, NULL, host);
	if (publishing->publisher)
		publishing->requests = requests__new(&publisher.broker, subject, err, err_size);
	if (publishing->requests)
		return publishing;
	publishing__free(publishing);
	return NULL;
}

int publishing__put(struct publishing *publishing, struct stream_event *event)
{
	uint64_t again;
	int ret;

	if (event->type != STREAM_FACTS)
		return stream__put(wire_split__sink(publishing->split), event);
	event->facts.lost[VAPRO_LOST_PUBLISHED] +=
	    wire_split__take_lost(publishing->split, event->facts.job, event->facts.user, &again);
	/* the analysis of this node, which gets the event next, had those in their time */
	event->facts.lost[VAPRO_LOST_PUBLISHED] += again;
	ret = stream__put(wire_split__sink(publishing->split), event);
	event->facts.lost[VAPRO_LOST_PUBLISHED] -= again;
	return ret;
}

void publishing__step(struct publishing *publishing, uint64_t now_ns)
{
	struct block_drop drop;

	wire_split__tick(publishing->split, now_ns);
	while (publisher__dropped(publishing->publisher, &drop))
		wire_split__dropped(publishing->split, &drop);
}

bool publishing__news(struct publishing *publishing, char *text, size_t size, bool *trouble)
{
	enum publisher_news news = publisher__news(publishing->publisher, text, size);

	*trouble = news == PUBLISHER_TROUBLE;
	return news != PUBLISHER_NO_NEWS;
}

bool publishing__finish(struct publishing *publishing, uint64_t most_ns, char *text, size_t size)
{
	struct publisher_totals totals;

	stream__close(wire_split__sink(publishing->split));
	publisher__flush(publishing->publisher, most_ns);
	totals = publisher__totals(publishing->publisher);
	if (!totals.dropped && !totals.waiting)
		return true;
	snprintf(text, size, "%llu of %llu blocks were not published: no broker took them in time",
		 (unsigned long long)(totals.dropped + totals.waiting),
		 (unsigned long long)(totals.dropped + totals.waiting + totals.acknowledged));
	return false;
}

struct requests *publishing__requests(struct publishing *publishing)
{
	return publishing->requests;
}

struct publisher_totals publishing__totals(struct publishing *publishing)
{
	return publisher__totals(publishing->publisher);
}

void publishing__free(struct publishing *publishing)
{
	if (!publishing)
		return;
	requests__free(publishing->requests);
	publisher__free(publishing->publisher);
	wire_split__free(publishing->split);
	free(publishing);
}
