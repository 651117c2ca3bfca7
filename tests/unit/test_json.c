/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Results as lines: rendered, parsed back, compared. VAPRO_TEST_LINES=FILE keeps them for schema_check.py. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "report/json.h"
#include "report/lines.h"
#include "report/sink.h"
#include "sample.h"

static char *lines[64];
static size_t line_count;

static int keep(void *arg, const char *line)
{
	assert_true(line_count < 64);
	assert_null(strchr(line, '\n'));
	lines[line_count++] = strdup(line);
	return arg ? *(int *)arg : 0;
}

static int clear(void **state)
{
	(void)state;
	while (line_count)
		free(lines[--line_count]);
	return 0;
}

/* Each line kept must be JSON again. */
static cJSON *parsed(size_t number)
{
	cJSON *object = cJSON_ParseWithOpts(lines[number], NULL, true);

	assert_non_null(object);
	return object;
}

static const cJSON *at(const cJSON *object, const char *path)
{
	char copy[128], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *key = strtok_r(copy, "/", &rest); key; key = strtok_r(NULL, "/", &rest)) {
		object = *key >= '0' && *key <= '9' ? cJSON_GetArrayItem(object, atoi(key))
						    : cJSON_GetObjectItemCaseSensitive(object, key);
		if (!object)
			fail_msg("%s is missing", path);
	}
	return object;
}

static void is_text(const cJSON *object, const char *path, const char *text)
{
	assert_true(cJSON_IsString(at(object, path)));
	assert_string_equal(at(object, path)->valuestring, text);
}

static void is_number(const cJSON *object, const char *path, double number)
{
	assert_true(cJSON_IsNumber(at(object, path)));
	assert_true(fabs(at(object, path)->valuedouble - number) < 1e-12);
}

static void is_null(const cJSON *object, const char *path)
{
	assert_true(cJSON_IsNull(at(object, path)));
}

static struct vapro_thread threads[] = {
    {.rank = 0, .job = "slurm:1234.0", .host = "n1"},
    {.id = 1, .rank = 1, .job = "slurm:1234.0", .host = "n1"},
    {.id = 2, .rank = 2, .tid = 1002, .job = "slurm:1234.0", .host = "n2"},
};

static void render(void)
{
	struct json_context context = {
	    .host = "n1",
	    .clock = {5000, SAMPLE_UTC},
	    .daemon_cpu_pct = 0.25,
	    .io_traced_pct = 50,
	    .io_tax_pct = 0.125,
	    .threads = threads,
	    .thread_count = 3,
	};
	struct job_result result;

	sample__fill(&result);
	assert_int_equal(json__window(&result, &context, keep, NULL), 0);
}

static void test_window(void **state)
{
	cJSON *object;

	(void)state;
	render();
	assert_int_equal(line_count, 1 + 2 + 4 + 4);
	object = parsed(0);
	is_text(object, "schema", "vapro/1");
	is_text(object, "type", "window");
	is_text(object, "time", "2027-01-15T08:00:15.000000000Z");
	is_text(object, "host", "n1");
	is_text(object, "job", "slurm:1234.0");
	is_text(object, "begin", "2027-01-15T08:00:00.000000000Z");
	is_text(object, "ranks", "0-3");
	is_number(object, "world_size", 8);
	assert_true(cJSON_IsTrue(at(object, "partial")));
	is_number(object, "coverage/total", 0.9);
	is_null(object, "performance/io");
	is_number(object, "performance/total", 0.94);
	is_number(object, "lost/ring_full", 12);
	is_number(object, "overhead_pct/max", 0.77);
	is_number(object, "io/traced_pct", 50);
	is_number(object, "io/node_tax_pct", 0.125);
	is_number(object, "uncovered/0/share_pct", 6.12);
	is_text(object, "uncovered/0/reason", "few_fragments");
	is_null(object, "uncovered/1/state");
	is_number(object, "clusters/clusters", 9);
	is_number(object, "clusters/slack_pct", 0.1235);
	assert_true(cJSON_IsFalse(at(object, "clusters/exact")));
	is_text(object, "clock/utc", "2027-01-15T08:00:00.000000000Z");
	assert_non_null(strstr(lines[0], "\"fragments\":9007199254740993")); /* 2^53 + 1 */
	cJSON_Delete(object);
	object = parsed(9);
	is_text(object, "type", "rare");
	is_null(object, "cluster");
	is_null(object, "norm");
	cJSON_Delete(object);
	object = parsed(10);
	is_number(object, "rank", 2);
	is_number(object, "cluster", 12);
	is_number(object, "norm", 123456.8);
	cJSON_Delete(object);
}

static void test_heatmap(void **state)
{
	cJSON *object;

	(void)state;
	render();
	object = parsed(1);
	is_text(object, "type", "heatmap");
	is_text(object, "class", "computation");
	is_number(object, "bin_ns", 200000000);
	is_number(object, "rows/2/rank", 2);
	is_number(object, "rows/2/pid", 1002);
	is_text(object, "rows/2/host", "n2");
	assert_null(cJSON_GetObjectItem(at(object, "rows/0"), "host"));
	is_null(object, "rows/2/values/0");
	is_number(object, "rows/2/values/25", 0.52);
	is_number(object, "rows/0/values/3", 1); /* 0.997: two decimals */
	assert_int_equal(cJSON_GetArraySize(at(object, "rows/2/values")), SAMPLE_BINS);
	cJSON_Delete(object);
}

static void test_variance(void **state)
{
	cJSON *object;

	(void)state;
	render();
	object = parsed(3);
	is_text(object, "type", "variance");
	is_number(object, "id", 1);
	is_text(object, "state", "closed");
	is_text(object, "also/0", "io");
	is_text(object, "end", "2027-01-15T08:00:08.000000000Z");
	is_text(object, "ranks", "2");
	is_number(object, "lost_seconds", 1.5);
	is_number(object, "loss_pct", 48);
	is_text(object, "confidence", "confirmed");
	assert_true(cJSON_IsTrue(at(object, "alarm")));
	is_null(object, "effect_of");
	is_text(object, "call_sites/0/symbols", "exchange+0x20 -> reduce+0x14");
	is_number(object, "culprits/0/rank", 2);
	is_text(object, "exemplars/0/start", "2027-01-15T08:00:05.123456789Z");
	is_number(object, "exemplars/0/rank", 2);
	is_number(object, "exemplars/0/factors/preempted_ns", 65e6);
	is_number(object, "exemplars/0/factors/migrations", 2);
	is_number(object, "exemplars/0/site", 0); /* spelt out there */
	assert_null(cJSON_GetObjectItem(at(object, "exemplars/0"), "labels"));
	cJSON_Delete(object);
	object = parsed(5);
	is_text(object, "type", "variance");
	is_number(object, "effect_of", 1);
	is_null(object, "call_sites/0/from");
	is_null(object, "call_sites/0/symbols");
	cJSON_Delete(object);
}

static void test_diagnosis(void **state)
{
	cJSON *object;

	(void)state;
	render();
	object = parsed(4);
	is_text(object, "type", "diagnosis");
	is_number(object, "variance", 1);
	is_number(object, "stage", 2);
	is_number(object, "factors/0/contribution_pct", 91);
	is_null(object, "factors/0/p_value");
	is_text(object, "factors/2/parent", "suspension");
	is_number(object, "factors/3/p_value", 0.0012);
	is_text(object, "factors/3/shared_with", "migrations");
	assert_true(cJSON_IsTrue(at(object, "factors/3/implied")));
	assert_null(cJSON_GetObjectItemCaseSensitive(at(object, "factors/2"), "implied"));
	is_text(object, "regressions/0/outcome", "fitted");
	is_number(object, "regressions/0/rows", 120);
	is_number(object, "regressions/0/r2", 0.75);
	is_text(object, "regressions/1/factor", "memory");
	is_null(object, "regressions/1/r2");
	is_text(object, "where/shared/0/fact", "socket");
	is_text(object, "where/shared/0/value", "1");
	is_number(object, "where/shared/0/others", 2);
	is_text(object, "verdict", "rank 2 lost 1.5 s\a.");
	assert_null(cJSON_GetObjectItemCaseSensitive(object, "region"));
	is_text(object, "interferers/0/comm", "stress-ng");
	is_text(object, "interferers/1/comm", "odd?\"name"); /* no broken UTF-8 goes out */
	is_text(object, "where/hosts/0", "n2");
	assert_int_equal(cJSON_GetArraySize(at(object, "where/hosts")), 1);
	cJSON_Delete(object);
}

/* A region that was chosen by hand says itself where it is. */
static void test_chosen(void **state)
{
	struct json_context context = {.host = "n1", .daemon_cpu_pct = NAN};
	struct job_result result;
	struct result_variance chosen;
	cJSON *object;

	(void)state;
	sample__fill(&result);
	chosen = result.variances[0];
	chosen.id = 0;
	result = (struct job_result){
	    .job = "j", .performance = {NAN, NAN, NAN}, .selections = &chosen, .selection_count = 1};
	assert_int_equal(json__window(&result, &context, keep, NULL), 0);
	assert_int_equal(line_count, 2);
	object = parsed(1);
	is_text(object, "type", "diagnosis");
	is_number(object, "variance", 0);
	is_text(object, "region/class", "computation");
	is_text(object, "region/ranks", "2");
	is_number(object, "region/performance", 0.52);
	is_number(object, "region/lost_seconds", 1.5);
	cJSON_Delete(object);
}

/* What is little, or was told already, takes no space. */
static void test_short(void **state)
{
	const struct vapro_state *edge = &sample_edge, *vertex = &sample_vertex;
	struct json_context context = {.host = "n1", .daemon_cpu_pct = NAN};
	struct result_site sites[] = {{edge, 10}, {vertex, 0.4}};
	struct result_exemplar exemplars[5] = {{.state = vertex}, {.state = edge}};
	struct result_factor factors[] = {
	    {"suspension", 1, NULL, 1, 10, 10, "formula", NAN, true, false, NULL, false},
	    {"irq", 1, NULL, 0, 0, 0, "formula", NAN, false, false, NULL, false},
	    {"steal", 2, "suspension", 0.0008, 0.008, 0, "formula", NAN, false, false, NULL, false},
	    {"preempted", 2, "suspension", 0.9992, 9.992, 10, "formula", NAN, true, false, NULL, false}};
	struct result_uncovered uncovered[] = {{edge, 0.04, VAPRO_FEW_FRAGMENTS},
					       {vertex, 0.015, VAPRO_FEW_FRAGMENTS},
					       {edge, 0.01, VAPRO_FEW_FRAGMENTS},
					       {NULL, 0.007, VAPRO_NOT_SEEN}};
	struct result_variance variance;
	struct job_result result;
	cJSON *object;

	(void)state;
	sample__fill(&result);
	variance = result.variances[0];
	variance.sites = sites;
	variance.site_count = 2;
	variance.exemplars = exemplars;
	variance.exemplar_count = 5;
	variance.alarm = false;
	variance.diagnosis.factors = factors;
	variance.diagnosis.factor_count = 4;
	result = (struct job_result){.job = "j",
				     .performance = {NAN, NAN, NAN},
				     .uncovered = uncovered,
				     .uncovered_count = 4,
				     .variances = &variance,
				     .variance_count = 1};
	assert_int_equal(json__window(&result, &context, keep, NULL), 0);
	assert_int_equal(line_count, 3);
	object = parsed(0);
	assert_int_equal(cJSON_GetArraySize(at(object, "uncovered")), 3);
	is_number(object, "uncovered/0/share_pct", 4);
	is_null(object, "uncovered/1/state");
	is_number(object, "uncovered/1/share_pct", 2.5);
	is_text(object, "uncovered/2/reason", "not_seen");
	cJSON_Delete(object);
	object = parsed(1);
	assert_int_equal(cJSON_GetArraySize(at(object, "call_sites")), 1);
	assert_int_equal(cJSON_GetArraySize(at(object, "exemplars")), 2);
	is_text(object, "exemplars/0/to", vertex->to); /* not among the call-sites */
	assert_null(cJSON_GetObjectItem(at(object, "exemplars/0"), "site"));
	is_number(object, "exemplars/1/site", 0);
	cJSON_Delete(object);
	object = parsed(2);
	assert_int_equal(cJSON_GetArraySize(at(object, "factors")), 3);
	is_text(object, "factors/1/name", "irq"); /* a level-1 part is always told */
	is_text(object, "factors/2/name", "preempted");
	cJSON_Delete(object);
	variance.diagnosis.same = true;
	assert_int_equal(json__window(&result, &context, keep, NULL), 0);
	assert_int_equal(line_count, 3 + 2);
}

static void test_errors(void **state)
{
	struct json_context context = {.host = NULL, .daemon_cpu_pct = NAN, .io_traced_pct = NAN, .io_tax_pct = NAN};
	struct job_result result = {.performance = {NAN, NAN, NAN}};
	int refuse = -EIO;
	cJSON *object;

	(void)state;
	assert_int_equal(json__window(&result, &context, keep, &refuse), -EIO);
	assert_int_equal(line_count, 1);
	object = parsed(0); /* an empty job is a line all the same */
	is_null(object, "daemon_cpu_pct");
	is_null(object, "io/node_tax_pct");
	is_null(object, "clock");
	is_null(object, "performance/total");
	is_text(object, "ranks", "");
	cJSON_Delete(object);
}

static void check_ranks(const int32_t *ranks, uint32_t count, const char *expected)
{
	char *text = json__ranks(ranks, count);

	assert_string_equal(text, expected);
	free(text);
}

static void test_helpers(void **state)
{
	char buf[JSON_TIME_SIZE];
	uint64_t back;
	cJSON *item;

	(void)state;
	check_ranks((const int32_t[]){0, 1, 2, 3, 7}, 5, "0-3,7");
	check_ranks((const int32_t[]){5}, 1, "5");
	check_ranks((const int32_t[]){-1, 0, 1, 3}, 4, "?,0-1,3");
	check_ranks((const int32_t[]){-1, -1}, 2, "?");
	check_ranks(NULL, 0, "");
	assert_string_equal(json__time(0, buf), "1970-01-01T00:00:00.000000000Z");
	assert_true(strlen(json__time(UINT64_MAX, buf)) < JSON_TIME_SIZE);
	json__time(1800000000123456789ULL, buf);
	assert_string_equal(buf, "2027-01-15T08:00:00.123456789Z");
	assert_true(json__parse_time(buf, &back));
	assert_true(back == 1800000000123456789ULL);
	assert_true(json__parse_time("2027-01-15T08:00:00.5Z", &back));
	assert_true(back == 1800000000500000000ULL);
	assert_false(json__parse_time("2027-01-15", &back));
	assert_false(json__parse_time("2027-01-15T08:00:00+01:00", &back));
	item = json__number(-0.0001, 3);
	assert_false(signbit(item->valuedouble));
	cJSON_Delete(item);
}

static void test_lines(void **state)
{
	const struct line_counter counters[] = {{"instructions", "none", false, "no PMU"}};
	const struct line_pause pauses[] = {{50000, 900, 300}};
	const struct line_costs costs = {450, 240, 15400, NAN, 178, NAN, pauses, 1};
	const struct line_skipped skipped[] = {{"MPI_Init", "jump to its entry"}};
	const struct line_image images[] = {{"/usr/lib/libmpi.so", "1f2e", 40, 38, 2, skipped, 1}};
	struct vapro_config config;
	const struct line_rung ladder[] = {{"session", true, false, "refused"}, {"multi", true, true, NULL}};
	const struct line_facts facts = {LINE_YES, LINE_NO, LINE_UNKNOWN, LINE_NO};
	const struct line_factor factors[] = {{"throttled", "run queue", true, true, "an old kernel"},
					      {"frequency", NULL, false, false, "not told"}};
	struct line_hello hello = {
	    SAMPLE_UTC,		"n1",	"0.1",	 "6.18.0",	  "multi", false, "no PMU", counters, 1,
	    VAPRO_BY_ARGUMENTS, &costs, &config, {1, SAMPLE_UTC}, ladder,  2,	  &facts,   factors,  2};
	struct line_process process = {.utc_ns = SAMPLE_UTC,
				       .host = "n1",
				       .pid = 5,
				       .exe = "/a.out",
				       .rank = -1,
				       .images = images,
				       .image_count = 1,
				       .state = LINE_ATTACHED};
	struct line_warning warning = {SAMPLE_UTC, "n1", "ring_full", "the ring was full", 0};
	struct line_bye bye = {.utc_ns = SAMPLE_UTC, .host = "n1", .exit_reason = "signal"};
	char *text;
	cJSON *object;

	(void)state;
	config__init(&config);
	text = lines__hello(&hello);
	keep(NULL, text);
	free(text);
	object = parsed(0);
	is_text(object, "workload_source", "arguments");
	is_number(object, "costs/entry_ns", 450);
	is_null(object, "costs/nop5_ns");
	is_number(object, "costs/pauses/0/from_ns", 50000);
	is_number(object, "costs/pauses/0/return_ns", 300);
	is_number(object, "tunables/window", 15);
	is_text(object, "tunables/io", "auto");
	is_text(object, "counters/0/reason", "no PMU");
	is_text(object, "ladder/0/reason", "refused");
	is_null(object, "ladder/1/reason");
	assert_true(cJSON_IsTrue(at(object, "ladder/1/works")));
	assert_true(cJSON_IsTrue(at(object, "facts/uretprobe_syscall")));
	assert_true(cJSON_IsFalse(at(object, "facts/nop5_syscall")));
	is_null(object, "facts/emulation");
	is_text(object, "factors/0/name", "throttled");
	assert_true(cJSON_IsTrue(at(object, "factors/0/approx")));
	is_text(object, "factors/1/reason", "not told");
	is_null(object, "factors/1/source");
	cJSON_Delete(object);
	text = lines__process(&process);
	keep(NULL, text);
	free(text);
	object = parsed(1);
	is_null(object, "rank");
	is_null(object, "start_time");
	is_number(object, "images/0/shifted", 38);
	is_text(object, "images/0/skipped/0/function", "MPI_Init");
	is_text(object, "state", "attached");
	cJSON_Delete(object);
	text = lines__warning(&warning);
	keep(NULL, text);
	free(text);
	object = parsed(2);
	is_null(object, "pid");
	cJSON_Delete(object);
	text = lines__bye(&bye);
	keep(NULL, text);
	free(text);
	object = parsed(3);
	is_number(object, "totals/lost/ring_full", 0);
	is_text(object, "exit_reason", "signal");
	cJSON_Delete(object);
}

static void test_sink(void **state)
{
	char path[] = "/tmp/vapro-test-sink-XXXXXX", text[64] = "";
	struct line_sink *sink;
	FILE *file;

	(void)state;
	close(mkstemp(path));
	for (int turn = 0; turn < 2; turn++) { /* truncated at the start */
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
	assert_int_equal(line_sink__flush(sink), 0); /* told once */
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
	ret = line_sink__flush(sink); /* and not the end of this process */
	line_sink__put(sink, "{}");
	line_sink__flush(sink);
	lost = (int)line_sink__lost(sink);
	line_sink__close(sink);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(ret, -EPIPE);
	assert_int_equal(lost, 2);
}

/* Not a test of its own: leaves the lines for the schema's check. */
static void test_keep_lines(void **state)
{
	const char *path = getenv("VAPRO_TEST_LINES");
	struct line_sink *sink;

	if (!path)
		skip();
	test_lines(state);
	render();
	sink = line_sink__open(path, false);
	for (size_t i = 0; i < line_count; i++)
		line_sink__put(sink, lines[i]);
	assert_int_equal(line_sink__close(sink), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_window, clear),    cmocka_unit_test_teardown(test_heatmap, clear),
	    cmocka_unit_test_teardown(test_chosen, clear),    cmocka_unit_test_teardown(test_variance, clear),
	    cmocka_unit_test_teardown(test_diagnosis, clear), cmocka_unit_test_teardown(test_errors, clear),
	    cmocka_unit_test_teardown(test_helpers, clear),   cmocka_unit_test_teardown(test_lines, clear),
	    cmocka_unit_test_teardown(test_sink, clear),      cmocka_unit_test_teardown(test_closed_pipe, clear),
	    cmocka_unit_test_teardown(test_short, clear),     cmocka_unit_test_teardown(test_keep_lines, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
