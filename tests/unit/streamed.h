/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stream with all kinds of events: two jobs on two nodes, a hog on the CPU of rank 1 from 22 to 34 s, and what comes
 * in the middle of windows. An iteration of all ranks takes a step, which divides a second.
 */
#ifndef VAPRO_TESTS_STREAMED_H
#define VAPRO_TESTS_STREAMED_H

#include <math.h>

#include <vapro/analysis.h>

#include "capture/stream.h"

#define S 1000000000ULL
#define MS 1000000ULL
#define UTC 1800000000000000000ULL /* a bin border */
#define MONO (1000 * S)

struct streamed {
	struct stream_sink *to;
	uint32_t ranks; /* of the first job; the second job has one */
	unsigned seconds;
	uint64_t step_ns;
};

static inline void streamed__put(const struct streamed *stream, struct stream_event event)
{
	(void)stream__put(stream->to, &event);
}

static inline void streamed__bundle(const struct streamed *stream, uint32_t thread, uint32_t state, uint64_t start_ns,
				    uint64_t ns, uint64_t preempted_ns)
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
	streamed__put(stream, (struct stream_event){.type = STREAM_BUNDLE, .bundle = bundle});
}

static inline void streamed__announce(const struct streamed *stream)
{
	streamed__put(stream,
		      (struct stream_event){.type = STREAM_LINE, .line = stream__line("{\"a line\":\"as it is\"}")});
	streamed__put(stream, (struct stream_event){.type = STREAM_CLOCK, .clock = {MONO, UTC}});
	for (uint32_t i = 0; i <= stream->ranks; i++) {
		streamed__put(stream,
			      (struct stream_event){.type = STREAM_THREAD,
						    .thread = {.id = i,
							       .rank = i < stream->ranks ? (int32_t)i : 0,
							       .world_size = i < stream->ranks ? stream->ranks : 1,
							       .pid = 100 + i,
							       .tid = 100 + i,
							       .job = i < stream->ranks ? "slurm:7" : "other",
							       .host = i < 2 ? "n1" : "n2",
							       .user = 1001}});
		streamed__put(stream, (struct stream_event){.type = STREAM_SEEN, .seen = {i, MONO, 0}});
		streamed__put(stream, (struct stream_event){.type = STREAM_PLACE,
							    .place = {.thread = i,
								      .cpu = (int32_t)i,
								      .socket = i >= 2,
								      .numa = -1,
								      .cpu_model = "a CPU",
								      .cgroup = "/job"}});
	}
	streamed__put(
	    stream,
	    (struct stream_event){
		.type = STREAM_STATE,
		.state = {
		    .id = 0, .class = VAPRO_COMPUTATION, .from = "a@1+0x1 < w@1+0x9", .to = "a@1+0x2", .labels = ""}});
	streamed__put(stream, (struct stream_event){.type = STREAM_STATE,
						    .state = {.id = 1,
							      .class = VAPRO_COMMUNICATION,
							      .to = "a@1+0x2",
							      .labels = "bytes=8 function=MPI_Allreduce",
							      .common = "bytes=8 function=MPI_Allreduce",
							      .to_symbol = "main+0x2"}});
}

/* Names, clocks, stages, hops and the end of a process come in the middle of windows. */
static inline void streamed__rarities(const struct streamed *stream, uint64_t second)
{
	const uint64_t now = MONO + second * S;

	if (second == 1 || second == 36)
		streamed__put(stream, (struct stream_event){.type = STREAM_HOST_CLOCK,
							    .host_clock = {second == 1 ? "n2" : "n1", true, 7 * MS}});
	if (second == 3)
		streamed__put(
		    stream, (struct stream_event){.type = STREAM_NAME, .name = {"a@1+0x2", 0, "solve", 0, "cg.c", 12}});
	if (second == 4)
		streamed__put(
		    stream, (struct stream_event){.type = STREAM_NAME, .name = {"a@1+0x2", 1, "main", 0, "cg.c", 90}});
	if (second == 25)
		streamed__put(
		    stream, (struct stream_event){
				.type = STREAM_LINE,
				.line = stream__line(
				    "{\"schema\":\"vapro/"
				    "1\",\"type\":\"variance\",\"scope\":\"node\",\"host\":\"n1\",\"job\":\"slurm:7\","
				    "\"uid\":1000,\"class\":\"computation\",\"id\":5,"
				    "\"begin\":\"2027-01-15T08:00:22.000000000Z\","
				    "\"end\":\"2027-01-15T08:00:25.000000000Z\",\"ranks\":\"1\"}")});
	if (second == 14)
		streamed__put(stream,
			      (struct stream_event){.type = STREAM_HOP,
						    .hop = {now, now, VAPRO_HOP_UP, "a@1+0x1", "main+0x1", NULL}});
	if (second == 27)
		streamed__put(stream, (struct stream_event){.type = STREAM_STAGE,
							    .stage = {.begin_ns = now,
								      .end_ns = now,
								      .stage = 2,
								      .expand = "backend",
								      .job = "slurm:7",
								      .variance = 1,
								      .refused = "no counters"}});
	if (second == 36)
		streamed__put(stream, (struct stream_event){.type = STREAM_SEEN, .seen = {stream->ranks, MONO, now}});
	if (second == 40)
		streamed__put(stream,
			      (struct stream_event){.type = STREAM_CLOCK, .clock = {now, UTC + 40 * S + 3 * MS}});
	if (second == 41) /* a thread that was not announced is refused, and counted */
		streamed__bundle(stream, 77, 0, now, MS, 0);
}

/* From 44 to 52 s rank 3 is in one computation, and is preempted most of the time: only its account shows so. */
static inline bool streamed__is_long(uint64_t at_ns, uint32_t rank)
{
	return rank == 3 && at_ns >= 44 * S && at_ns < 52 * S;
}

static inline void streamed__long(const struct streamed *stream, uint64_t at_ns)
{
	if (at_ns % VAPRO_BIN_NS == 0)
		streamed__put(stream, (struct stream_event){.type = STREAM_ACCOUNT,
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
	if (at_ns == 52 * S - stream->step_ns)
		streamed__bundle(stream, 3, 0, MONO + 44 * S, 8 * S, 5 * S);
}

/* One iteration: all compute and wait for the slowest. Rank 1 is preempted from 22 to 34 s. */
static inline void streamed__iterate(const struct streamed *stream, uint64_t at_ns, uint64_t number)
{
	const bool hog = at_ns >= 22 * S && at_ns < 34 * S;
	const uint64_t unit = stream->step_ns / 50;

	for (uint32_t i = 0; i <= stream->ranks; i++) {
		uint64_t work = 24 * unit + (number * 7919 + i * 104729) % 400000 * unit / MS;
		uint64_t stolen = hog && i == 1 ? 21 * unit : 0;
		uint64_t end = work + stolen;

		if (i == stream->ranks && at_ns >= 36 * S)
			continue;
		if (streamed__is_long(at_ns, i)) {
			streamed__long(stream, at_ns);
			continue;
		}
		streamed__bundle(stream, i, 0, MONO + at_ns, end, stolen);
		streamed__bundle(stream, i, 1, MONO + at_ns + end, 48 * unit - end, 0);
		if (!stolen)
			continue;
		streamed__put(stream, (struct stream_event){.type = STREAM_INTERFERENCE,
							    .interference = {.thread = i,
									     .pid = 4711,
									     .bin = (UTC + at_ns) / VAPRO_BIN_NS,
									     .preempted_ns = stolen,
									     .comm = "hog"}});
		streamed__put(stream, (struct stream_event){.type = STREAM_ACCOUNT,
							    .account = {.thread = i,
									.bin = (UTC + at_ns) / VAPRO_BIN_NS,
									.on_cpu_ns = work,
									.preempted_ns = stolen}});
	}
}

static inline void streamed__end_window(const struct streamed *stream, uint64_t begin_s, uint64_t end_s)
{
	if (end_s == 50 && stream->ranks > 3)
		streamed__put(stream, (struct stream_event){.type = STREAM_BUNDLE,
							    .bundle = {.thread = 3,
								       .n = 1,
								       .flags = VAPRO_BUNDLE_OPEN,
								       .start_ns = MONO + 44 * S,
								       .end_ns = MONO + 50 * S,
								       .sum_ns = 6 * S,
								       .min_ns = 6 * S,
								       .max_ns = 6 * S}});
	for (uint32_t i = 0; i <= stream->ranks; i++)
		streamed__put(stream, (struct stream_event){.type = STREAM_FACTS,
							    .facts = {.pid = 100 + i,
								      .job = i < stream->ranks ? "slurm:7" : "other",
								      .user = 1001,
								      .wall_ns = (end_s - begin_s) * S,
								      .governed_ns = i * 100 * MS,
								      .thinned_ns = i * 10 * MS,
								      .thinned = i,
								      .cost_ns = (30 + i) * MS,
								      .lost = {[VAPRO_LOST_RING_FULL] = i}}});
	streamed__put(stream, (struct stream_event){.type = STREAM_WINDOW,
						    .window = {.begin_ns = UTC + begin_s * S,
							       .end_ns = UTC + end_s * S,
							       .last = end_s == stream->seconds,
							       .daemon_cpu_pct = 0.5,
							       .io_traced_pct = NAN,
							       .io_tax_pct = NAN,
							       .bystander_hits = NAN,
							       .bystander_pct = NAN}});
}

/* The whole stream, with windows of 10 s. */
static inline void streamed__run(const struct streamed *stream)
{
	uint64_t begin = 0, steps = S / stream->step_ns;

	streamed__announce(stream);
	for (uint64_t number = 0; number < stream->seconds * steps; number++) {
		uint64_t second = number / steps;

		streamed__iterate(stream, number * stream->step_ns, number);
		if (number % steps != steps - 1)
			continue;
		streamed__rarities(stream, second);
		if ((second + 1) % 10 == 0 || second + 1 == stream->seconds) {
			streamed__end_window(stream, begin, second + 1);
			begin = second + 1;
		}
	}
}

#endif
