/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures: replays give the recorded events, hosts merge into one job. */
#include <zlib.h>

#include "captured.h"
#include "capture/crc.h"

static void same_text(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a)
		assert_string_equal(a, b);
}

/* Tests every member of every event, with values that no two members share. */
static void test_exact(void **state)
{
	struct stream_event events[30] = {0};
	struct stream_sink *sink = capture__create(path_a, "{}");
	struct vapro_bundle *full = &events[6].bundle;
	size_t count = 0;

	(void)state;
	assert_non_null(sink);
	events[count++] =
	    (struct stream_event){.type = STREAM_LINE, .line = stream__line("{\"a\":\"\\u00fc \xc3\xbc\"}")};
	events[count++] = (struct stream_event){.type = STREAM_CLOCK, .clock = {UINT64_MAX, 1}};
	events[count++] = (struct stream_event){
	    .type = STREAM_THREAD, .thread = {0, -1, 5, UINT32_MAX, 77, 78, "job 1", "node-1", UINT32_MAX}};
	events[count++] =
	    (struct stream_event){.type = STREAM_THREAD, .thread = {1, INT32_MAX, INT32_MIN, 1, 0, 0, "", "", 0}};
	events[count++] = (struct stream_event){.type = STREAM_STATE,
						.state = {0, VAPRO_IO, NULL, "to", "labels", "", NULL, "symbol"}};
	events[count++] = (struct stream_event){.type = STREAM_STATE,
						.state = {1, VAPRO_COMPUTATION, "from", "to", "", "c", "x", NULL}};
	events[count++].type = STREAM_BUNDLE;
	*full =
	    (struct vapro_bundle){1, 1, 9, 7, 1ULL << 62, UINT64_MAX, 1234567, 89, 1ULL << 40, 5, 127, {0}, {0}, {0}};
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		full->magnitude_min[i] = 1.5 * (i + 1);
		full->magnitude_max[i] = 1e300 / (i + 1);
	}
	for (int i = 0; i < VAPRO_FACTORS; i++)
		full->factor[i] = (i + 1) * 0.1;
	events[count++] = bundle(0, 0, 0, 0);
	events[count++] =
	    (struct stream_event){.type = STREAM_INTERFERENCE,
				  .interference = {1, 4242, 1ULL << 50, 5, 6, "sixteen--letters", 7, 1, 8, UINT32_MAX}};
	/* rows of one record: what is as before, what is 0 again, another name */
	events[count++] =
	    (struct stream_event){.type = STREAM_INTERFERENCE,
				  .interference = {0, 4242, 1ULL << 50, 5, 0, "sixteen--letters", 7, 0, 8, UINT32_MAX}};
	events[count++] = (struct stream_event){.type = STREAM_INTERFERENCE, .interference = {.comm = "a"}};
	events[count++] = (struct stream_event){.type = STREAM_INTERFERENCE, .interference = {.comm = "a"}};
	events[count++] = (struct stream_event){.type = STREAM_FACTS,
						.facts = {5,
							  "job",
							  1,
							  2,
							  3,
							  4,
							  5,
							  6,
							  {10, 11, 12, 13, 14, 15, 16, 17, 18},
							  1001,
							  "libmpi.so.40",
							  "Isend,Irecv",
							  "Irecv"}};
	events[count++] =
	    (struct stream_event){.type = STREAM_ACCOUNT, .account = {1, 1ULL << 40, 2, 3, 4, 5, 6, 7, 8, UINT64_MAX}};
	events[count++] = (struct stream_event){.type = STREAM_ACCOUNT, .account = {0, 1ULL << 40, 3, 3}};
	events[count++] = (struct stream_event){.type = STREAM_SEEN, .seen = {1, 2, 3}};
	events[count++] = (struct stream_event){
	    .type = STREAM_PLACE, .place = {1, -1, 0, 7, "cpu_atom", "AMD EPYC 7742", NULL, "max 1000", "/c"}};
	events[count++] =
	    (struct stream_event){.type = STREAM_STAGE, .stage = {5, 6, 2, "backend", "j", 7, "a,b", NULL}};
	events[count++] =
	    (struct stream_event){.type = STREAM_STAGE, .stage = {8, 9, 3, "memory", "j", 1ULL << 60, NULL, "no"}};
	events[count++] = (struct stream_event){.type = STREAM_HOP, .hop = {3, 4, 1, "a@0+0x1", "f+0x2", NULL}};
	events[count++] = (struct stream_event){.type = STREAM_HOP, .hop = {5, 5, 4, "b@0+0x1", NULL, "is none"}};
	events[count++] =
	    (struct stream_event){.type = STREAM_NAME, .name = {"b@0+0x1", 0, "f(int)", 0, "/s/f.cpp", 7}};
	events[count++] = (struct stream_event){.type = STREAM_NAME, .name = {"b@0+0x2", 1, NULL, 0x1c, NULL, 0}};
	events[count++] = (struct stream_event){.type = STREAM_INSIDE, .inside = {1, 0, "b@0+0x3", 1ULL << 40}};
	events[count++] = (struct stream_event){.type = STREAM_INSIDE, .inside = {0, 1, NULL, 2}};
	events[count++] = (struct stream_event){.type = STREAM_HOST_CLOCK, .host_clock = {"n1", true, 1ULL << 40}};
	events[count++] = (struct stream_event){.type = STREAM_GONE, .gone = {1}};
	events[count++] =
	    (struct stream_event){.type = STREAM_WINDOW, .window = {UTC, UTC + 1, true, 0.123456789, 0.5, 0.25}};
	events[count++] = (struct stream_event){.type = STREAM_END};
	for (size_t i = 0; i < count; i++)
		put(sink, events[i]);
	assert_int_equal(stream__close(sink), 0);

	assert_int_equal(replay(path_a), 0);
	assert_int_equal(seen.count, count);
	for (size_t i = 0; i < count; i++) {
		const struct stream_event *a = &events[i], *b = &seen.events[i];

		assert_int_equal(a->type, b->type);
		switch (a->type) {
		case STREAM_LINE:
			assert_string_equal(a->line.text, b->line.text);
			assert_int_equal(a->line.type, b->line.type);
			break;
		case STREAM_THREAD:
			assert_memory_equal(&a->thread, &b->thread, offsetof(struct vapro_thread, job));
			assert_string_equal(a->thread.job, b->thread.job);
			assert_int_equal(a->thread.user, b->thread.user);
			assert_string_equal(a->thread.host, b->thread.host);
			break;
		case STREAM_STATE:
			assert_int_equal(a->state.id, b->state.id);
			assert_int_equal(a->state.class, b->state.class);
			same_text(a->state.from, b->state.from);
			same_text(a->state.to, b->state.to);
			same_text(a->state.labels, b->state.labels);
			same_text(a->state.common, b->state.common);
			same_text(a->state.from_symbol, b->state.from_symbol);
			same_text(a->state.to_symbol, b->state.to_symbol);
			same_text(a->state.from_path, b->state.from_path);
			same_text(a->state.to_path, b->state.to_path);
			break;
		case STREAM_BUNDLE:
			assert_memory_equal(&a->bundle, &b->bundle, sizeof(a->bundle));
			break;
		case STREAM_INTERFERENCE:
			assert_memory_equal(&a->interference, &b->interference, sizeof(a->interference));
			break;
		case STREAM_ACCOUNT:
			assert_memory_equal(&a->account, &b->account, sizeof(a->account));
			break;
		case STREAM_FACTS:
			assert_string_equal(a->facts.job, b->facts.job);
			assert_int_equal(a->facts.pid, b->facts.pid);
			assert_memory_equal(&a->facts.wall_ns, &b->facts.wall_ns,
					    offsetof(struct vapro_process_facts, image) -
						offsetof(struct vapro_process_facts, wall_ns));
			same_text(a->facts.image, b->facts.image);
			same_text(a->facts.without, b->facts.without);
			same_text(a->facts.without_own, b->facts.without_own);
			break;
		case STREAM_WINDOW:
			assert_int_equal(a->window.begin_ns, b->window.begin_ns);
			assert_int_equal(a->window.end_ns, b->window.end_ns);
			assert_true(a->window.last == b->window.last);
			assert_true(a->window.daemon_cpu_pct == b->window.daemon_cpu_pct);
			assert_true(a->window.io_traced_pct == b->window.io_traced_pct);
			assert_true(a->window.io_tax_pct == b->window.io_tax_pct);
			assert_true(a->window.bystander_hits == b->window.bystander_hits);
			break;
		case STREAM_CLOCK:
			assert_memory_equal(&a->clock, &b->clock, sizeof(a->clock));
			break;
		case STREAM_PLACE:
			assert_memory_equal(&a->place, &b->place, offsetof(struct vapro_place, core_type));
			same_text(a->place.core_type, b->place.core_type);
			same_text(a->place.cpu_model, b->place.cpu_model);
			same_text(a->place.cgroup, b->place.cgroup);
			same_text(a->place.limit, b->place.limit);
			same_text(a->place.limit_cgroup, b->place.limit_cgroup);
			same_text(a->place.cpus, b->place.cpus);
			break;
		case STREAM_STAGE:
			assert_memory_equal(&a->stage, &b->stage, offsetof(struct stream_stage, expand));
			assert_int_equal(a->stage.variance, b->stage.variance);
			same_text(a->stage.expand, b->stage.expand);
			same_text(a->stage.job, b->stage.job);
			same_text(a->stage.events, b->stage.events);
			same_text(a->stage.refused, b->stage.refused);
			break;
		case STREAM_NAME:
			same_text(a->name.site, b->name.site);
			same_text(a->name.function, b->name.function);
			same_text(a->name.file, b->name.file);
			assert_int_equal(a->name.depth, b->name.depth);
			assert_int_equal(a->name.offset, b->name.offset);
			assert_int_equal(a->name.line, b->name.line);
			break;
		case STREAM_GONE:
			assert_int_equal(a->gone.state, b->gone.state);
			break;
		case STREAM_HOST_CLOCK:
			same_text(a->host_clock.host, b->host_clock.host);
			assert_true(a->host_clock.synchronised == b->host_clock.synchronised);
			assert_int_equal(a->host_clock.error_ns, b->host_clock.error_ns);
			break;
		case STREAM_INSIDE:
			assert_int_equal(a->inside.thread, b->inside.thread);
			assert_int_equal(a->inside.state, b->inside.state);
			same_text(a->inside.site, b->inside.site);
			assert_int_equal(a->inside.samples, b->inside.samples);
			break;
		case STREAM_HOP:
			assert_memory_equal(&a->hop, &b->hop, offsetof(struct stream_hop, site));
			same_text(a->hop.site, b->hop.site);
			same_text(a->hop.symbol, b->hop.symbol);
			same_text(a->hop.reason, b->hop.reason);
			break;
		case STREAM_SEEN:
			assert_memory_equal(&a->seen, &b->seen, sizeof(a->seen));
			break;
		case STREAM_END:
			break;
		}
	}
}

static void test_info(void **state)
{
	struct capture_info info;

	(void)state;
	write_host(path_a, "n1", 0, 1000, 0, true);
	assert_int_equal(capture__info(path_a, &info, err, sizeof(err)), 0);
	assert_string_equal(info.host, "n1");
	assert_true(info.by_instructions);
	assert_true(info.config.threshold == 0.9);
	assert_int_equal(info.config.io, VAPRO_OFF);
	assert_int_equal(info.config.min_cells, 2);
}

static void test_compact(void **state)
{
	char *data;
	long size;

	(void)state;
	write_host(path_a, "n1", 0, 1000, 0, true);
	size = file_size(path_a, &data);
	size -= (char *)memchr(data, '\n', (size_t)size) - data;
	assert_true(size / 50 < 100); /* bytes per bundle, all included */
	free(data);
}

static void check_merged(size_t bundles)
{
	uint64_t end_ns = 0, last = 0;
	size_t windows = 0, found = 0;

	for (size_t i = 0; i < seen.count; i++) {
		const struct stream_event *event = &seen.events[i];

		if (event->type == STREAM_BUNDLE) {
			assert_true(event->bundle.end_ns >= end_ns); /* no bundle comes after its window */
			assert_true(event->bundle.thread < 2 && event->bundle.state < 3);
			found++;
		}
		if (event->type != STREAM_WINDOW)
			continue;
		assert_false(last);
		assert_true(!windows++ || event->window.begin_ns == end_ns);
		end_ns = event->window.end_ns;
		last = event->window.last;
	}
	assert_true(last);
	assert_int_equal(found, bundles);
	assert_int_equal(recorder__count(&seen, STREAM_THREAD), 2);
	assert_int_equal(recorder__count(&seen, STREAM_STATE), 3); /* the computation is one state */
	assert_int_equal(recorder__find(&seen, STREAM_THREAD, 1)->thread.id, 1);
	assert_int_equal(recorder__find(&seen, STREAM_STATE, 2)->state.id, 2);
}

static void test_merge(void **state)
{
	static const uint64_t begin_s[] = {0, 3, 10, 40};
	const char *const paths[] = {path_a, path_b};

	(void)state;
	for (size_t i = 0; i < sizeof(begin_s) / sizeof(begin_s[0]); i++) {
		write_host(path_a, "n1", 0, 1000 * S, 0, true);
		write_host(path_b, "n2", 1, 500000 * S, begin_s[i], true);
		recorder__clear(&seen);
		assert_int_equal(capture__replay(paths, 2, &seen.sink, err, sizeof(err)), 0);
		check_merged(100);
		assert_int_equal(recorder__find(&seen, STREAM_WINDOW, 0)->window.begin_ns, UTC);
		assert_int_equal(recorder__find(&seen, STREAM_WINDOW, 0)->window.end_ns, UTC + 15 * S);
		assert_int_equal(recorder__count(&seen, STREAM_END), 1);
		assert_int_equal(recorder__count(&seen, STREAM_FACTS), 4);
		assert_int_equal(recorder__count(&seen, STREAM_PLACE), 2);
		for (size_t k = 0; k < 2; k++) {
			const struct vapro_place *place = &recorder__find(&seen, STREAM_PLACE, k)->place;
			const struct vapro_thread *thread =
			    &recorder__find(&seen, STREAM_THREAD, place->thread)->thread;

			assert_int_equal(place->socket, thread->rank);
			assert_string_equal(place->cgroup, thread->host);
			assert_int_equal(thread->user, 1001);
			assert_int_equal(recorder__find(&seen, STREAM_FACTS, k)->facts.user, 1001);
		}
		if (!begin_s[i])
			assert_int_equal(recorder__count(&seen, STREAM_WINDOW), 2);
	}
}

static void test_merge_cut(void **state)
{
	const char *const paths[] = {path_a, path_b};
	char *data;
	long size;

	(void)state;
	write_host(path_a, "n1", 0, 1000 * S, 0, true);
	write_host(path_b, "n2", 1, 500000 * S, 0, true);
	size = file_size(path_b, &data);
	write_file(path_b, data, size - 600); /* cut some bundles before the last window */
	recorder__clear(&seen);
	assert_int_equal(capture__replay(paths, 2, &seen.sink, err, sizeof(err)), 1);
	assert_non_null(strstr(err, path_b));
	assert_true(recorder__count(&seen, STREAM_BUNDLE) > 80);
	check_merged(recorder__count(&seen, STREAM_BUNDLE));
	free(data);
}

/* What threads lose to tasks in one bin takes few bytes: the task and the bin are written once. */
static void test_rows_share_records(void **state)
{
	struct stream_sink *sink = capture__create(path_a, "{}");
	const uint32_t tasks = 20, threads = 50;
	long begin, size;
	char *data;

	(void)state;
	assert_non_null(sink);
	for (uint32_t i = 0; i < threads; i++)
		put(sink, (struct stream_event){.type = STREAM_THREAD, .thread = {.id = i, .job = "j", .host = "h"}});
	put(sink, (struct stream_event){.type = STREAM_WINDOW});
	begin = file_size(path_a, &data);
	free(data);
	for (uint32_t task = 0; task < tasks; task++) {
		for (uint32_t thread = 0; thread < threads; thread++) {
			struct stream_event event = {.type = STREAM_INTERFERENCE};

			event.interference = (struct vapro_interference){.thread = thread,
									 .pid = 4000000 + task,
									 .process = 4000000 + task,
									 .bin = 8900000000ULL,
									 .preempted_ns = 1000000 + 1000 * thread,
									 .slices = 1 + thread % 7,
									 .longest_us = 1000 + thread};
			snprintf(event.interference.comm, sizeof(event.interference.comm), "compiler%u", task);
			put(sink, event);
		}
	}
	put(sink, (struct stream_event){.type = STREAM_END});
	assert_int_equal(stream__close(sink), 0);
	size = file_size(path_a, &data);
	free(data);
	assert_true(size - begin < 10L * tasks * threads);
	assert_int_equal(replay(path_a), 0);
	assert_int_equal(seen.count, threads + 1 + tasks * threads + 1);
	assert_int_equal(seen.events[threads + 1 + 7 * threads + 3].interference.pid, 4000007);
	assert_int_equal(seen.events[threads + 1 + 7 * threads + 3].interference.thread, 3);
}

/* Numbers of every length, at both ends of the length's range. */
static void test_numbers(void **state)
{
	struct stream_sink *sink = capture__create(path_a, NULL);

	(void)state;
	assert_non_null(sink);
	for (int bit = 0; bit < 64; bit++)
		put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {1ULL << bit, (1ULL << bit) - 1}});
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {UINT64_MAX, 0x0123456789abcdefULL}});
	put(sink, (struct stream_event){.type = STREAM_END});
	assert_int_equal(stream__close(sink), 0);
	assert_int_equal(replay(path_a), 0);
	for (int bit = 0; bit < 64; bit++) {
		assert_true(seen.events[bit].clock.mono_ns == 1ULL << bit);
		assert_true(seen.events[bit].clock.utc_ns == (1ULL << bit) - 1);
	}
	assert_true(seen.events[64].clock.mono_ns == UINT64_MAX);
	assert_true(seen.events[64].clock.utc_ns == 0x0123456789abcdefULL);
}

/* The head promises zlib's checksum. */
static void test_crc(void **state)
{
	uint8_t data[300];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * i * 7 + i / 3);
	for (size_t from = 0; from < 9; from++) {
		for (size_t size = 0; from + size <= sizeof(data); size++)
			assert_int_equal(crc__of(data + from, size), crc32(0, data + from, (uInt)size));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_crc),	      cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_exact),     cmocka_unit_test(test_info),
	    cmocka_unit_test(test_compact),   cmocka_unit_test(test_merge),
	    cmocka_unit_test(test_merge_cut), cmocka_unit_test(test_rows_share_records),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
