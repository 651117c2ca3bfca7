/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines outside windows, rendered and parsed back, and outputs: files, full disks, pipes. */
#include <errno.h>
#include <unistd.h>

#include "parsed.h"
#include "report/lines.h"
#include "pipeline/line_sink.h"
#include "sample.h"

/* Parses and frees a line, as the next one. */
static cJSON *line(char *text)
{
	keep(NULL, record_table__type_of(text), text);
	free(text);
	return parsed(line_count - 1);
}

static void test_lines(void **state)
{
	const struct line_counter counters[] = {{"instructions", "none", false, "no PMU"}};
	const struct line_pause pauses[] = {{50000, 900, 300}};
	const struct line_costs costs = {450, 240, NAN, 178, NAN, 36, 2500, pauses, 1};
	const struct line_skipped skipped[] = {{"MPI_Init", "jump to its entry"}};
	const struct line_image images[] = {{"/usr/lib/libmpi.so", "1f2e", 40, 38, skipped, 1}};
	struct vapro_config config;
	const struct line_mode modes[] = {{"session", false, "refused"}, {"multi", true, NULL}};
	const struct line_factor factors[] = {{"throttled", "run queue", true, true, "an old kernel"},
					      {"frequency", NULL, false, false, "not measured"}};
	struct line_hello hello = {
	    SAMPLE_UTC,		"n1",	"0.1",	 "6.18.0",	  "multi", false, "no PMU", counters, 1,
	    VAPRO_BY_ARGUMENTS, &costs, &config, {1, SAMPLE_UTC}, modes,   2,	  factors,  2};
	struct line_process process = {.utc_ns = SAMPLE_UTC,
				       .host = "n1",
				       .pid = 5,
				       .exe = "/a.out",
				       .command = "/a.out -n 3",
				       .user_name = "ada",
				       .rank = -1,
				       .images = images,
				       .image_count = 1,
				       .state = LINE_ATTACHED};
	struct line_warning warning = {SAMPLE_UTC, "n1", "ring_full", "the ring was full", 0, 0};
	struct line_bye bye = {.utc_ns = SAMPLE_UTC, .host = "n1", .reason = "signal", .totals = {.untracked_hits = 7}};
	cJSON *object;

	(void)state;
	config__init(&config);
	object = line(lines__hello(&hello));
	is_text(object, "workload_source", "arguments");
	is_number(object, "costs/entry_ns", 450);
	is_null(object, "costs/nop5_ns");
	is_number(object, "costs/sample_ns", 2500);
	is_number(object, "costs/pauses/0/from_ns", 50000);
	is_number(object, "costs/pauses/0/return_ns", 300);
	is_number(object, "tunables/window", 15);
	is_text(object, "tunables/io", "auto");
	is_text(object, "counters/0/reason", "no PMU");
	is_text(object, "attach_modes/0/reason", "refused");
	is_null(object, "attach_modes/1/reason");
	assert_true(cJSON_IsTrue(at(object, "attach_modes/1/works")));
	is_text(object, "factors/0/name", "throttled");
	assert_true(cJSON_IsTrue(at(object, "factors/0/approx")));
	is_text(object, "factors/1/reason", "not measured");
	is_null(object, "factors/1/source");
	cJSON_Delete(object);
	process.rank = INT32_MAX; /* as the environment may have it */
	object = line(lines__process(&process));
	is_number(object, "rank", INT32_MAX);
	cJSON_Delete(object);
	process.rank = -1;
	object = line(lines__process(&process));
	is_null(object, "rank");
	is_null(object, "start_time");
	is_text(object, "command", "/a.out -n 3");
	is_text(object, "user", "ada");
	is_number(object, "images/0/shifted", 38);
	is_text(object, "images/0/skipped/0/function", "MPI_Init");
	is_text(object, "state", "attached");
	cJSON_Delete(object);
	object = line(lines__warning(&warning));
	is_null(object, "pid");
	cJSON_Delete(object);
	object = line(lines__bye(&bye));
	is_number(object, "totals/lost/ring_full", 0);
	is_number(object, "totals/untracked_hits", 7);
	is_text(object, "reason", "signal");
	cJSON_Delete(object);
}

static void test_sink(void **state)
{
	char path[] = "/tmp/vapro-test-sink-XXXXXX", text[64] = "";
	struct line_sink *sink;
	FILE *file;

	(void)state;
	close(mkstemp(path));
	for (int pass = 0; pass < 2; pass++) { /* the second pass replaces the file */
		sink = line_sink__open(path, false);
		assert_non_null(sink);
		assert_int_equal(line_sink__put(sink, "{\"a\":1}"), 0);
		assert_int_equal(line_sink__put(sink, "{}"), 0);
		assert_int_equal(line_sink__close(sink), 0);
	}
	file = fopen(path, "r");
	assert_int_equal(fread(text, 1, sizeof(text) - 1, file), 11);
	fclose(file);
	assert_string_equal(text, "{\"a\":1}\n{}\n");
	unlink(path);
	assert_null(line_sink__open("/nonexistent/x", false));
	assert_int_equal(errno, ENOENT);

	sink = line_sink__open("/dev/full", false);
	assert_null(line_sink__error(sink));
	line_sink__put(sink, "{}");
	assert_int_equal(line_sink__flush(sink), -ENOSPC);
	assert_string_equal(line_sink__error(sink), "/dev/full: No space left on device; lines are being lost");
	line_sink__put(sink, "{}");
	line_sink__put(sink, "{}");
	assert_int_equal(line_sink__flush(sink), 0); /* reported once */
	assert_int_equal(line_sink__lost(sink), 3);
	assert_int_equal(line_sink__close(sink), -ENOSPC);
}

static void test_closed_pipe(void **state)
{
	int ends[2], saved = dup(STDOUT_FILENO), ret, lost;
	struct line_sink *sink;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	fflush(stdout);
	dup2(ends[1], STDOUT_FILENO);
	close(ends[1]);
	sink = line_sink__open("-", false);
	line_sink__put(sink, "{}");
	ret = line_sink__flush(sink); /* does not end this process */
	line_sink__put(sink, "{}");
	line_sink__flush(sink);
	lost = (int)line_sink__lost(sink);
	line_sink__close(sink);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(ret, -EPIPE);
	assert_int_equal(lost, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_lines, clear),
	    cmocka_unit_test_teardown(test_sink, clear),
	    cmocka_unit_test_teardown(test_closed_pipe, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
