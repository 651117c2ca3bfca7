/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pipeline over a scripted analysis, fed with two windows; included by the one file that is the test. */
#ifndef VAPRO_TESTS_SCRIPTED_H
#define VAPRO_TESTS_SCRIPTED_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "pipeline/pipeline.h"
#include "report/summary.h"
#include "sample.h"

struct analysis {
	struct vapro_bundle bundle;
	struct job_result result;
	uint64_t from_ns, to_ns;
	uint32_t threads, states, windows, refused, hops;
	uint64_t samples;
	bool last;
	bool fresh; /* each window has new variances */
};

static struct analysis stub;

struct analysis *analysis__new(const struct vapro_config *config, enum vapro_workload_source source)
{
	(void)config;
	(void)source;
	memset(&stub, 0, sizeof(stub));
	return &stub;
}

void analysis__free(struct analysis *analysis)
{
	(void)analysis;
}

int analysis__add_thread(struct analysis *analysis, const struct vapro_thread *thread)
{
	return thread->id == analysis->threads++ ? 0 : -EINVAL;
}

int analysis__add_state(struct analysis *analysis, const struct vapro_state *state)
{
	return state->id == analysis->states++ ? 0 : -EINVAL;
}

int analysis__state_gone(struct analysis *analysis, uint32_t state)
{
	(void)analysis;
	(void)state;
	return 0;
}

int analysis__add_bundle_at(struct analysis *analysis, const struct vapro_bundle *bundle, uint64_t offset_ns)
{
	analysis->bundle = *bundle;
	analysis->bundle.start_ns += offset_ns;
	analysis->bundle.end_ns += offset_ns;
	return bundle->thread < analysis->threads ? 0 : -EINVAL;
}

int analysis__add_bundle(struct analysis *analysis, const struct vapro_bundle *bundle)
{
	return analysis__add_bundle_at(analysis, bundle, 0);
}

void analysis__held_elsewhere(struct analysis *analysis, size_t bytes)
{
	(void)analysis;
	(void)bytes;
}

int analysis__add_interference(struct analysis *analysis, const struct vapro_interference *interference)
{
	return interference->thread < analysis->threads ? 0 : -EINVAL;
}

int analysis__add_account(struct analysis *unused, const struct vapro_account *account)
{
	(void)unused;
	(void)account;
	return 0;
}

int analysis__add_facts(struct analysis *analysis, const struct vapro_process_facts *facts)
{
	(void)analysis;
	(void)facts;
	return 0;
}

int analysis__thread_seen(struct analysis *analysis, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	(void)thread;
	analysis->from_ns = from_ns;
	analysis->to_ns = to_ns;
	return 0;
}

int analysis__end_window(struct analysis *analysis, uint64_t begin_ns, uint64_t end_ns, bool last,
			 const struct job_result **results, uint32_t *count)
{
	static struct result_variance fresh[16];

	sample__fill(&analysis->result);
	assert_true(analysis->result.variance_count <= 16);
	analysis->result.begin_ns = begin_ns;
	analysis->result.end_ns = end_ns;
	analysis->last = last;
	for (uint32_t i = 0; analysis->fresh && i < analysis->result.variance_count; i++) {
		fresh[i] = analysis->result.variances[i];
		fresh[i].id += 1000ULL * analysis->windows;
		analysis->result.variances =
		    i + 1 == analysis->result.variance_count ? fresh : analysis->result.variances;
	}
	if (analysis->windows++) /* the first window's map is no later window's */
		analysis->result.heatmap_count = 0;
	*results = &analysis->result;
	*count = 1;
	return 0;
}

int analysis__add_host_clock(struct analysis *analysis, const struct vapro_host_clock *clock)
{
	(void)analysis;
	(void)clock;
	return 0;
}

int analysis__place(struct analysis *analysis, const struct vapro_place *place)
{
	return place->thread < analysis->threads ? 0 : -EINVAL;
}

int analysis__select(struct analysis *analysis, const struct vapro_selection *selection)
{
	(void)analysis;
	(void)selection;
	return 0;
}

void analysis__remember(struct analysis *analysis, double seconds, uint64_t bytes)
{
	(void)analysis;
	(void)seconds;
	(void)bytes;
}

int analysis__query(struct analysis *analysis, const struct vapro_selection *selection, const char *job,
		    uint64_t now_ns, const struct job_result **results, uint32_t *count)
{
	(void)analysis;
	(void)selection;
	(void)job;
	(void)now_ns;
	*results = NULL;
	*count = 0;
	return 0;
}

int analysis__emitted(struct analysis *analysis, const struct job_result **results, uint32_t *count)
{
	(void)analysis;
	*results = NULL;
	*count = 0;
	return 0;
}

void analysis__stage_request(const struct analysis *analysis, struct vapro_stage_request *request)
{
	(void)analysis;
	*request = (struct vapro_stage_request){.stage = 1};
}

void analysis__refuse_stage(struct analysis *analysis, const char *expand)
{
	assert_string_equal(expand, "memory");
	analysis->refused++;
}

void analysis__inside_request(const struct analysis *analysis, struct vapro_inside_request *request)
{
	*request = (struct vapro_inside_request){.count = 1, .tids = {(uint32_t)analysis->windows}};
}

int analysis__add_inside(struct analysis *analysis, uint32_t thread, uint32_t state, const char *site, uint64_t samples)
{
	(void)state;
	if (thread >= analysis->threads || !site)
		return -EINVAL;
	analysis->samples += samples;
	return 0;
}

void analysis__hop_request(struct analysis *analysis, uint64_t now_ns, struct vapro_hop_event *event)
{
	*event = (struct vapro_hop_event){.hop = now_ns == analysis->hops ? VAPRO_HOP_UP : VAPRO_HOP_NONE};
}

int analysis__hopped(struct analysis *analysis, const struct vapro_hop_event *event, uint64_t now_ns)
{
	analysis->hops += event->hop == VAPRO_HOP_REFUSED && now_ns == 7 && !strcmp(event->site, "a+1");
	return 0;
}

static struct vapro_shed shed;

void analysis__shed(const struct analysis *analysis, struct vapro_shed *reported)
{
	(void)analysis;
	*reported = shed;
}

static char path[64];

static inline int put(struct stream_sink *sink, struct stream_event event)
{
	return stream__put(sink, &event);
}

/* Feeds two windows; returns the pipeline, not yet closed. */
static inline struct pipeline *run(struct line_sink *lines, struct summary *summary)
{
	const uint64_t second = 1000000000;
	struct vapro_config config;
	struct pipeline *pipeline;
	struct stream_sink *sink;

	config__init(&config);
	pipeline = pipeline__new(&config, VAPRO_BY_ARGUMENTS, NULL, lines, summary);
	assert_non_null(pipeline);
	sink = pipeline__sink(pipeline);
	assert_int_equal(put(sink, (struct stream_event){.type = STREAM_WINDOW}), -EINVAL); /* no clock yet */
	put(sink, (struct stream_event){.type = STREAM_LINE, .line = stream__line("{\"a line\":\"as it is\"}")});
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {5000, SAMPLE_UTC}});
	for (uint32_t i = 0; i < 4; i++)
		put(sink, (struct stream_event){
			      .type = STREAM_THREAD,
			      .thread = {.id = i, .rank = (int32_t)i, .job = "slurm:1234.0", .host = "n1"}});
	put(sink, (struct stream_event){.type = STREAM_STATE, .state = sample_edge});
	put(sink, (struct stream_event){.type = STREAM_SEEN, .seen = {0, 6000, 0}});
	assert_true(stub.from_ns == SAMPLE_UTC + 1000);
	assert_int_equal(stub.to_ns, 0);
	put(sink, (struct stream_event){.type = STREAM_BUNDLE, .bundle = {.n = 1, .start_ns = 5010, .end_ns = 5020}});
	assert_true(stub.bundle.start_ns == SAMPLE_UTC + 10);
	assert_true(stub.bundle.end_ns == SAMPLE_UTC + 20);
	assert_int_equal(put(sink, (struct stream_event){.type = STREAM_BUNDLE, .bundle = {.thread = 9, .n = 1}}), 0);
	put(sink,
	    (struct stream_event){.type = STREAM_WINDOW, .window = {SAMPLE_UTC, SAMPLE_UTC + 15 * second, false, 0.5}});
	put(sink,
	    (struct stream_event){.type = STREAM_STAGE,
				  .stage = {6000, 7000, 2, "backend", "slurm:1234.0", 3, "instructions,a", NULL}});
	assert_int_equal(stub.refused, 0);
	put(sink, (struct stream_event){.type = STREAM_STAGE,
					.stage = {8000, 8000, 3, "memory", "slurm:1234.0", 3, NULL, "no room"}});
	assert_int_equal(stub.refused, 1);
	put(sink, (struct stream_event){.type = STREAM_HOP, .hop = {6, 7, VAPRO_HOP_REFUSED, "a+1", NULL, "no"}});
	assert_int_equal(stub.hops, 1);
	put(sink, (struct stream_event){.type = STREAM_INSIDE, .inside = {0, 0, "a@0+0x1", 12}});
	assert_int_equal(stub.samples, 12);
	put(sink, (struct stream_event){.type = STREAM_WINDOW,
					.window = {SAMPLE_UTC + 15 * second, SAMPLE_UTC + 25 * second, true, 0.75}});
	put(sink, (struct stream_event){.type = STREAM_END});
	return pipeline;
}

static inline int setup(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/vapro-test-scripted-%d", getpid());
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static inline char *print(struct summary *summary, unsigned width)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	summary__print(summary, out, &(struct summary_options){.width = width, .all = true});
	fclose(out);
	if (getenv("VAPRO_TEST_SHOW"))
		fputs(text, stderr);
	return text;
}

static inline void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

#endif
