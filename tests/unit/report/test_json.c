/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Results as lines: rendered, parsed back, compared. VAPRO_TEST_LINES=FILE leaves them for test_records.py. */
#include <errno.h>

#include "parsed.h"
#include "report/json.h"
#include "report/window_json.h"
#include "sample.h"

static void render(void)
{
	struct json_context context = {
	    .host = "n1",
	    .clock = {5000, SAMPLE_UTC},
	    .daemon_cpu_pct = 0.25,
	    .io_traced_pct = 50,
	    .io_tax_pct = 0.125,
	    .bystander_hits = 7000,
	    .bystander_pct = 0.25,
	};
	struct job_result result;

	sample__fill(&result);
	assert_int_equal(window_json__put(&result, &context, keep, NULL), 0);
}

static void test_window(void **state)
{
	cJSON *object;

	(void)state;
	render();
	assert_int_equal(line_count, 1 + 2 + 4 + 5);
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
	is_number(object, "bystanders/hits", 7000);
	is_number(object, "bystanders/cpu_pct", 0.25);
	is_number(object, "uncovered/0/time_pct_of_job", 6.12);
	is_text(object, "uncovered/0/reason", "few_fragments");
	is_null(object, "uncovered/1/labels");
	is_null(object, "uncovered/1/state_id");
	is_number(object, "sensing/unseen_seconds", 0.4);
	is_number(object, "sensing/rank", 3);
	is_number(object, "sensing/intervals/below_100us", 5);
	is_number(object, "sensing/intervals/longer", 8);
	is_number(object, "account_seconds/stopped", 2.5);
	is_number(object, "account_seconds/on_cpu", 12.25);
	is_number(object, "small/count", 17);
	is_number(object, "small/lost_seconds", 0.0625);
	is_number(object, "clusters/clusters", 9);
	is_text(object, "clock/utc", "2027-01-15T08:00:00.000000000Z");
	assert_non_null(strstr(lines[0], "\"fragments\":9007199254740993")); /* 2^53 + 1 */
	cJSON_Delete(object);
	object = parsed(9);
	is_text(object, "type", "rare");
	is_null(object, "cluster");
	cJSON_Delete(object);
	object = parsed(10);
	is_number(object, "rank", 2);
	is_number(object, "cluster", 12);
	cJSON_Delete(object);
}

static void test_noise(void **state)
{
	cJSON *object;

	(void)state;
	render();
	object = parsed(11);
	is_text(object, "type", "noise");
	is_number(object, "id", 3);
	is_number(object, "revision", 2);
	assert_true(cJSON_IsFalse(at(object, "final")));
	is_text(object, "source", "scheduler");
	is_text(object, "what", "kworker");
	is_text(object, "relation", "foreign");
	is_null(object, "pid");
	is_number(object, "n", 1600);
	is_number(object, "longest_us", 1100);
	is_number(object, "period_ms", 12.5);
	is_number(object, "period_least_ms", 10);
	is_number(object, "period_most_ms", 15);
	is_number(object, "time_pct_of_ranks", 2.4);
	is_number(object, "lost_seconds", 0.36);
	is_text(object, "ranks", "0-1");
	is_text(object, "hosts/0", "n1");
	is_number(object, "host_count", 1);
	is_text(object, "begin", "2027-01-15T08:00:00.200000000Z");
	is_number(object, "forgotten_seconds", 0);
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
	is_number(object, "ratio_slow", 2.125);
	is_text(object, "confidence", "confirmed");
	is_text(object, "severity", "critical");
	is_number(object, "caused_seconds", 4.25);
	is_number(object, "cost_pct_of_job", 9.58);
	is_text(object, "scope", "node"); /* 4 of 8 ranks */
	assert_true(cJSON_IsFalse(at(object, "from_start")) && cJSON_IsFalse(at(object, "slow_path")));
	assert_true(cJSON_IsTrue(at(object, "alarm")));
	is_null(object, "effect_of");
	is_text(object, "call_sites/0/source", "exchange+0x20 -> reduce+0x14");
	is_number(object, "call_sites/0/ratio", 2.25);
	is_number(object, "culprits/0/rank", 2);
	is_text(object, "exemplars/0/begin", "2027-01-15T08:00:05.123456789Z");
	is_number(object, "exemplars/0/rank", 2);
	is_number(object, "exemplars/0/tid", 1002);
	is_number(object, "exemplars/0/factors/preempted_ns", 65e6);
	is_number(object, "exemplars/0/factors/migrations", 2);
	/* the call-site of the same state has the full text */
	is_text(object, "exemplars/0/state_id", at(object, "call_sites/0/state_id")->valuestring);
	assert_int_equal(strlen(at(object, "call_sites/0/state_id")->valuestring), 16);
	assert_null(cJSON_GetObjectItem(at(object, "exemplars/0"), "labels"));
	cJSON_Delete(object);
	object = parsed(5);
	is_text(object, "type", "variance");
	is_number(object, "effect_of", 1);
	is_null(object, "call_sites/0/from");
	is_null(object, "call_sites/0/ratio");
	is_text(object, "severity", "warning");
	assert_true(cJSON_IsTrue(at(object, "slow_path")));
	cJSON_Delete(object);
	object = parsed(6);
	is_text(object, "confidence", "place");
	is_text(object, "severity", "info");
	assert_true(cJSON_IsTrue(at(object, "from_start")));
	cJSON_Delete(object);
}

static void test_imbalance(void **state)
{
	struct json_context context = {.host = "n1", .daemon_cpu_pct = NAN};
	struct result_imbalance imbalance;
	struct job_result result;
	cJSON *object;

	(void)state;
	render();
	object = parsed(7);
	is_text(object, "type", "imbalance");
	is_text(object, "ranks", "2-3");
	is_number(object, "ratio", 1.24);
	is_number(object, "ratio_least", 1.2);
	is_number(object, "ratio_most", 1.28);
	is_number(object, "ratio_slow", 1.25);
	is_number(object, "lost_seconds", 0.75);
	is_number(object, "time_pct_of_job", 31);
	is_number(object, "states", 3);
	assert_true(cJSON_IsTrue(at(object, "certain")));
	is_text(object, "shared/0/fact", "host");
	is_text(object, "shared/0/value", "n2");
	is_number(object, "shared/0/others", 0);
	is_number(object, "variance", 1);
	cJSON_Delete(object);
	clear(state);
	/* without shared facts and variance the members are still there; a completely observed job */
	sample__fill(&result);
	imbalance = result.imbalances[0];
	imbalance.shared = NULL;
	imbalance.shared_count = 0;
	imbalance.variance = 0;
	imbalance.certain = false;
	result.imbalances = &imbalance;
	result.partial = false;
	assert_int_equal(window_json__put(&result, &context, keep, NULL), 0);
	object = parsed(7);
	assert_int_equal(cJSON_GetArraySize(at(object, "shared")), 0);
	is_null(object, "variance");
	assert_true(cJSON_IsFalse(at(object, "certain")));
	cJSON_Delete(object);
	object = parsed(3);
	is_text(object, "scope", "job");
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
	is_number(object, "factors/0/contribution_pct_of_level", 91);
	is_null(object, "factors/0/p");
	is_text(object, "factors/2/parent", "suspension");
	is_number(object, "factors/3/p", 0.0012);
	is_text(object, "factors/3/shared_with", "migrations");
	assert_true(cJSON_IsTrue(at(object, "factors/3/implied")));
	assert_null(cJSON_GetObjectItemCaseSensitive(at(object, "factors/2"), "implied"));
	is_text(object, "where/shared/0/fact", "socket");
	is_text(object, "where/shared/0/value", "1");
	is_number(object, "where/shared/0/others", 2);
	is_text(object, "verdict", "rank 2 lost 1.5 s\a.");
	assert_null(cJSON_GetObjectItemCaseSensitive(object, "region"));
	is_text(object, "interferers/0/comm", "stress-ng");
	is_text(object, "interferers/1/comm", "odd?\"name"); /* no broken UTF-8 is written */
	is_text(object, "where/hosts/0", "n2");
	assert_int_equal(cJSON_GetArraySize(at(object, "where/hosts")), 1);
	is_text(object, "cause", "preempted");
	is_text(object, "culprit", "stress-ng");
	cJSON_Delete(object);
}

/* A region that was chosen by hand has its own bounds. */
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
	assert_int_equal(window_json__put(&result, &context, keep, NULL), 0);
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

/* Small or already reported values take no space. */
static void test_short(void **state)
{
	const struct vapro_state *edge = &sample_edge, *vertex = &sample_vertex;
	struct json_context context = {.host = "n1", .daemon_cpu_pct = NAN};
	struct result_site sites[] = {{edge, 10, 2}, {vertex, 0.4, 2}};
	struct result_exemplar exemplars[5] = {{.state = vertex}, {.state = edge}};
	struct result_factor factors[] = {
	    {"suspension", 1, NULL, 1, 10, 10, "formula", NAN, true, false, NULL, false},
	    {"irq", 1, NULL, 0, 0, 0, "formula", NAN, false, false, NULL, false},
	    {"steal", 2, "suspension", 0.0008, 0.008, 0, "formula", NAN, false, false, NULL, false},
	    {"preempted", 2, "suspension", 0.9992, 9.992, 10, "formula", NAN, true, false, NULL, false}};
	struct result_uncovered uncovered[] = {{edge, 0, 0.04, VAPRO_FEW_FRAGMENTS},
					       {vertex, 0, 0.015, VAPRO_FEW_FRAGMENTS},
					       {edge, 0, 0.01, VAPRO_FEW_FRAGMENTS},
					       {NULL, 0, 0.007, VAPRO_NOT_SEEN}};
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
	assert_int_equal(window_json__put(&result, &context, keep, NULL), 0);
	assert_int_equal(line_count, 3);
	object = parsed(0);
	assert_int_equal(cJSON_GetArraySize(at(object, "uncovered")), 3);
	is_number(object, "uncovered/0/time_pct_of_job", 4);
	is_null(object, "uncovered/1/labels");
	is_null(object, "uncovered/1/state_id");
	is_number(object, "uncovered/1/time_pct_of_job", 2.5);
	is_text(object, "uncovered/2/reason", "not_seen");
	cJSON_Delete(object);
	object = parsed(1);
	assert_int_equal(cJSON_GetArraySize(at(object, "call_sites")), 1);
	assert_int_equal(cJSON_GetArraySize(at(object, "exemplars")), 2);
	is_text(object, "exemplars/0/to", vertex->to); /* not among the call-sites */
	assert_string_not_equal(at(object, "exemplars/0/state_id")->valuestring,
				at(object, "call_sites/0/state_id")->valuestring);
	is_text(object, "exemplars/1/state_id", at(object, "call_sites/0/state_id")->valuestring);
	assert_null(cJSON_GetObjectItem(at(object, "exemplars/1"), "to"));
	cJSON_Delete(object);
	object = parsed(2);
	assert_int_equal(cJSON_GetArraySize(at(object, "factors")), 3);
	is_text(object, "factors/1/name", "irq"); /* a level-1 part is always reported */
	is_text(object, "factors/2/name", "preempted");
	cJSON_Delete(object);
	variance.diagnosis.same = true;
	assert_int_equal(window_json__put(&result, &context, keep, NULL), 0);
	assert_int_equal(line_count, 3 + 2);
}

static void test_errors(void **state)
{
	struct json_context context = {.host = NULL,
				       .daemon_cpu_pct = NAN,
				       .io_traced_pct = NAN,
				       .io_tax_pct = NAN,
				       .bystander_hits = NAN,
				       .bystander_pct = NAN};
	struct job_result result = {.performance = {NAN, NAN, NAN}};
	int refuse = -EIO;
	cJSON *object;

	(void)state;
	assert_int_equal(window_json__put(&result, &context, keep, &refuse), -EIO);
	assert_int_equal(line_count, 1);
	object = parsed(0); /* an empty job is a line all the same */
	is_null(object, "daemon_cpu_pct");
	is_null(object, "io/node_tax_pct");
	is_null(object, "bystanders/hits");
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

/* Each record of a job with a known user has the user, other records do not. */
static void test_user(void **state)
{
	struct json_context context = {.host = "n1", .clock = {5000, SAMPLE_UTC}};
	struct job_result result;

	(void)state;
	sample__fill(&result);
	result.user = 1;
	assert_int_equal(window_json__put(&result, &context, keep, NULL), 0);
	assert_true(line_count > 5);
	for (size_t i = 0; i < line_count; i++) {
		cJSON *object = parsed(i);

		is_number(object, "uid", 0);
		cJSON_Delete(object);
	}
	clear(NULL);
	result.user = 0;
	assert_int_equal(window_json__put(&result, &context, keep, NULL), 0);
	for (size_t i = 0; i < line_count; i++) {
		cJSON *object = parsed(i);

		assert_null(cJSON_GetObjectItemCaseSensitive(object, "uid"));
		cJSON_Delete(object);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_window, clear),    cmocka_unit_test_teardown(test_heatmap, clear),
	    cmocka_unit_test_teardown(test_chosen, clear),    cmocka_unit_test_teardown(test_variance, clear),
	    cmocka_unit_test_teardown(test_imbalance, clear), cmocka_unit_test_teardown(test_noise, clear),
	    cmocka_unit_test_teardown(test_diagnosis, clear), cmocka_unit_test_teardown(test_errors, clear),
	    cmocka_unit_test_teardown(test_helpers, clear),   cmocka_unit_test_teardown(test_short, clear),
	    cmocka_unit_test_teardown(test_user, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
