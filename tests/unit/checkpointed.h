/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs of an analysis with a checkpoint before and after each window: the linker wraps analysis__end_window, and
 * analysis__new to set tunables.
 * Each run is recorded as the lines of all its windows.
 */
#ifndef VAPRO_CHECKPOINTED_H
#define VAPRO_CHECKPOINTED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/analysis_private.h"
#include "written_records.h"
#include "report/window_json.h"

struct lines {
	char *text;
	size_t length, capacity;
	unsigned windows;
};

static struct {
	struct lines *into;	 /* NULL: windows are not recorded */
	bool checkpoints;	 /* a new analysis takes over before and after each window */
	struct analysis *former; /* has the results of the last window */
	size_t bytes;		 /* of the last checkpoint after a window */
	uint8_t *last;		 /* the same; the test frees it */
	unsigned resumed;
	uint64_t memory_cap;	  /* of the analyses made from here on */
	bool remembers;		  /* they retain what windows drop */
	uint64_t shed, variances; /* seen in recorded windows */
} run;

static inline int add_line(void *arg, enum record_object type, const char *line)
{
	struct lines *lines = arg;
	size_t length = strlen(line);

	(void)type;
	if (lines->length + length + 2 > lines->capacity) {
		lines->capacity = 2 * (lines->length + length + 2);
		lines->text = realloc(lines->text, lines->capacity);
		assert_non_null(lines->text);
	}
	memcpy(lines->text + lines->length, line, length);
	lines->length += length;
	lines->text[lines->length++] = '\n';
	lines->text[lines->length] = '\0';
	return 0;
}

static inline void record(const struct analysis *analysis, const struct job_result *results, uint32_t count)
{
	struct vapro_stage_request request;
	struct vapro_hop_event hop;
	struct json_context context = {.host = "n1"};
	struct vapro_shed shed;
	char text[512];

	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(window_json__put(&results[i], &context, add_line, run.into), 0);
	analysis__shed(analysis, &shed);
	analysis__stage_request(analysis, &request);
	analysis__hop_request((struct analysis *)analysis, (run.into->windows + 1) * 1000000000ULL, &hop);
	snprintf(text, sizeof(text), "shed %lu %lu %lu %lu %lu %lu, stage %d %s %lu, hop %s %s", shed.bytes,
		 shed.remembered, shed.merged, shed.bundles, shed.coarser, shed.evicted, request.stage,
		 request.expand ? request.expand : "", request.variance, vapro_hop_name[hop.hop],
		 hop.site ? hop.site : "");
	add_line(run.into, RECORD_OBJECTS, text); /* no record */
	run.into->windows++;
	run.shed += shed.merged + shed.bundles + shed.bins + shed.remembered;
	for (uint32_t i = 0; i < count; i++)
		run.variances += results[i].variance_count;
}

/* Exchanges the content of two analyses, whose pointers into themselves follow. */
static inline void exchange(struct analysis *a, struct analysis *b)
{
	struct analysis *both[] = {a, b}, content = *a;

	*a = *b;
	*b = content;
	for (int i = 0; i < 2; i++) {
		both[i]->context.series.config = &both[i]->context.config;
		for (size_t job = 0; job < both[i]->job_count; job++)
			both[i]->jobs[job].book.last_id = &both[i]->context.last_variance;
	}
}

/* A new analysis takes over from a checkpoint. The former one lives on: it has the results. */
static inline void take_over(struct analysis *analysis)
{
	struct analysis *fresh = analysis__new(&analysis->context.config, analysis->context.source);
	char err[256] = "";
	uint8_t *data, *again;
	size_t size, size_again;

	assert_non_null(fresh);
	if (analysis__save(analysis, &data, &size, err, sizeof(err)))
		fail_msg("%s", err);
	if (analysis__load(fresh, data, size, err, sizeof(err)))
		fail_msg("%s", err);
	/* what was loaded is saved as the same bytes */
	assert_int_equal(analysis__save(fresh, &again, &size_again, err, sizeof(err)), 0);
	assert_int_equal(size, size_again);
	assert_memory_equal(data, again, size);
	free(again);
	free(run.last);
	run.last = data;
	run.bytes = size;
	exchange(analysis, fresh);
	analysis__free(run.former);
	run.former = fresh;
	run.resumed++;
}

struct analysis *__real_analysis__new(const struct vapro_config *config, enum vapro_workload_source source);
struct analysis *__wrap_analysis__new(const struct vapro_config *config, enum vapro_workload_source source);

struct analysis *__wrap_analysis__new(const struct vapro_config *config, enum vapro_workload_source source)
{
	struct vapro_config own = *config;
	struct analysis *analysis;

	own.memory_cap = run.memory_cap;
	own.hop_frames = 4;
	analysis = __real_analysis__new(&own, source);
	if (analysis && run.remembers)
		analysis__remember(analysis, 30, 1 << 20);
	return analysis;
}

int __real_analysis__end_window(struct analysis *analysis, uint64_t begin_ns, uint64_t end_ns, bool last,
				const struct job_result **results, uint32_t *count);
int __wrap_analysis__end_window(struct analysis *analysis, uint64_t begin_ns, uint64_t end_ns, bool last,
				const struct job_result **results, uint32_t *count);

int __wrap_analysis__end_window(struct analysis *analysis, uint64_t begin_ns, uint64_t end_ns, bool last,
				const struct job_result **results, uint32_t *count)
{
	int error;

	if (run.checkpoints)
		take_over(analysis);
	error = __real_analysis__end_window(analysis, begin_ns, end_ns, last, results, count);
	if (!error && run.into)
		record(analysis, *results, *count);
	if (run.checkpoints)
		take_over(analysis);
	return error;
}

static inline void end_run(void)
{
	if (run.into && !run.checkpoints)
		written_records__all(run.into->text ? run.into->text : "");
	analysis__free(run.former);
	run.former = NULL;
	run.into = NULL;
	run.checkpoints = false;
	run.memory_cap = 0;
	run.remembers = false;
}

static inline void clear_lines(struct lines *lines)
{
	free(lines->text);
	*lines = (struct lines){0};
}

/* Fails with the first line that differs. */
static inline void assert_same(const struct lines *plain, const struct lines *resumed)
{
	size_t at = 0, begin = 0;

	assert_true(plain->windows > 0);
	assert_int_equal(plain->windows, resumed->windows);
	if (plain->length == resumed->length && !memcmp(plain->text, resumed->text, plain->length))
		return;
	for (; plain->text[at] && plain->text[at] == resumed->text[at]; at++)
		begin = plain->text[at] == '\n' ? at + 1 : begin;
	fail_msg("at %zu: %.*s\n became %.*s", at - begin, (int)strcspn(plain->text + begin, "\n"), plain->text + begin,
		 (int)strcspn(resumed->text + begin, "\n"), resumed->text + begin);
}

#endif
