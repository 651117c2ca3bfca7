/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A new pipeline takes over from a checkpoint after any event of a stream with all kinds of events: the output is that
 * of one pipeline, byte for byte, and so are totals and outcome.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <endian.h>
#include <zlib.h>

#include "config/rules.h"
#include "written_records.h"
#include "pipeline/pipeline.h"
#include "report/summary.h"
#include "sim.h"
#include "streamed.h"

#define SECONDS 62

static struct vapro_config config;
static char path_a[64], path_b[64];

/* Passes events on; a new pipeline takes over after each `every`-th event, and after windows. */
struct relay {
	struct stream_sink sink; /* first */
	struct pipeline *to;
	struct line_sink *lines;
	enum vapro_workload_source source;
	unsigned every, events, resumed; /* every 0: never */
	struct line_totals totals;
	struct outcome outcome;
	uint8_t *last; /* the last checkpoint */
	size_t last_size;
};

static struct pipeline *make(const struct relay *relay)
{
	const char *const named[RULES_NAMED] = {"cache-misses", NULL};
	struct pipeline *pipeline = pipeline__new(&config, relay->source, NULL, relay->lines, NULL);

	assert_non_null(pipeline);
	assert_int_equal(pipeline__name_events(pipeline, named), 0);
	return pipeline;
}

static void take_over(struct relay *relay)
{
	struct pipeline *fresh = make(relay);
	char err[256] = "";
	uint8_t *data, *again;
	size_t size, size_again;

	if (pipeline__save(relay->to, &data, &size, err, sizeof(err)) ||
	    pipeline__load(fresh, data, size, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(pipeline__save(fresh, &again, &size_again, err, sizeof(err)), 0);
	assert_int_equal(size, size_again);
	assert_memory_equal(data, again, size);
	free(again);
	free(relay->last);
	relay->last = data;
	relay->last_size = size;
	pipeline__close(relay->to);
	relay->to = fresh;
	relay->resumed++;
}

static int relay__put(struct stream_sink *sink, const struct stream_event *event)
{
	struct relay *relay = (struct relay *)sink;

	assert_int_equal(stream__put(pipeline__sink(relay->to), event), 0);
	relay->events++;
	if (relay->every && (relay->events % relay->every == 0 || event->type == STREAM_WINDOW))
		take_over(relay);
	return 0;
}

/* The stream with four ranks that goes to the relay. */
static struct streamed stream_to(struct relay *relay)
{
	relay->sink.put = relay__put;
	return (struct streamed){.to = &relay->sink, .ranks = 4, .seconds = SECONDS, .step_ns = 50 * MS};
}

static void run(struct relay *relay, const char *path)
{
	const struct streamed stream = stream_to(relay);

	relay->lines = line_sink__open(path, false);
	assert_non_null(relay->lines);
	relay->to = make(relay);
	streamed__run(&stream);
	pipeline__totals(relay->to, &relay->totals);
	pipeline__outcome(relay->to, &relay->outcome, NULL);
	pipeline__close(relay->to);
	assert_int_equal(line_sink__close(relay->lines), 0);
}

static char *read_all(const char *path, size_t *size)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;

	assert_non_null(file);
	*size = 0;
	assert_true(getdelim(&text, &room, '\0', file) > 0);
	*size = strlen(text);
	fclose(file);
	return text;
}

static void compare(enum vapro_workload_source source, unsigned every)
{
	struct relay one = {.source = source}, several = {.source = source, .every = every};
	char *plain, *resumed;
	size_t size, other;

	run(&one, path_a);
	run(&several, path_b);
	assert_true(several.resumed >= 7);
	plain = read_all(path_a, &size);
	resumed = read_all(path_b, &other);
	written_records__all(plain);
	assert_int_equal(size, other);
	assert_string_equal(plain, resumed);
	assert_memory_equal(&one.totals, &several.totals, sizeof(one.totals));
	assert_memory_equal(&one.outcome, &several.outcome, sizeof(one.outcome));
	/* the stream has something of all that could be forgotten */
	assert_int_equal(one.totals.refused, 1);
	assert_true(one.totals.alarms > 0);
	assert_non_null(strstr(plain, "\"type\":\"cause\""));
	assert_non_null(strstr(plain, "solve (cg.c:12)"));
	assert_non_null(strstr(plain, "\"contains\":[{\"host\":\"n1\",\"id\":5}]"));
	assert_non_null(strstr(plain, "\"comm\":\"hog\""));
	free(several.last);
	free(plain);
	free(resumed);
}

static void test_windows(void **state)
{
	(void)state;
	compare(VAPRO_BY_ARGUMENTS, 1U << 30);
	compare(VAPRO_BY_INSTRUCTIONS, 1U << 30);
}

static void test_any_event(void **state)
{
	(void)state;
	compare(VAPRO_BY_ARGUMENTS, 211);
	compare(VAPRO_BY_INSTRUCTIONS, 307);
}

/* States are split by rules before they come to the analysis. */
static void test_bands(void **state)
{
	(void)state;
	snprintf(config.bands, sizeof(config.bands), "cache-misses/instructions:0.01");
	compare(VAPRO_BY_INSTRUCTIONS, 499);
	config.bands[0] = '\0';
}

/* Any byte may have any value, under a right checksum: most are refused, and none does harm. */
static void test_hostile(void **state)
{
	const size_t head = sizeof("vapro-checkpoint/4 pipeline\n") - 1;
	struct relay whole = {.every = 1U << 30}, relay = {.lines = line_sink__open(path_a, false)};
	const struct streamed stream = stream_to(&relay);
	unsigned refused = 0, accepted = 0;
	uint64_t seed = 3;
	uint8_t *data;
	char err[256];

	(void)state;
	run(&whole, path_b);
	data = malloc(whole.last_size);
	for (unsigned round = 0; round < 400; round++) {
		size_t from = head + 12, at = from + (size_t)(sim_random(&seed) * (double)(whole.last_size - from));
		uint32_t crc;
		int status;

		memcpy(data, whole.last, whole.last_size);
		/* the end has names and causes, the begin threads and states */
		if (round & 1)
			at = whole.last_size - 1 - (size_t)(sim_random(&seed) * 3000);
		data[at] = (uint8_t)(256 * sim_random(&seed));
		crc = htole32((uint32_t)crc32_z(0, data + from, whole.last_size - from));
		memcpy(data + head + 8, &crc, sizeof(crc));
		relay.to = make(&relay);
		status = pipeline__load(relay.to, data, whole.last_size, err, sizeof(err));
		if (!status) {
			for (unsigned i = 0; i < 40; i++)
				streamed__iterate(&stream, SECONDS * S + i * stream.step_ns, i);
			streamed__rarities(&stream, 3);
			/* whatever is in it may be refused later, too */
			(void)stream__put(
			    pipeline__sink(relay.to),
			    &(struct stream_event){.type = STREAM_WINDOW,
						   .window = {.begin_ns = UTC + SECONDS * S, .end_ns = UTC + 72 * S}});
			(void)stream__put(
			    pipeline__sink(relay.to),
			    &(struct stream_event){
				.type = STREAM_WINDOW,
				.window = {.begin_ns = UTC + 72 * S, .end_ns = UTC + 82 * S, .last = true}});
		} else {
			assert_memory_equal(err, "the checkpoint is refused: ", 27);
		}
		refused += status != 0;
		accepted += !status;
		pipeline__close(relay.to);
	}
	assert_true(refused > 50 && accepted > 50);
	line_sink__close(relay.lines);
	free(whole.last);
	free(data);
}

static void test_refused(void **state)
{
	struct relay relay = {.lines = line_sink__open(path_a, false)};
	const struct streamed stream = stream_to(&relay);
	struct summary *summary = summary__new();
	struct pipeline *with_summary = pipeline__new(&config, VAPRO_BY_ARGUMENTS, "n1", relay.lines, summary);
	uint8_t *data, *none;
	size_t size, none_size;
	char err[256];

	(void)state;
	relay.to = make(&relay);
	assert_int_equal(pipeline__save(relay.to, &data, &size, err, sizeof(err)), 0);
	assert_int_equal(pipeline__save(with_summary, &none, &none_size, err, sizeof(err)), -ENOTSUP);
	assert_non_null(strstr(err, "a summary and a narration cannot be part"));
	streamed__announce(&stream);
	assert_int_equal(pipeline__load(relay.to, data, size, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "before the first event only"));
	for (size_t cut = 0; cut < size; cut++) {
		struct pipeline *fresh = make(&relay);

		assert_int_equal(pipeline__load(fresh, data, cut, err, sizeof(err)), -EBADMSG);
		pipeline__close(fresh);
	}
	pipeline__close(relay.to);
	pipeline__close(with_summary);
	summary__free(summary);
	line_sink__close(relay.lines);
	free(data);
}

static int setup(void **state)
{
	(void)state;
	config__init(&config);
	snprintf(path_a, sizeof(path_a), "/tmp/test_checkpoint_a.%d", getpid());
	snprintf(path_b, sizeof(path_b), "/tmp/test_checkpoint_b.%d", getpid());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path_a);
	unlink(path_b);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_windows), cmocka_unit_test(test_any_event), cmocka_unit_test(test_bands),
	    cmocka_unit_test(test_hostile), cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
