// SPDX-License-Identifier: GPL-2.0-or-later
/* The publisher: brokers that are absent, killed, full or refuse cost counted drops and nothing else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "broker/publisher.h"
#include "broker/streams.h"
#include "brokers.h"

#define S 1000000000ULL

static char err[512], news[512];

static struct publisher *publish_to(const struct broker *broker, uint64_t memory)
{
	struct publisher_options options = {
	    .broker = {.servers = broker->url, .name = "test"}, .memory_bytes = memory, .create = true};
	struct publisher *publisher = publisher__new(&options, err, sizeof(err));

	assert_non_null(publisher);
	return publisher;
}

static int put(struct publisher *publisher, unsigned number, size_t size)
{
	struct publish_message message = {
	    .bytes = calloc(1, size), .size = size, .run = 1 + number % 2, .fragments = 10};
	char subject[64], id[64];

	snprintf(subject, sizeof(subject), "vapro.v1.in.main.job==1.n%u", number % 3);
	snprintf(id, sizeof(id), "run-%u", number);
	snprintf(message.bytes, size, "%u", number);
	message.subject = subject;
	message.id = id;
	return publisher__put(publisher, &message);
}

/* Reads the stream and counts how often each number is in it. */
static unsigned read_all(const struct broker *broker, unsigned char *times, unsigned most)
{
	natsConnection *connection = NULL;
	natsSubscription *subscription = NULL;
	natsMsg *message = NULL;
	jsSubOptions options;
	jsStreamInfo *info = NULL;
	jsCtx *context = NULL;
	unsigned count = 0;

	assert_int_equal(natsConnection_ConnectTo(&connection, broker->url), NATS_OK);
	assert_int_equal(natsConnection_JetStream(&context, connection, NULL), NATS_OK);
	assert_int_equal(js_GetStreamInfo(&info, context, broker__stream(WIRE_IN), NULL, NULL), NATS_OK);
	assert_int_equal(info->Config->Duplicates, STREAM_DUPLICATES_NS);
	jsSubOptions_Init(&options);
	options.Ordered = true;
	assert_int_equal(js_SubscribeSync(&subscription, context, "vapro.v1.in.>", NULL, &options, NULL), NATS_OK);
	while (count < info->State.Msgs && natsSubscription_NextMsg(&message, subscription, 5000) == NATS_OK) {
		unsigned number = (unsigned)atoi(natsMsg_GetData(message));

		assert_true(number < most);
		times[number]++;
		count++;
		natsMsg_Destroy(message);
	}
	assert_int_equal(count, info->State.Msgs);
	jsStreamInfo_Destroy(info);
	natsSubscription_Destroy(subscription);
	jsCtx_Destroy(context);
	natsConnection_Destroy(connection);
	return count;
}

static void wait_for_news(struct publisher *publisher, const char *text)
{
	for (int i = 0; i < 30000; i++) {
		if (publisher__news(publisher, news, sizeof(news)) && strstr(news, text))
			return;
		usleep(1000);
	}
	fail_msg("no news of: %s; the last was: %s", text, news);
}

static void need_broker(void)
{
	if (!broker__program())
		skip();
}

static void test_delivers(void **state)
{
	unsigned char times[3000] = {0};
	struct publisher_totals totals;
	struct publisher *publisher;
	struct broker broker;

	(void)state;
	need_broker();
	broker__prepare(&broker, "");
	assert_true(broker__start(&broker));
	publisher = publish_to(&broker, 64 << 20);
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(put(publisher, i, 1000), 0);
	assert_true(publisher__flush(publisher, 60 * S));
	totals = publisher__totals(publisher);
	assert_int_equal(totals.acknowledged, 3000);
	assert_int_equal(totals.bytes, 3000000);
	assert_int_equal(totals.dropped, 0);
	assert_int_equal(totals.waiting, 0);
	assert_int_equal(totals.ring_bytes, 0);
	assert_true(publisher__news(publisher, news, sizeof(news)));
	assert_non_null(strstr(news, "connected"));
	publisher__free(publisher);
	assert_int_equal(read_all(&broker, times, 3000), 3000);
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(times[i], 1);
	broker__remove(&broker);
}

/* No broker: the ring stays within its bound, the oldest go and are counted by run; what is left arrives later. */
static void test_absent(void **state)
{
	uint64_t dropped = 0, lost = 0;
	struct block_drop drop;
	unsigned char times[1000] = {0};
	struct publisher_totals totals;
	struct publisher *publisher;
	struct broker broker;

	(void)state;
	need_broker();
	broker__prepare(&broker, "");
	publisher = publish_to(&broker, 200000);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(put(publisher, i, 1000), 0);
		assert_true(publisher__totals(publisher).ring_bytes <= 200000);
	}
	assert_int_equal(put(publisher, 7, 300000), -ENOMEM); /* more than the ring */
	totals = publisher__totals(publisher);
	while (publisher__dropped(publisher, &drop)) {
		assert_true(drop.run == 1 || drop.run == 2);
		dropped += drop.blocks;
		lost += drop.fragments;
	}
	assert_int_equal(dropped, totals.dropped);
	assert_int_equal(lost, dropped * 10);
	assert_int_equal(totals.fragments, lost);
	/* the large one had first taken the room of all others */
	assert_int_equal(totals.waiting, 1001 - dropped);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(put(publisher, i, 1000), 0);
	assert_false(publisher__flush(publisher, S / 10));
	assert_true(broker__start(&broker));
	assert_true(publisher__flush(publisher, 60 * S));
	assert_int_equal(publisher__totals(publisher).acknowledged, 101 + totals.waiting - 1);
	publisher__free(publisher);
	read_all(&broker, times, 1000);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(times[i], 1);
	broker__remove(&broker);
}

/* A broker that is killed in mid-publish and comes back: everything arrives, and each message once. */
static void test_killed(void **state)
{
	static unsigned char times[4000];
	struct publisher *publisher;
	struct broker broker;

	(void)state;
	need_broker();
	memset(times, 0, sizeof(times));
	broker__prepare(&broker, "");
	assert_true(broker__start(&broker));
	publisher = publish_to(&broker, 64 << 20);
	for (unsigned i = 0; i < 4000; i++) {
		assert_int_equal(put(publisher, i, 2000), 0);
		if (i % 1000 != 500)
			continue;
		while (publisher__totals(publisher).acknowledged < i / 2)
			usleep(1000);
		broker__stop(&broker, SIGKILL);
		assert_true(broker__start(&broker));
	}
	assert_true(publisher__flush(publisher, 120 * S));
	assert_int_equal(publisher__totals(publisher).acknowledged, 4000);
	assert_int_equal(publisher__totals(publisher).dropped, 0);
	publisher__free(publisher);
	read_all(&broker, times, 4000);
	for (unsigned i = 0; i < 4000; i++)
		assert_int_equal(times[i], 1);
	broker__remove(&broker);
}

/* A broker without JetStream, and one that refuses: it is said once, and the end is not waited for. */
static void test_refused(void **state)
{
	struct publisher *publisher;
	struct broker broker;
	FILE *file;

	(void)state;
	need_broker();
	broker__prepare(&broker, "");
	file = fopen(broker.config, "w");
	fprintf(file, "listen: 127.0.0.1:%d\n", broker.port);
	fclose(file);
	assert_true(broker__start(&broker));
	publisher = publish_to(&broker, 1 << 20);
	assert_int_equal(put(publisher, 1, 100), 0);
	wait_for_news(publisher, "no JetStream");
	assert_false(publisher__flush(publisher, S / 2));
	assert_int_equal(publisher__totals(publisher).waiting, 1);
	publisher__free(publisher);
	broker__remove(&broker);

	broker__prepare(&broker, "authorization { user: a, password: secret }");
	assert_true(broker__start(&broker));
	publisher = publish_to(&broker, 1 << 20);
	assert_int_equal(put(publisher, 1, 100), 0);
	wait_for_news(publisher, "refuses these credentials");
	publisher__free(publisher);
	/* with them it is open, and the password is in no sentence */
	snprintf(broker.url, sizeof(broker.url), "nats://a:secret@127.0.0.1:%d", broker.port);
	publisher = publish_to(&broker, 1 << 20);
	assert_int_equal(put(publisher, 1, 100), 0);
	assert_true(publisher__flush(publisher, 60 * S));
	assert_true(publisher__news(publisher, news, sizeof(news)));
	assert_null(strstr(news, "secret"));
	assert_non_null(strstr(news, "127.0.0.1"));
	publisher__free(publisher);
	broker__remove(&broker);
}

/* A broker that is stopped takes the connection and answers nothing: put returns, and what was sent is sent again. */
static void test_hangs(void **state)
{
	struct publisher *publisher;
	struct broker broker;

	(void)state;
	need_broker();
	broker__prepare(&broker, "");
	assert_true(broker__start(&broker));
	publisher = publish_to(&broker, 1 << 20);
	assert_int_equal(put(publisher, 0, 100), 0);
	assert_true(publisher__flush(publisher, 60 * S));
	kill(broker.pid, SIGSTOP);
	for (unsigned i = 1; i < 3000; i++)
		assert_int_equal(put(publisher, i, 1000), 0);
	assert_true(publisher__totals(publisher).dropped > 1000);
	assert_true(publisher__totals(publisher).ring_bytes <= 1 << 20);
	assert_false(publisher__flush(publisher, S / 5));
	kill(broker.pid, SIGCONT);
	assert_true(publisher__flush(publisher, 60 * S));
	publisher__free(publisher);
	broker__remove(&broker);
}

static void test_addresses(void **state)
{
	static const char *const wrong[] = {
	    "", "localhost:4222", "http://a:b@c", "nats://", "nats://a,,nats://b", "nats://u:secret@", "nats://a,"};
	struct publisher_options options = {.memory_bytes = 1 << 20};
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		options.broker.servers = wrong[i];
		if (publisher__new(&options, err, sizeof(err)))
			fail_msg("accepted: %s", wrong[i]);
		assert_non_null(strstr(err, "HOST"));
		assert_null(strstr(err, "secret"));
	}
	options.broker.servers = "nats://a";
	options.broker.cert = "/dev/null";
	assert_null(publisher__new(&options, err, sizeof(err)));
	assert_non_null(strstr(err, "key"));
	options.broker.cert = NULL;
	options.broker.credentials = "/nonexistent/creds";
	assert_null(publisher__new(&options, err, sizeof(err)));
	assert_non_null(strstr(err, "/nonexistent/creds: No such file"));
	assert_string_equal(broker__printable(text, sizeof(text), "nats://u:p@ss@a:1,tls://b"), "nats://a:1,tls://b");
	assert_string_equal(broker__printable(text, 4, "nats://u:p@long,tls://b"), "nat");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_addresses), cmocka_unit_test(test_delivers), cmocka_unit_test(test_absent),
	    cmocka_unit_test(test_killed),    cmocka_unit_test(test_refused),  cmocka_unit_test(test_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
