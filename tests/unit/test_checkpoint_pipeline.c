/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A new pipeline takes over from a checkpoint after any event of a stream with all kinds of events: the output is that
 * of one pipeline, byte for byte, and so are totals and outcome.
 */
#include <errno.h>
#include <math.h>
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
#include "report/pipeline.h"
#include "report/summary.h"
#include "sim.h"

#define S 1000000000ULL
#define MS 1000000ULL
#define UTC 1800000000000000000ULL /* a bin border */
#define MONO (1000 * S)
#define RANKS 4 /* of the first job; the second job has one */
#define SECONDS 62

static struct vapro_config config;
static char path_a[64], path_b[64];

/* Passes events on; a new pipeline takes over after each `every`-th event, and after windows. */
struct relay {
	struct stream_sink *to;
	struct line_sink *lines;
	enum vapro_workload_source source;
	unsigned every, events, resumed; /* every 0: never */
	struct line_totals totals;
	struct outcome outcome;
	uint8_t *last; /* the last checkpoint */
	size_t last_size;
};

static struct stream_sink *make(const struct relay *relay)
{
	const char *const named[RULES_NAMED] = {"cache-misses", NULL};
	struct stream_sink *pipeline = pipeline__new(&config, relay->source, NULL, relay->lines, NULL);

	assert_non_null(pipeline);
	assert_int_equal(pipeline__name_events(pipeline, named), 0);
	return pipeline;
}

static void take_over(struct relay *relay)
{
	struct stream_sink *fresh = make(relay);
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
	stream__close(relay->to);
	relay->to = fresh;
	relay->resumed++;
}

static void put(struct relay *relay, struct stream_event event)
{
	assert_int_equal(stream__put(relay->to, &event), 0);
	relay->events++;
	if (relay->every && (relay->events % relay->every == 0 || event.type == STREAM_WINDOW))
		take_over(relay);
}

static void put_bundle(struct relay *relay, uint32_t thread, uint32_t state, uint64_t start_ns, uint64_t ns,
		       uint64_t preempted_ns)
{
	struct vapro_bundle bundle = {
	    .thread = thread,
	    .state = state,
	    .n = 1,
	    .start_ns = start_ns,
	    .end_ns = start_ns + ns,
	    .sum_ns = ns,
	    .min_ns = ns,
	    .max_ns = ns,
	};

	bundle.factor[VAPRO_PREEMPTED] = (double)preempted_ns;
	if (!state) {
		double more = start_ns / MS % 3 ? 1 : 40;

		bundle.magnitude_min[VAPRO_INSTRUCTIONS] = bundle.magnitude_max[VAPRO_INSTRUCTIONS] = 1e7;
		bundle.magnitude_min[VAPRO_NAMED] = bundle.magnitude_max[VAPRO_NAMED] = more * 1e4;
	}
	put(relay, (struct stream_event){.type = STREAM_BUNDLE, .bundle = bundle});
}

static void announce(struct relay *relay)
{
	put(relay, (struct stream_event){.type = STREAM_LINE, .line = "{\"a line\":\"as it is\"}"});
	put(relay, (struct stream_event){.type = STREAM_CLOCK, .clock = {MONO, UTC}});
	for (uint32_t i = 0; i <= RANKS; i++) {
		put(relay, (struct stream_event){.type = STREAM_THREAD,
						 .thread = {.id = i,
							    .rank = i < RANKS ? (int32_t)i : 0,
							    .world_size = i < RANKS ? RANKS : 1,
							    .pid = 100 + i,
							    .tid = 100 + i,
							    .job = i < RANKS ? "slurm:7" : "other",
							    .host = i < 2 ? "n1" : "n2",
							    .user = 1001}});
		put(relay, (struct stream_event){.type = STREAM_SEEN, .seen = {i, MONO, 0}});
		put(relay, (struct stream_event){.type = STREAM_PLACE,
						 .place = {.thread = i,
							   .cpu = (int32_t)i,
							   .socket = i >= 2,
							   .numa = -1,
							   .cpu_model = "a CPU",
							   .cgroup = "/job"}});
	}
	put(relay,
	    (struct stream_event){
		.type = STREAM_STATE,
		.state = {
		    .id = 0, .class = VAPRO_COMPUTATION, .from = "a@1+0x1 < w@1+0x9", .to = "a@1+0x2", .labels = ""}});
	put(relay, (struct stream_event){.type = STREAM_STATE,
					 .state = {.id = 1,
						   .class = VAPRO_COMMUNICATION,
						   .to = "a@1+0x2",
						   .labels = "bytes=8 function=MPI_Allreduce",
						   .common = "bytes=8 function=MPI_Allreduce",
						   .to_symbol = "main+0x2"}});
}

/* Names, stages, hops and the end of a process come in the middle of windows. */
static void put_rarities(struct relay *relay, uint64_t second)
{
	const uint64_t now = MONO + second * S;

	if (second == 3)
		put(relay, (struct stream_event){.type = STREAM_NAME, .name = {"a@1+0x2", 0, "solve", 0, "cg.c", 12}});
	if (second == 4)
		put(relay, (struct stream_event){.type = STREAM_NAME, .name = {"a@1+0x2", 1, "main", 0, "cg.c", 90}});
	if (second == 25)
		put(relay, (struct stream_event){
			       .type = STREAM_LINE,
			       .line = "{\"type\":\"variance\",\"scope\":\"node\",\"host\":\"n1\",\"job\":\"slurm:7\","
				       "\"uid\":1000,\"class\":\"computation\",\"id\":5,"
				       "\"begin\":\"2027-01-15T08:00:22.000000000Z\","
				       "\"end\":\"2027-01-15T08:00:25.000000000Z\",\"ranks\":\"1\"}"});
	if (second == 14)
		put(relay, (struct stream_event){.type = STREAM_HOP,
						 .hop = {now, now, VAPRO_HOP_UP, "a@1+0x1", "main+0x1", NULL}});
	if (second == 27)
		put(relay, (struct stream_event){.type = STREAM_STAGE,
						 .stage = {.begin_ns = now,
							   .end_ns = now,
							   .stage = 2,
							   .expand = "backend",
							   .job = "slurm:7",
							   .variance = 1,
							   .refused = "no counters"}});
	if (second == 36)
		put(relay, (struct stream_event){.type = STREAM_SEEN, .seen = {RANKS, MONO, now}});
	if (second == 40)
		put(relay, (struct stream_event){.type = STREAM_CLOCK, .clock = {now, UTC + 40 * S + 3 * MS}});
	if (second == 41) /* a thread that was not announced is refused, and counted */
		put_bundle(relay, 77, 0, now, MS, 0);
}

/* From 44 to 52 s rank 3 is in one computation, and is preempted most of the time: only its account shows so. */
static bool is_long(uint64_t at_ns, uint32_t rank)
{
	return rank == 3 && at_ns >= 44 * S && at_ns < 52 * S;
}

static void put_long(struct relay *relay, uint64_t at_ns)
{
	if (at_ns % VAPRO_BIN_NS == 0)
		put(relay, (struct stream_event){.type = STREAM_ACCOUNT,
						 .account = {.thread = 3,
							     .bin = (UTC + at_ns) / VAPRO_BIN_NS,
							     .on_cpu_ns = 40 * MS,
							     .preempted_ns = 120 * MS,
							     .throttled_ns = 20 * MS,
							     .wakeup_wait_ns = 10 * MS,
							     .stopped_ns = 2 * MS,
							     .steal_ns = 3 * MS,
							     .blocked_io_ns = 1 * MS,
							     .blocked_other_ns = 4 * MS}});
	if (at_ns == 52 * S - 50 * MS)
		put_bundle(relay, 3, 0, MONO + 44 * S, 8 * S, 5 * S);
}

/* One iteration of 50 ms: all compute and wait for the slowest. Rank 1 is preempted from 22 to 34 s. */
static void iterate(struct relay *relay, uint64_t at_ns, uint64_t number)
{
	const bool hog = at_ns >= 22 * S && at_ns < 34 * S;

	for (uint32_t i = 0; i <= RANKS; i++) {
		uint64_t work = 24 * MS + (number * 7919 + i * 104729) % 400000, stolen = hog && i == 1 ? 21 * MS : 0;
		uint64_t end = work + stolen;

		if (i == RANKS && at_ns >= 36 * S)
			continue;
		if (is_long(at_ns, i)) {
			put_long(relay, at_ns);
			continue;
		}
		put_bundle(relay, i, 0, MONO + at_ns, end, stolen);
		put_bundle(relay, i, 1, MONO + at_ns + end, 48 * MS - end, 0);
		if (!stolen)
			continue;
		put(relay, (struct stream_event){.type = STREAM_INTERFERENCE,
						 .interference = {.thread = i,
								  .pid = 4711,
								  .bin = (UTC + at_ns) / VAPRO_BIN_NS,
								  .preempted_ns = stolen,
								  .comm = "hog"}});
		put(relay, (struct stream_event){.type = STREAM_ACCOUNT,
						 .account = {.thread = i,
							     .bin = (UTC + at_ns) / VAPRO_BIN_NS,
							     .on_cpu_ns = work,
							     .preempted_ns = stolen}});
	}
}

static void end_window(struct relay *relay, uint64_t begin_s, uint64_t end_s)
{
	if (end_s == 50)
		put(relay, (struct stream_event){.type = STREAM_BUNDLE,
						 .bundle = {.thread = 3,
							    .n = 1,
							    .flags = VAPRO_BUNDLE_OPEN,
							    .start_ns = MONO + 44 * S,
							    .end_ns = MONO + 50 * S,
							    .sum_ns = 6 * S,
							    .min_ns = 6 * S,
							    .max_ns = 6 * S}});
	for (uint32_t i = 0; i <= RANKS; i++)
		put(relay, (struct stream_event){.type = STREAM_FACTS,
						 .facts = {.pid = 100 + i,
							   .job = i < RANKS ? "slurm:7" : "other",
							   .user = 1001,
							   .wall_ns = (end_s - begin_s) * S,
							   .governed_ns = i * 100 * MS,
							   .thinned_ns = i * 10 * MS,
							   .thinned = i,
							   .cost_ns = (30 + i) * MS,
							   .lost = {[VAPRO_LOST_RING_FULL] = i}}});
	put(relay, (struct stream_event){.type = STREAM_WINDOW,
					 .window = {.begin_ns = UTC + begin_s * S,
						    .end_ns = UTC + end_s * S,
						    .last = end_s == SECONDS,
						    .daemon_cpu_pct = 0.5,
						    .io_traced_pct = NAN,
						    .io_tax_pct = NAN}});
}

static void run(struct relay *relay, const char *path)
{
	uint64_t begin = 0;

	relay->lines = line_sink__open(path, false);
	assert_non_null(relay->lines);
	relay->to = make(relay);
	announce(relay);
	for (uint64_t number = 0; number < SECONDS * 20; number++) {
		iterate(relay, number * 50 * MS, number);
		if (number % 20 != 19)
			continue;
		put_rarities(relay, number / 20);
		if ((number / 20 + 1) % 10 == 0 || number / 20 + 1 == SECONDS) {
			end_window(relay, begin, number / 20 + 1);
			begin = number / 20 + 1;
		}
	}
	pipeline__totals(relay->to, &relay->totals);
	pipeline__outcome(relay->to, &relay->outcome, NULL);
	stream__close(relay->to);
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
	const size_t head = sizeof("vapro-checkpoint/1 pipeline\n") - 1;
	struct relay whole = {.every = 1U << 30}, relay = {.lines = line_sink__open(path_a, false)};
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
				iterate(&relay, SECONDS * S + i * 50 * MS, i);
			put_rarities(&relay, 3);
			/* whatever is in it may be refused later, too */
			(void)stream__put(relay.to, &(struct stream_event){.type = STREAM_WINDOW,
									   .window = {.begin_ns = UTC + SECONDS * S,
										      .end_ns = UTC + 72 * S}});
			(void)stream__put(
			    relay.to, &(struct stream_event){
					  .type = STREAM_WINDOW,
					  .window = {.begin_ns = UTC + 72 * S, .end_ns = UTC + 82 * S, .last = true}});
		} else {
			assert_memory_equal(err, "the checkpoint is refused: ", 27);
		}
		refused += status != 0;
		accepted += !status;
		stream__close(relay.to);
	}
	assert_true(refused > 50 && accepted > 50);
	line_sink__close(relay.lines);
	free(whole.last);
	free(data);
}

static void test_refused(void **state)
{
	struct relay relay = {.lines = line_sink__open(path_a, false)};
	struct summary *summary = summary__new();
	struct stream_sink *with_summary = pipeline__new(&config, VAPRO_BY_ARGUMENTS, "n1", relay.lines, summary);
	uint8_t *data, *none;
	size_t size, none_size;
	char err[256];

	(void)state;
	relay.to = make(&relay);
	assert_int_equal(pipeline__save(relay.to, &data, &size, err, sizeof(err)), 0);
	assert_int_equal(pipeline__save(with_summary, &none, &none_size, err, sizeof(err)), -ENOTSUP);
	assert_non_null(strstr(err, "a summary and a narration cannot be part"));
	announce(&relay);
	assert_int_equal(pipeline__load(relay.to, data, size, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "before the first event only"));
	for (size_t cut = 0; cut < size; cut++) {
		struct stream_sink *fresh = make(&relay);

		assert_int_equal(pipeline__load(fresh, data, cut, err, sizeof(err)), -EBADMSG);
		stream__close(fresh);
	}
	stream__close(relay.to);
	stream__close(with_summary);
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
