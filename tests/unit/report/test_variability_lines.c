/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variability as a record, and as the table of people, from the record alone. VAPRO_TEST_LINES=FILE leaves the records
 * for test_records.py.
 */
#include "summarized.h"
#include "report/variability_text.h"
#include "report/window_json.h"

static const struct vapro_state loop = {.class = VAPRO_COMPUTATION,
					.from = "exe@1a+0x10",
					.to = "exe@1a+0x20",
					.labels = "function=MPI_Allreduce",
					.common = "function=MPI_Allreduce"};
static const struct vapro_state reads = {
    .class = VAPRO_IO, .to = "exe@1a+0x30", .labels = "function=read", .common = "function=read"};
static const int32_t slow[] = {4, 5, 6, 7};
static const struct result_shared socket[] = {{"socket", "1", 0, "n2"}};

static const struct result_variability workloads[] = {
    {
	.state = &loop,
	.work = VAPRO_WORK_COUNTED,
	.figures = {.kind = VAPRO_VARIES_SPATIALLY,
		    .origin = VAPRO_ORIGIN_HARDWARE,
		    .rows = 8,
		    .batches = 1600,
		    .fragments = 16000,
		    .between = 0.9812,
		    .temporal = 0.0123,
		    .temporal_worst = 0.0234,
		    .range_over_mean = 0.0512,
		    .spread = 0.21,
		    .slowest = 0.2001,
		    .over_fastest = 0.2222,
		    .rv = 3.11,
		    .rv_worst = -4.5,
		    .rv_n = 200,
		    .rv_error = 0.3464,
		    .software = -0.001,
		    .frequency = 0,
		    .stalls = 0.912},
	.seconds = 321.5,
	.temporal_rank = 3,
	.rv_rank = 2,
	.slow_ranks = slow,
	.slow_count = 4,
	.shared = socket,
	.shared_count = 1,
	.call_p50_s = NAN,
	.call_p95_s = NAN,
	.call_above_s = NAN,
    },
    {
	.state = &reads,
	.work = VAPRO_WORK_COUNTED,
	.figures = {.kind = VAPRO_VARIES_TEMPORALLY,
		    .rows = 1,
		    .batches = 50,
		    .fragments = 400,
		    .between = NAN,
		    .temporal = 1.5,
		    .temporal_worst = 1.5,
		    .range_over_mean = 2.5,
		    .spread = NAN,
		    .slowest = NAN,
		    .over_fastest = NAN,
		    .rv = NAN,
		    .rv_worst = NAN,
		    .rv_n = NAN,
		    .rv_error = NAN,
		    .software = 0.01,
		    .stalls = NAN},
	.seconds = 3.1,
	.temporal_rank = 0,
	.rv_rank = -1,
	.call_p50_s = 6e-3,
	.call_p95_s = 24e-3,
	.call_above_s = 1.25,
    },
    {
	.state = &loop,
	.figures = {.kind = VAPRO_VARIES_TEMPORALLY,
		    .origin = VAPRO_ORIGIN_SOFTWARE,
		    .rows = 2,
		    .batches = 50,
		    .fragments = 400,
		    .temporal = 0.5,
		    .temporal_worst = 1.5,
		    .spread = NAN,
		    .rv = NAN,
		    .software = 0.9,
		    .stalls = NAN},
	.seconds = 2,
	.temporal_rank = 1,
	.rv_rank = -1,
	.call_p50_s = NAN,
    },
};

static void render(void)
{
	const struct json_context context = {.host = "n1"};
	const struct job_result result = {.job = "slurm:1",
					  .begin_ns = 1800000000000000000ULL,
					  .end_ns = 1800000010000000000ULL,
					  .variability = workloads,
					  .variability_count = 3};

	assert_int_equal(window_json__put(&result, &context, keep, NULL), 0);
	assert_int_equal(line_count, 4); /* the window, too */
}

static void test_record(void **state)
{
	cJSON *object;

	(void)state;
	render();
	object = parsed(1);
	is_text(object, "type", "variability");
	is_text(object, "job", "slurm:1");
	is_text(object, "class", "computation");
	is_text(object, "kind", "spatial");
	is_text(object, "origin", "hardware");
	is_text(object, "work", "counted");
	is_number(object, "seconds", 321.5);
	is_number(object, "ranks", 8);
	is_number(object, "batches", 1600);
	is_number(object, "fragments_per_batch", 10);
	is_number(object, "temporal/median_pct", 1.23);
	is_number(object, "temporal/worst_pct", 2.34);
	is_number(object, "temporal/worst_rank", 3);
	is_number(object, "temporal/range_over_mean_pct", 5.12);
	is_number(object, "spatial/spread_pct", 21);
	is_number(object, "spatial/slowest_pct", 20.01);
	is_number(object, "spatial/slowest_over_fastest_pct", 22.22);
	is_number(object, "spatial/between_pct", 98.12);
	is_text(object, "spatial/slow_ranks", "4-7");
	is_text(object, "spatial/shared/0/fact", "socket");
	is_number(object, "rv/median", 3.11);
	is_number(object, "rv/worst", -4.5);
	is_number(object, "rv/worst_rank", 2);
	is_number(object, "rv/batches", 200);
	is_number(object, "rv/error", 0.35);
	is_number(object, "software_pct", 0);
	is_number(object, "stalls_pct", 91.2);
	assert_null(cJSON_GetObjectItem(object, "calls"));
	cJSON_Delete(object);
	object = parsed(2);
	is_text(object, "origin", "unknown");
	is_null(object, "spatial/spread_pct");
	is_null(object, "spatial/slowest_pct");
	is_null(object, "spatial/slowest_over_fastest_pct");
	is_null(object, "spatial/between_pct");
	is_text(object, "spatial/slow_ranks", "");
	is_null(object, "rv");
	is_null(object, "stalls_pct");
	is_number(object, "calls/p50_us", 6000);
	is_number(object, "calls/p95_us", 24000);
	is_number(object, "calls/above_p50_seconds", 1.25);
	cJSON_Delete(object);
}

static void assert_note(size_t line, const char *expected)
{
	char text[VARIABILITY_NOTE_SIZE];
	cJSON *object = parsed(line);

	assert_string_equal(variability_text__note(object, text), expected);
	cJSON_Delete(object);
}

static void test_notes(void **state)
{
	(void)state;
	render();
	assert_note(1, "slow: ranks 4-7, all on socket 1 of host n2");
	assert_note(2, "calls: median 6 ms, 95th percentile 24 ms, 1.25 s above the median");
	assert_note(3, "most in time: rank 1; the amount of work is not known: it may vary");
}

static void test_section(void **state)
{
	char *text;

	(void)state;
	render();
	text = summarized(true);
	assert_non_null(strstr(text, "\nVariability of equal work, by batches\n"
				     "kind     origin          time  in time    worst  slowest  between         RV  "
				     "workload\n"
				     "spatial  hardware  5 min 22 s    1.2 %    2.3 %   20.0 %   98.1 %   3.1+-0.3  "));
	/* most time first, whatever the order of the lines */
	assert_true(strstr(text, "spatial ") < strstr(text, "temporal unknown"));
	assert_true(strstr(text, "temporal unknown") < strstr(text, "temporal software"));
	free(text);
	text = summarized(false);
	assert_null(strstr(text, "Variability"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_record, clear),
	    cmocka_unit_test_teardown(test_notes, clear),
	    cmocka_unit_test_teardown(test_section, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
