/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures of made-up hosts, and their replays; included by the one file that is the test.
 */
#ifndef VAPRO_TESTS_CAPTURED_H
#define VAPRO_TESTS_CAPTURED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "capture/capture.h"
#include "recorder.h"

#define UTC 1800000000000000000ULL /* a bin border */
#define S 1000000000ULL

static char path_a[64], path_b[64], err[512];
static struct recorder seen;

static inline void put(struct stream_sink *sink, struct stream_event event)
{
	assert_int_equal(stream__put(sink, &event), 0);
}

static inline struct stream_event bundle(uint32_t thread, uint32_t state, uint64_t start_ns, uint64_t duration_ns)
{
	struct stream_event event = {.type = STREAM_BUNDLE};

	event.bundle = (struct vapro_bundle){
	    .thread = thread,
	    .state = state,
	    .n = 1,
	    .start_ns = start_ns,
	    .end_ns = start_ns + duration_ns,
	    .sum_ns = duration_ns,
	    .min_ns = duration_ns,
	    .max_ns = duration_ns,
	};
	return event;
}

/* Writes a host's capture: two states, one thread, two windows from begin_s on; mono runs boot_ns behind UTC. */
static inline void write_host(const char *path, const char *host, int32_t rank, uint64_t boot_ns, uint64_t begin_s,
			      bool end)
{
	struct stream_sink *sink = capture__create(path, "{\"threshold\":0.9,\"io\":\"off\"}");
	uint64_t mono = UTC - boot_ns + begin_s * S;
	char hello[256];

	assert_non_null(sink);
	snprintf(
	    hello, sizeof(hello),
	    "{\"schema\":\"vapro/1\",\"type\":\"hello\",\"time\":\"2027-01-15T08:00:00.000000000Z\",\"host\":\"%s\","
	    "\"workload_source\":\"instructions\"}",
	    host);
	put(sink, (struct stream_event){.type = STREAM_LINE, .line = stream__line(hello)});
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {mono, mono + boot_ns}});
	put(sink, (struct stream_event){.type = STREAM_THREAD,
					.thread = {.rank = rank,
						   .world_size = 2,
						   .pid = 100,
						   .tid = 100,
						   .job = "slurm:7",
						   .host = host,
						   .user = 1001}});
	put(sink, (struct stream_event){.type = STREAM_SEEN, .seen = {0, mono, 0}});
	put(sink, (struct stream_event){.type = STREAM_PLACE,
					.place = {.cpu = rank, .socket = rank, .numa = -1, .cgroup = host}});
	put(sink,
	    (struct stream_event){
		.type = STREAM_STATE,
		.state = {.class = VAPRO_COMPUTATION, .from = "a@1+0x1", .to = "a@1+0x2", .labels = "", .common = ""}});
	put(sink,
	    (struct stream_event){.type = STREAM_STATE,
				  .state = {.id = 1,
					    .class = VAPRO_COMMUNICATION,
					    .to = "a@1+0x2",
					    .labels = rank ? "function=MPI_Send peer=0" : "function=MPI_Send peer=1",
					    .common = "function=MPI_Send",
					    .to_symbol = "solve"}});
	for (uint64_t i = 0; i < 25; i++) {
		put(sink, bundle(0, 0, mono + i * S, S / 2));
		put(sink, bundle(0, 1, mono + i * S + S / 2, S / 4));
		if (i == 14 || i == 24) {
			put(sink,
			    (struct stream_event){
				.type = STREAM_FACTS,
				.facts = {.pid = 100, .job = "slurm:7", .user = 1001, .wall_ns = 10 * S, .hits = 50}});
			put(sink, (struct stream_event){.type = STREAM_WINDOW,
							.window = {UTC + (begin_s + (i == 14 ? 0 : 15)) * S,
								   UTC + (begin_s + i + 1) * S, i == 24, 0.5}});
		}
	}
	put(sink, (struct stream_event){.type = STREAM_SEEN, .seen = {0, mono, mono + 25 * S}});
	if (end)
		put(sink, (struct stream_event){.type = STREAM_END});
	assert_int_equal(stream__close(sink), 0);
}

static inline int replay(const char *path)
{
	const char *const paths[] = {path};

	recorder__clear(&seen);
	return capture__replay(paths, 1, &seen.sink, err, sizeof(err));
}

static inline int setup(void **state)
{
	(void)state;
	snprintf(path_a, sizeof(path_a), "/tmp/vapro-test-capture-a-%d", getpid());
	snprintf(path_b, sizeof(path_b), "/tmp/vapro-test-capture-b-%d", getpid());
	recorder__clear(&seen);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	recorder__clear(&seen);
	unlink(path_a);
	unlink(path_b);
	return 0;
}

static inline long file_size(const char *path, char **data)
{
	FILE *file = fopen(path, "rb");
	long size;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	rewind(file);
	*data = malloc((size_t)size);
	assert_int_equal(fread(*data, 1, (size_t)size, file), size);
	fclose(file);
	return size;
}

static inline void write_file(const char *path, const char *data, long size)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, (size_t)size, file), size);
	fclose(file);
}

#endif
