/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Windows of several sources as those of one stream: which source leads where windows are missing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/stream_merge.h"

#define S 1000000000ULL
#define WINDOWS 8
#define SOURCES 2

/* A source of windows of 10 s, named by their ends in seconds, 0 behind the last. */
struct source {
	struct merge_reader reader; /* first */
	uint64_t ends[WINDOWS];
	size_t next, absent_at; /* nothing is there from this window on, while `absent` */
	bool absent;
};

static int next_window(struct merge_reader *reader, struct stream_event *event)
{
	struct source *source = (struct source *)reader;
	uint64_t end = source->ends[source->next];

	if (!end)
		return 0;
	if (source->absent && source->next >= source->absent_at)
		return -EAGAIN;
	*event =
	    (struct stream_event){.type = STREAM_WINDOW, .window = {.begin_ns = (end - 10) * S, .end_ns = end * S}};
	source->next++;
	return 1;
}

struct put {
	struct stream_sink sink; /* first */
	uint64_t begins[WINDOWS], ends[WINDOWS];
	size_t count;
};

static int put_window(struct stream_sink *sink, const struct stream_event *event)
{
	struct put *put = (struct put *)sink;

	if (event->type != STREAM_WINDOW)
		return 0;
	assert_true(put->count < WINDOWS - 1);
	put->begins[put->count] = event->window.begin_ns / S;
	put->ends[put->count++] = event->window.end_ns / S;
	return 0;
}

/* Merges the sources. late: the first one has nothing behind its gap, and is excused, until no window can be put. */
static void merge_windows(struct source *sources, bool late, struct put *put)
{
	struct stream_merge *merge;

	*put = (struct put){.sink = {.put = put_window}};
	merge = stream_merge__new(&put->sink, MERGE_BY_WINDOW);
	assert_non_null(merge);
	for (size_t i = 0; i < SOURCES; i++) {
		sources[i].reader.next = next_window;
		sources[i].next = 0;
		assert_int_equal(stream_merge__add(merge, &sources[i].reader), i);
	}
	sources[0].absent = late;
	stream_merge__excuse(merge, 0, late);
	while (stream_merge__advance(merge) == 1)
		;
	sources[0].absent = false;
	stream_merge__excuse(merge, 0, false);
	while (stream_merge__advance(merge) == 1)
		;
	assert_true(stream_merge__ended(merge));
	stream_merge__free(merge);
}

static void expect(struct source *sources, const uint64_t *ends)
{
	struct put put;

	for (int late = 0; late < 2; late++) {
		size_t count = 0;

		merge_windows(sources, late, &put);
		for (; ends[count]; count++) {
			assert_true(count < put.count);
			assert_int_equal(put.ends[count], ends[count]);
			assert_int_equal(put.begins[count], count ? ends[count - 1] : ends[0] - 10);
		}
		assert_int_equal(put.count, count);
	}
}

static void test_source_without_gap_leads(void **state)
{
	struct source sources[SOURCES] = {{.ends = {15, 55, 65}, .absent_at = 1}, {.ends = {15, 25, 35, 45, 55, 65}}};

	(void)state;
	expect(sources, (const uint64_t[]){15, 25, 35, 45, 55, 65, 0});
}

static void test_all_have_a_gap(void **state)
{
	struct source sources[SOURCES] = {{.ends = {15, 55, 65}, .absent_at = 1}, {.ends = {15, 25, 55, 65}}};

	(void)state;
	expect(sources, (const uint64_t[]){15, 25, 55, 65, 0});
}

static void test_other_phase(void **state)
{
	struct source sources[SOURCES] = {{.ends = {15, 55, 65}, .absent_at = 1}, {.ends = {18, 28, 38, 48, 58, 68}}};

	(void)state;
	expect(sources, (const uint64_t[]){15, 18, 28, 38, 48, 58, 68, 0});
}

static void test_without_gaps_the_first_leads(void **state)
{
	struct source sources[SOURCES] = {{.ends = {15, 25, 35}, .absent_at = WINDOWS}, {.ends = {12, 22, 32, 42}}};

	(void)state;
	/* the source that begins first */
	expect(sources, (const uint64_t[]){12, 22, 32, 42, 0});
	sources[1].ends[0] = 17;
	sources[1].ends[1] = 27;
	sources[1].ends[2] = 37;
	sources[1].ends[3] = 0;
	expect(sources, (const uint64_t[]){15, 25, 35, 37, 0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_source_without_gap_leads),
	    cmocka_unit_test(test_all_have_a_gap),
	    cmocka_unit_test(test_other_phase),
	    cmocka_unit_test(test_without_gaps_the_first_leads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
