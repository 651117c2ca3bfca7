/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fragments as NDJSON: events from good lines, reasons for refusing bad lines, and the order of events. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "capture/ndjson.h"
#include "recorder.h"

#define S 1000000000ULL

static char path[64], err[512];
static struct recorder seen;
static uint64_t bad;

static int setup(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/vapro-test-ndjson-%d", getpid());
	recorder__clear(&seen);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	recorder__clear(&seen);
	unlink(path);
	return 0;
}

static int replay(const char *text, bool strict)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	recorder__clear(&seen);
	err[0] = 0;
	return ndjson__replay((const char *const[]){path}, 1, strict, 15, &seen.sink, &bad, err, sizeof(err));
}

static const struct vapro_bundle *nth(size_t number)
{
	const struct stream_event *event = recorder__find(&seen, STREAM_BUNDLE, number);

	assert_non_null(event);
	return &event->bundle;
}

/* The two lines of ARCHITECTURE section 10. */
static void test_contract(void **state)
{
	const struct vapro_state *edge, *vertex;

	(void)state;
	assert_int_equal(
	    replay("{\"rank\":3,\"thread\":0,\"class\":\"computation\",\"from\":\"a.out@1f2e3d4c5b6a+0x1200\","
		   "\"to\":\"a.out@1f2e3d4c5b6a+0x1280\",\"start_ns\":1000,\"duration_ns\":52000,\"workload\":"
		   "{\"instructions\":100000},\"factors\":{\"preempted_ns\":0,\"minor_faults\":2,\"frontend_ns\":9000,"
		   "\"backend_ns\":21000,\"bad_speculation_ns\":800,\"retiring_ns\":21200}}\n"
		   "{\"rank\":3,\"thread\":0,\"class\":\"communication\",\"at\":\"a.out@1f2e3d4c5b6a+0x1280\","
		   "\"start_ns\":53000,\"duration_ns\":9000,\"workload\":{\"function\":\"MPI_Allreduce\",\"bytes\":8,"
		   "\"comm\":\"0\"},\"unknown\":\"x\"}\n",
		   true),
	    0);
	assert_int_equal(bad, 0);
	assert_int_equal(recorder__find(&seen, STREAM_THREAD, 0)->thread.rank, 3);
	edge = &recorder__find(&seen, STREAM_STATE, 0)->state;
	assert_string_equal(edge->from, "a.out@1f2e3d4c5b6a+0x1200");
	assert_string_equal(edge->to, "a.out@1f2e3d4c5b6a+0x1280");
	assert_string_equal(edge->labels, "");
	vertex = &recorder__find(&seen, STREAM_STATE, 1)->state;
	assert_null(vertex->from);
	assert_string_equal(vertex->labels, "comm=0 function=MPI_Allreduce");
	assert_string_equal(vertex->common, "function=MPI_Allreduce");
	assert_true(nth(0)->magnitude_min[VAPRO_INSTRUCTIONS] == 100000);
	assert_true(nth(0)->factor[VAPRO_MINOR_FAULTS] == 2);
	assert_true(nth(0)->factor[VAPRO_RETIRING] == 21200);
	assert_int_equal(nth(0)->start_ns, 1000);
	assert_int_equal(nth(0)->end_ns, 53000);
	assert_int_equal(nth(0)->n, 1);
	assert_true(nth(1)->magnitude_max[VAPRO_BYTES] == 8);
	assert_int_equal(nth(1)->first_call, 2);
	assert_int_equal(recorder__find(&seen, STREAM_SEEN, 0)->seen.from_ns, 1000);
	assert_int_equal(recorder__find(&seen, STREAM_SEEN, 0)->seen.to_ns, 62000);
	assert_int_equal(seen.events[seen.count - 1].type, STREAM_END);
}

static void test_source(void **state)
{
	struct ndjson *ndjson;

	(void)state;
	assert_int_equal(replay("{\"rank\":0,\"class\":\"io\",\"at\":\"x\",\"start_ns\":0,\"duration_ns\":5,"
				"\"workload\":{\"instructions\":7}}\n",
				true),
			 0);
	ndjson = ndjson__read((const char *const[]){path}, 1, true, &bad, err, sizeof(err));
	assert_false(ndjson__by_instructions(ndjson)); /* workload of a computation only */
	ndjson__free(ndjson);
	assert_int_equal(replay("{\"rank\":0,\"class\":\"computation\",\"from\":\"x\",\"to\":\"y\",\"start_ns\":0,"
				"\"duration_ns\":5,\"workload\":{\"instructions\":7}}\n",
				true),
			 0);
	ndjson = ndjson__read((const char *const[]){path}, 1, true, &bad, err, sizeof(err));
	assert_true(ndjson__by_instructions(ndjson));
	ndjson__free(ndjson);
}

/* UTC in ns exceeds the precision of a double. */
static void test_exact_times(void **state)
{
	(void)state;
	assert_int_equal(
	    replay("{\"note\":\"start_ns\",\"deep\":{\"start_ns\":4},\"rank\":0,\"class\":\"io\",\"at\":\"x\", "
		   "\"start_ns\" : 1800000000123456789,\"duration_ns\":3}\n"
		   "{\"rank\":0,\"class\":\"io\",\"at\":\"x\",\"start_ns\":1.8000000002e18,\"duration_ns\":2.6}\n",
		   true),
	    0);
	assert_true(nth(0)->start_ns == 1800000000123456789ULL);
	assert_true(nth(0)->end_ns == 1800000000123456792ULL);
	assert_true(nth(1)->start_ns == 1800000000200000000ULL);
	assert_int_equal(nth(1)->sum_ns, 3);
}

#define IO(rest) "{\"rank\":0,\"class\":\"io\",\"at\":\"x\",\"start_ns\":10,\"duration_ns\":100" rest "}"

static void test_bad_lines(void **state)
{
	static const char *const lines[][2] = {
	    {"{\"rank\":0", "no JSON"},
	    {"[]", "no JSON object"},
	    {IO("") " trailing", "no JSON"},
	    {"{\"schema\":\"vapro/1\"}", "vapro wrote"},
	    {"{}", "rank is missing"},
	    {"{\"rank\":\"0\"}", "rank is no rank"},
	    {"{\"rank\":0.5}", "rank is no rank"},
	    {"{\"rank\":-2}", "rank is no rank"},
	    {"{\"rank\":0}", "class is missing"},
	    {"{\"rank\":0,\"class\":\"work\"}", "class 'work' is unknown"},
	    {"{\"rank\":0,\"class\":\"io\"}", "at is missing"},
	    {"{\"rank\":0,\"class\":\"io\",\"at\":5}", "at is no text"},
	    {"{\"rank\":0,\"class\":\"computation\",\"at\":\"x\"}", "from is missing"},
	    {"{\"rank\":0,\"class\":\"computation\",\"from\":\"x\"}", "to is missing"},
	    {"{\"rank\":0,\"class\":\"io\",\"at\":\"x\"}", "start_ns is missing"},
	    {"{\"rank\":0,\"class\":\"io\",\"at\":\"x\",\"start_ns\":-1}", "start_ns is negative"},
	    {"{\"rank\":0,\"class\":\"io\",\"at\":\"x\",\"start_ns\":1e30}", "start_ns is too large"},
	    {"{\"rank\":0,\"class\":\"io\",\"at\":\"x\",\"start_ns\":5}", "duration_ns is missing"},
	    {"{\"rank\":0,\"class\":\"io\",\"at\":\"x\",\"start_ns\":5,\"duration_ns\":-5}", "duration_ns is negative"},
	    {"{\"rank\":0,\"class\":\"io\",\"at\":\"x\",\"start_ns\":5,\"duration_ns\":\"5\"}",
	     "duration_ns is no number"},
	    {IO(",\"n\":0"), "n is 0"},
	    {IO(",\"n\":2"), "end_ns is missing"},
	    {IO(",\"n\":2,\"end_ns\":5"), "end_ns lies before"},
	    {IO(",\"n\":2,\"end_ns\":50"), "longer than"},
	    {IO(",\"n\":2,\"end_ns\":500,\"min_ns\":60"), "contradict"},
	    {IO(",\"n\":2,\"end_ns\":500,\"max_ns\":40"), "contradict"},
	    {IO(",\"end_ns\":500"), "one duration"},
	    {IO(",\"thread\":-1"), "thread is negative"},
	    {IO(",\"job\":7"), "job is no text"},
	    {IO(",\"workload\":5"), "workload is no object"},
	    {IO(",\"workload\":{\"a\":true}"), "workload.a"},
	    {IO(",\"workload\":{\"a\":-1}"), "workload.a"},
	    {IO(",\"workload\":{\"a\":1,\"b\":2,\"c\":3}"), "workload.c: only 2"},
	    {IO(",\"workload\":{\"a\":1e151}"), "workload.a is too large"},
	    {IO(",\"factors\":[]"), "factors is no object"},
	    {IO(",\"factors\":{\"preempted_ns\":-4}"), "factors.preempted_ns"},
	    {IO(",\"factors\":{\"preempted_ns\":\"4\"}"), "factors.preempted_ns"},
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "\n%s\n", lines[i][0]);
		assert_int_equal(replay(text, true), -EINVAL);
		assert_int_equal(bad, 1);
		if (!strstr(err, lines[i][1]) || !strstr(err, ":2: "))
			fail_msg("'%s' gave '%s'", lines[i][0], err);
		assert_int_equal(seen.count, 0);
	}
}

static void test_go_on(void **state)
{
	(void)state;
	assert_int_equal(replay(IO("") "\nnonsense\n   \n" IO("") "\n{}\n", false), 0);
	assert_int_equal(bad, 2);
	assert_int_equal(recorder__count(&seen, STREAM_BUNDLE), 2);
	assert_int_equal(replay("", false), -ENODATA);
	assert_int_equal(replay("x\n", false), -ENODATA);
	assert_int_equal(bad, 1);
	assert_int_equal(
	    ndjson__replay((const char *const[]){"/nonexistent"}, 1, false, 15, &seen.sink, &bad, err, sizeof(err)),
	    -ENOENT);
	assert_non_null(strstr(err, "/nonexistent"));
}

#define BUNDLE IO(",\"n\":3,\"end_ns\":401,\"factors\":{\"preempted\":5,\"migrations\":1}")

static void test_bundles_and_labels(void **state)
{
	(void)state;
	assert_int_equal(
	    replay(IO(",\"n\":3,\"end_ns\":400,\"min_ns\":20,\"max_ns\":50,\"workload\":{\"peer\":\"1\","
		      "\"function\":\"read me\",\"file\":\"f\",\"k=\":\"v=w\",\"bytes\":64,\"flops\":9}") "\n" BUNDLE
													  "\n",
		   true),
	    0);
	assert_int_equal(nth(0)->n, 3);
	assert_int_equal(nth(0)->sum_ns, 100);
	assert_int_equal(nth(0)->min_ns, 20);
	assert_int_equal(nth(0)->max_ns, 50);
	assert_true(nth(0)->magnitude_min[VAPRO_NAMED] == 9);
	assert_int_equal(nth(0)->last_call, 3);
	assert_int_equal(nth(1)->min_ns, 33);
	assert_int_equal(nth(1)->max_ns, 34);
	assert_int_equal(nth(1)->last_call, 6);
	assert_true(nth(1)->factor[VAPRO_PREEMPTED] == 0); /* times end in _ns */
	assert_true(nth(1)->factor[VAPRO_MIGRATIONS] == 1);
	assert_string_equal(recorder__find(&seen, STREAM_STATE, 1)->state.labels,
			    "file=f function=read_me k_=v=w peer=1");
	assert_string_equal(recorder__find(&seen, STREAM_STATE, 1)->state.common, "function=read_me k_=v=w");
}

/* Ranks one after the other in the file become events window by window, ordered by time. */
/* Locations of threads: of contradictory lines the least holds, in any order of the lines. */
static void test_places(void **state)
{
	static const char *const orders[] = {
	    IO(",\"socket\":1,\"cpu\":7,\"core_type\":\"p\"") "\n" IO(
		",\"socket\":0,\"cgroup\":\"/"
		"b\",\"cpu_model\":\"y\"") "\n" IO(",\"cgroup\":\"/a\",\"cpu_model\":\"x\"") "\n{\"rank\":5,\"class\":"
											     "\"io\",\"at\":\"x\","
											     "\"start_ns\":1,"
											     "\"duration_ns\":1}",
	    IO(",\"cgroup\":\"/a\",\"cpu_model\":\"x\"") "\n" IO(
		",\"socket\":0,\"cgroup\":\"/b\",\"cpu_model\":\"y\"") "\n" IO(",\"socket\":1,\"cpu\":7,\"core_type\":"
									       "\"p\"") "\n{\"rank\":5,\"class\":"
											"\"io\",\"at\":\"x\",\"start_"
											"ns\":1,\"duration_ns\":1}",
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct vapro_place *place;

		assert_int_equal(replay(orders[i], true), 0);
		assert_int_equal(recorder__count(&seen, STREAM_PLACE), 1); /* rank 5 has no known place */
		place = &recorder__find(&seen, STREAM_PLACE, 0)->place;
		assert_int_equal(place->socket, 0);
		assert_int_equal(place->cpu, 7);
		assert_int_equal(place->numa, -1);
		assert_string_equal(place->core_type, "p");
		assert_string_equal(place->cpu_model, "x");
		assert_string_equal(place->cgroup, "/a");
	}
	assert_int_equal(replay(IO(",\"socket\":\"one\""), true), -EINVAL);
	assert_int_equal(replay(IO(",\"numa\":-2"), true), -EINVAL);
	assert_int_equal(replay(IO(",\"cpu_model\":7"), true), -EINVAL);
	/* the model alone is a place, too */
	assert_int_equal(replay(IO(",\"cpu_model\":\"z\""), true), 0);
	assert_string_equal(recorder__find(&seen, STREAM_PLACE, 0)->place.cpu_model, "z");
}

static void test_windows(void **state)
{
	char *text = NULL;
	size_t size, windows = 0;
	uint64_t end_ns = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	for (int rank = 2; rank >= 0; rank--) {
		for (int i = 0; i < 410; i++)
			fprintf(out,
				"{\"rank\":%d,\"job\":\"j\",\"host\":\"h%d\",\"world_size\":3,\"class\":\"io\",\"at\":"
				"\"x\","
				"\"start_ns\":%llu,\"duration_ns\":90000000}\n",
				rank, rank % 2, 100 * S + i * S / 10 + 50000000);
	}
	fclose(out);
	assert_int_equal(replay(text, true), 0);
	free(text);
	assert_int_equal(recorder__count(&seen, STREAM_THREAD), 3);
	assert_int_equal(recorder__count(&seen, STREAM_STATE), 1);
	assert_int_equal(recorder__count(&seen, STREAM_BUNDLE), 1230);
	for (size_t i = 0; i < seen.count; i++) {
		const struct stream_event *event = &seen.events[i];

		if (event->type == STREAM_BUNDLE)
			assert_true(event->bundle.end_ns >= end_ns);
		if (event->type != STREAM_WINDOW)
			continue;
		assert_int_equal(event->window.begin_ns, windows ? end_ns : 100 * S);
		assert_true(isnan(event->window.daemon_cpu_pct));
		end_ns = event->window.end_ns;
		assert_int_equal(end_ns % VAPRO_BIN_NS, 0);
		windows++;
		if (windows < 4)
			assert_int_equal(end_ns, (105 + windows * 10) * S);
		assert_true(event->window.last == (windows == 4));
	}
	assert_int_equal(windows, 4);
	assert_int_equal(end_ns, 141200000000ULL);
}

static void test_two_clocks(void **state)
{
	(void)state;
	assert_int_equal(replay(IO("") "\n{\"rank\":1,\"class\":\"io\",\"at\":\"x\",\"start_ns\":1800000000000000000,"
				       "\"duration_ns\":1}\n",
				false),
			 -ERANGE);
	assert_non_null(strstr(err, "one clock"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_contract),  cmocka_unit_test(test_source),  cmocka_unit_test(test_exact_times),
	    cmocka_unit_test(test_bad_lines), cmocka_unit_test(test_go_on),   cmocka_unit_test(test_bundles_and_labels),
	    cmocka_unit_test(test_places),    cmocka_unit_test(test_windows), cmocka_unit_test(test_two_clocks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
