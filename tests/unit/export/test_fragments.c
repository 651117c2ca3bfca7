/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fragments of a stream in a file: each one as it was, those of a region, a rank or a state, merged and open ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "capture/ndjson_line.h"
#include "export/fragments.h"

#define UTC_NS 1800000000000000000ULL
#define MONO_NS 5000000000ULL
#define S 1000000000ULL

enum { RANKS = 3, BUNDLES = 40 };

static struct vapro_bundle bundles[BUNDLES];
static char path[64];
static uint64_t passed;

/* The sink behind the writer. */
static int count(struct stream_sink *sink, const struct stream_event *event)
{
	(void)sink;
	passed += event->type == STREAM_BUNDLE;
	return 0;
}

static void put(struct stream_sink *sink, const struct stream_event *event)
{
	assert_int_equal(stream__put(sink, event), 0);
}

static void put_tables(struct stream_sink *sink)
{
	put(sink, &(struct stream_event){.type = STREAM_CLOCK, .clock = {MONO_NS, UTC_NS}});
	for (uint32_t i = 0; i < RANKS; i++)
		put(sink, &(struct stream_event){.type = STREAM_THREAD,
						 .thread = {.id = i,
							    .rank = (int32_t)i,
							    .world_size = RANKS,
							    .pid = 10 + i,
							    .tid = 10 + i,
							    .job = "mpi:7",
							    .host = "n\"0,1"}});
	put(sink, &(struct stream_event){.type = STREAM_STATE,
					 .state = {.id = 0,
						   .class = VAPRO_COMPUTATION,
						   .from = "app@12+0x10",
						   .to = "app@12+0x20",
						   .labels = "from.function=MPI_Send to.function=MPI_Recv",
						   .common = "from.function=MPI_Send to.function=MPI_Recv"}});
	put(sink, &(struct stream_event){.type = STREAM_STATE,
					 .state = {.id = 1,
						   .class = VAPRO_COMMUNICATION,
						   .to = "app@12+0x20",
						   .to_symbol = "main+0x20",
						   .labels = "comm=0 function=MPI_Recv peer=2",
						   .common = "function=MPI_Recv"}});
}

/* The i-th bundle: a second apart; every fourth is merged from 8 fragments. */
static struct vapro_bundle bundle_at(uint32_t i)
{
	struct vapro_bundle bundle = {.thread = i % RANKS, .state = i % 2, .n = i % 4 ? 1 : 8};

	bundle.start_ns = MONO_NS + i * S;
	bundle.sum_ns = 1000000 + i * 1000;
	bundle.end_ns = bundle.start_ns + (bundle.n == 1 ? bundle.sum_ns : 2 * bundle.sum_ns);
	bundle.min_ns = bundle.n == 1 ? bundle.sum_ns : bundle.sum_ns / 16;
	bundle.max_ns = bundle.n == 1 ? bundle.sum_ns : bundle.sum_ns / 4;
	bundle.magnitude_min[i % 2 ? VAPRO_BYTES : VAPRO_INSTRUCTIONS] = 1024 + i;
	bundle.magnitude_max[i % 2 ? VAPRO_BYTES : VAPRO_INSTRUCTIONS] = 1024 + i;
	bundle.factor[VAPRO_PREEMPTED] = i % 3 ? 0 : 5000;
	bundle.factor[VAPRO_MINOR_FAULTS] = i % 5;
	return bundle;
}

/* Writes all bundles, in windows of ten seconds. Returns the number of lines. */
static uint64_t write_file(const char *ending, const struct fragments_choice *choice)
{
	struct stream_sink behind = {.put = count};
	struct fragments *fragments;
	uint64_t lines = 0;

	snprintf(path, sizeof(path), "/tmp/vapro-fragments-%d%s", getpid(), ending);
	fragments = fragments__open(path, choice, &behind);
	assert_non_null(fragments);
	passed = 0;
	put_tables(fragments__sink(fragments));
	for (uint32_t i = 0; i < BUNDLES; i++) {
		bundles[i] = bundle_at(i);
		put(fragments__sink(fragments), &(struct stream_event){.type = STREAM_BUNDLE, .bundle = bundles[i]});
		if (i % 10 != 9)
			continue;
		/* a call that goes on through all windows is written once */
		put(fragments__sink(fragments), &(struct stream_event){.type = STREAM_BUNDLE,
								       .bundle = {.thread = 1,
										  .state = 1,
										  .n = 1,
										  .flags = VAPRO_BUNDLE_OPEN,
										  .start_ns = MONO_NS + 5 * S,
										  .end_ns = MONO_NS + (i + 1) * S,
										  .sum_ns = (i - 4) * S,
										  .min_ns = (i - 4) * S,
										  .max_ns = (i - 4) * S}});
		put(fragments__sink(fragments), &(struct stream_event){.type = STREAM_WINDOW,
								       .window = {.begin_ns = UTC_NS + (i - 9) * S,
										  .end_ns = UTC_NS + (i + 1) * S,
										  .last = i == BUNDLES - 1}});
	}
	assert_int_equal(passed, BUNDLES + 4);
	assert_int_equal(fragments__close(fragments, &lines), 0);
	return lines;
}

/* Reads a line as the reader of fragments does, and compares it with the bundle that it is of. */
static void check_line(const char *text, struct ndjson_names *names, bool *open)
{
	struct ndjson_line line;
	char why[256];
	const struct vapro_bundle *bundle;
	uint32_t i;

	if (ndjson_line__parse(&line, text, names, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	if (line.bundle.flags & VAPRO_BUNDLE_OPEN) {
		assert_false(*open);
		*open = true;
		assert_int_equal(line.bundle.sum_ns, 35 * S);
		ndjson_line__free(&line);
		return;
	}
	i = (uint32_t)((line.bundle.start_ns - UTC_NS) / S);
	assert_true(i < BUNDLES);
	bundle = &bundles[i];
	assert_int_equal(line.bundle.start_ns, bundle->start_ns - MONO_NS + UTC_NS);
	assert_int_equal(line.bundle.end_ns, bundle->end_ns - MONO_NS + UTC_NS);
	assert_int_equal(line.bundle.sum_ns, bundle->sum_ns);
	assert_int_equal(line.bundle.n, bundle->n);
	assert_int_equal(line.bundle.min_ns, bundle->min_ns);
	assert_int_equal(line.bundle.max_ns, bundle->max_ns);
	assert_memory_equal(line.bundle.factor, bundle->factor, sizeof(bundle->factor));
	assert_memory_equal(line.bundle.magnitude_max, bundle->magnitude_max, sizeof(bundle->magnitude_max));
	assert_int_equal(line.thread.rank, (int)bundle->thread);
	assert_string_equal(line.thread.job, "mpi:7");
	assert_string_equal(line.thread.host, "n\"0,1");
	assert_int_equal(line.state.class, bundle->state ? VAPRO_COMMUNICATION : VAPRO_COMPUTATION);
	assert_string_equal(line.labels, bundle->state ? "comm=0 function=MPI_Recv peer=2"
						       : "from.function=MPI_Send to.function=MPI_Recv");
	assert_string_equal(line.common,
			    bundle->state ? "function=MPI_Recv" : "from.function=MPI_Send to.function=MPI_Recv");
	ndjson_line__free(&line);
}

/* What is read again is what was written, but for times, which are UTC. */
static void test_ndjson(void **state)
{
	struct ndjson_names names = {.unknown_factors = NULL};
	char text[4096];
	uint64_t lines = write_file(".ndjson", &(struct fragments_choice){.state = NULL}), read = 0;
	FILE *file = fopen(path, "r");
	bool open = false;

	(void)state;
	assert_int_equal(lines, BUNDLES + 1);
	assert_non_null(file);
	for (; fgets(text, sizeof(text), file); read++)
		check_line(text, &names, &open);
	assert_int_equal(read, lines);
	assert_true(open);
	assert_null(names.unknown_factors);
	fclose(file);
	unlink(path);
	ndjson_line__free_names(&names);
}

/* Counts the bundles that lie in a time, of ranks and of a state; -1: any. */
static uint64_t expected(uint64_t from_s, uint64_t to_s, int first, int last, int of_state)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < BUNDLES; i++) {
		int rank = (int)bundles[i].thread;

		found += bundles[i].end_ns - MONO_NS > from_s * S && bundles[i].start_ns - MONO_NS < to_s * S &&
			 rank >= first && rank <= last && (of_state < 0 || bundles[i].state == (uint32_t)of_state);
	}
	return found;
}

/* Regions in seconds since the begin and in UTC, ranks, states by id, label and symbol. */
static void test_choices(void **state)
{
	static const int32_t ranks[][2] = {{1, 2}};
	struct fragments_choice choice = {
	    .selection = {.relative = true, .begin_ns = 12 * S, .end_ns = 20 * S, .ranks = ranks, .range_count = 1}};

	(void)state;
	/* rank 1 has the open call, which lies in this time, too */
	assert_int_equal(write_file(".ndjson", &choice), expected(12, 20, 1, 2, -1) + 1);
	choice.selection.relative = false;
	choice.selection.begin_ns += UTC_NS;
	choice.selection.end_ns += UTC_NS;
	assert_int_equal(write_file(".ndjson", &choice), expected(12, 20, 1, 2, -1) + 1);
	choice.state = "app@12+0x10"; /* the begin of the computation */
	assert_int_equal(write_file(".ndjson", &choice), expected(12, 20, 1, 2, 0));
	choice = (struct fragments_choice){.state = "function=MPI_Recv peer"};
	assert_int_equal(write_file(".ndjson", &choice), expected(0, 100, 0, 2, 1) + 1);
	choice.state = "main+0x20";
	assert_int_equal(write_file(".ndjson", &choice), expected(0, 100, 0, 2, 1) + 1);
	choice.state = "no such state";
	assert_int_equal(write_file(".ndjson", &choice), 0);
	unlink(path);
}

/* Comma-separated: a line of columns, as many fields in each line, quotes where they are needed. */
static void test_csv(void **state)
{
	uint64_t lines = write_file(".csv", &(struct fragments_choice){.state = NULL});
	char text[4096];
	FILE *file = fopen(path, "r");

	(void)state;
	assert_int_equal(lines, BUNDLES + 1);
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	assert_non_null(
	    strstr(text, "job,host,rank,thread,pid,tid,class,function,from,to,state_id,labels,n,open,start_ns,"));
	assert_non_null(strstr(text, ",instructions_min,instructions_max,bytes_min,bytes_max,preempted_ns,"));
	assert_non_null(fgets(text, sizeof(text), file)); /* bundle 0 */
	assert_non_null(strstr(text, "mpi:7,\"n\"\"0,1\",0,0,10,10,computation,,app@12+0x10,app@12+0x20,"));
	assert_non_null(strstr(text,
			       ",8,false,1800000000000000000,1800000000002000000,1000000,62500,250000,1024,1024,0,0,"
			       "5000,"));
	assert_non_null(fgets(text, sizeof(text), file)); /* bundle 1 */
	assert_non_null(strstr(text, ",communication,MPI_Recv,,app@12+0x20,"));
	fclose(file);
	unlink(path);
}

/* A place that cannot be written is said, and so is a full disk at the end. */
static void test_failures(void **state)
{
	struct stream_sink behind = {.put = count};
	struct fragments_choice choice = {.state = NULL};
	struct fragments *fragments;
	uint64_t lines;

	(void)state;
	assert_null(fragments__open("/nonexistent/a.csv", &choice, &behind));
	fragments = fragments__open("/dev/full", &choice, &behind);
	assert_non_null(fragments);
	put_tables(fragments__sink(fragments));
	put(fragments__sink(fragments), &(struct stream_event){.type = STREAM_BUNDLE, .bundle = bundle_at(1)});
	assert_true(fragments__close(fragments, &lines) < 0);
	assert_int_equal(fragments__close(NULL, &lines), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ndjson),
	    cmocka_unit_test(test_choices),
	    cmocka_unit_test(test_csv),
	    cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
