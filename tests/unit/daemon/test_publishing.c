// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's events on their way to a broker: what a broker did not take stands in the facts and heads that follow.
 */
#include <errno.h>

#include "base/clock.h"
#include "broker/streams.h"
#include "captured.h"
#include "brokers.h"
#include "daemon/publishing.h"
#include "wire/block.h"

static char text[512];

static struct publishing *publish_to(const char *url, uint64_t memory)
{
	struct publishing_options options = {.broker.servers = url, .memory_bytes = memory};
	struct publishing *publishing = publishing__new(&options, "n1", "{}", text, sizeof(text));

	assert_non_null(publishing);
	return publishing;
}

static void give(struct publishing *publishing, struct stream_event event)
{
	assert_int_equal(publishing__put(publishing, &event), 0);
}

static void announce(struct publishing *publishing, char *label)
{
	give(publishing, (struct stream_event){.type = STREAM_CLOCK, .clock = {UTC - 1000, UTC}});
	give(publishing,
	     (struct stream_event){.type = STREAM_THREAD, .thread = {.job = "slurm:1", .host = "n1", .user = 8}});
	give(publishing,
	     (struct stream_event){.type = STREAM_STATE, .state = {.to = "a@1+0x1", .labels = label, .common = ""}});
}

/* Facts of the job, as the analysis of the node gets them. */
static uint64_t lost_of(struct publishing *publishing)
{
	struct stream_event event = {.type = STREAM_FACTS, .facts = {.job = "slurm:1", .user = 8}};

	assert_int_equal(publishing__put(publishing, &event), 0);
	return event.facts.lost[VAPRO_LOST_PUBLISHED];
}

/* Without a broker: all fragments of discarded blocks are in facts once, and the end is bounded. */
static void test_lost(void **state)
{
	struct publishing *publishing = publish_to("nats://127.0.0.1:1", 1 << 20);
	uint64_t lost = 0, before;
	char label[4096];

	(void)state;
	srand(5); /* labels that do not compress */
	for (size_t i = 0; i + 1 < sizeof(label); i++)
		label[i] = (char)('!' + rand() % 90);
	label[sizeof(label) - 1] = 0;
	announce(publishing, label);
	for (uint64_t i = 1; i <= 2000; i++) {
		struct stream_event event = bundle(0, 0, UTC - 1000 + i * S / 10, 1000);

		event.bundle.n = 3;
		give(publishing, event);
		publishing__step(publishing, i * S);
		if (i % 100 == 0)
			lost += lost_of(publishing);
	}
	assert_true(lost > 1000);
	assert_int_equal(publishing__totals(publishing).fragments, lost);
	assert_true(publishing__totals(publishing).ring_bytes <= 1 << 20);
	before = mono_now();
	assert_false(publishing__finish(publishing, S / 10, text, sizeof(text)));
	assert_true(mono_now() - before >= S / 10);
	assert_non_null(strstr(text, "blocks were not published"));
	publishing__free(publishing);
}

/* With one: the stream has the blocks of all events, under the subject of job and host, the last one marked. */
static void test_stored(void **state)
{
	struct block_reader *reader = block_reader__new();
	natsConnection *connection = NULL;
	natsSubscription *subscription = NULL;
	jsSubOptions options;
	jsCtx *context = NULL;
	struct publishing *publishing;
	struct block_head head = {0};
	struct broker broker;
	natsMsg *message = NULL;
	uint64_t count = 0;

	(void)state;
	if (!broker__program())
		skip();
	broker__prepare(&broker, "");
	assert_true(broker__start(&broker));
	publishing = publish_to(broker.url, 1 << 20);
	announce(publishing, "function=MPI_Wait");
	for (uint64_t i = 1; i <= 50; i++) {
		give(publishing, bundle(0, 0, UTC - 1000 + i * S / 10, 1000));
		publishing__step(publishing, i * S / 4);
	}
	assert_true(publishing__finish(publishing, 60 * S, text, sizeof(text)));
	assert_int_equal(natsConnection_ConnectTo(&connection, broker.url), NATS_OK);
	assert_int_equal(natsConnection_JetStream(&context, connection, NULL), NATS_OK);
	jsSubOptions_Init(&options);
	options.Ordered = true;
	assert_int_equal(
	    js_SubscribeSync(&subscription, context, "vapro.v1.in.main.slurm=3A1==8.n1", NULL, &options, NULL),
	    NATS_OK);
	while (!(head.flags & BLOCK_LAST)) {
		assert_int_equal(natsSubscription_NextMsg(&message, subscription, 10000), NATS_OK);
		assert_int_equal(block_reader__read(reader, natsMsg_GetData(message),
						    (size_t)natsMsg_GetDataLength(message), &head, &seen.sink, err,
						    sizeof(err)),
				 0);
		assert_int_equal(head.sequence, count++);
		natsMsg_Destroy(message);
	}
	assert_int_equal(count, publishing__totals(publishing).acknowledged);
	assert_int_equal(recorder__count(&seen, STREAM_BUNDLE), 50);
	natsSubscription_Destroy(subscription);
	jsCtx_Destroy(context);
	natsConnection_Destroy(connection);
	block_reader__free(reader);
	publishing__free(publishing);
	broker__remove(&broker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_stored, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
