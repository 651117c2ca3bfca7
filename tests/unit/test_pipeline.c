/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events to lines, with a scripted analysis: what is emitted, counted and lost. */
#include "scripted.h"
#include "report/shed_text.h"

static void test_lines(void **state)
{
	struct line_sink *lines = line_sink__open(path, false);
	struct pipeline *pipeline = run(lines, NULL);
	struct line_totals totals;
	char line[20000];
	size_t count = 0;
	FILE *file;

	(void)state;
	assert_true(stub.last);
	pipeline__totals(pipeline, &totals);
	assert_int_equal(totals.windows, 2);
	assert_int_equal(totals.variances, 3); /* reported twice each, counted once */
	assert_int_equal(totals.alarms, 1);
	assert_int_equal(totals.bundles, 2 * 4321);
	assert_int_equal(totals.lost[VAPRO_LOST_RING_FULL], 24);
	assert_int_equal(totals.refused, 1);
	assert_string_equal(pipeline__host(pipeline), "n1"); /* host of the first thread */
	assert_true(pipeline__end_ns(pipeline) == SAMPLE_UTC + 25000000000ULL);
	assert_int_equal(pipeline__close(pipeline), 0);
	assert_int_equal(line_sink__close(lines), 0);
	file = fopen(path, "r");
	while (fgets(line, sizeof(line), file)) {
		if (!count++)
			assert_string_equal(line, "{\"a line\":\"as it is\"}\n");
		else
			assert_non_null(strstr(line, "\"host\":\"n1\""));
	}
	fclose(file);
	assert_int_equal(count, 1 + (12 + 2) + 2 + (10 + 2));
}

/* A run of days counts its variances without storing them all. */
static void test_many_variances(void **state)
{
	const uint64_t second = 1000000000;
	struct pipeline *pipeline = run(NULL, NULL);
	struct line_totals totals;

	(void)state;
	stub.fresh = true;
	for (uint64_t i = 0; i < 3000; i++)
		assert_int_equal(put(pipeline__sink(pipeline),
				     (struct stream_event){.type = STREAM_WINDOW,
							   .window = {SAMPLE_UTC + (25 + 10 * i) * second,
								      SAMPLE_UTC + (35 + 10 * i) * second, false, 0}}),
				 0);
	pipeline__totals(pipeline, &totals);
	assert_int_equal(totals.variances, 3 * (1 + 3000));
	assert_int_equal(totals.alarms, 1 + 3000);
	pipeline__close(pipeline);
}

/* Shed data is reported with each window, in the summary once. */
static void test_shed(void **state)
{
	struct line_sink *lines = line_sink__open(path, false);
	struct summary *summary = summary__new();
	const struct job_result worst = {.job = "slurm:7", .shed = 30};
	unsigned warnings = 0;
	char line[20000], *text;
	FILE *file;

	(void)state;
	shed = (struct vapro_shed){.merged = 12, .coarser = 3, .bundles = 4, .fragments = 40, .seconds = 1.5};
	shed_text__write(&shed, 256 << 20, &worst, line, sizeof(line));
	assert_non_null(strstr(line, "of 40 fragments are uncovered, 30 of them of job slurm:7); raise "));
	pipeline__close(run(lines, summary));
	shed = (struct vapro_shed){0};
	assert_int_equal(line_sink__close(lines), 0);
	file = fopen(path, "r");
	while (fgets(line, sizeof(line), file)) {
		if (!strstr(line, "\"memory_shed\""))
			continue;
		warnings++;
		assert_non_null(
		    strstr(line, "more than 256.0 MiB: 12 bundles merged with others of their state, 3 times "));
		assert_non_null(strstr(line, ", 4 bundles dropped (1.500 s of 40 fragments are uncovered); raise "));
		assert_null(strstr(line, "history"));
	}
	fclose(file);
	assert_int_equal(warnings, 2);
	text = print(summary, 0);
	has(text, "!!! the analysis would hold more than 256.0 MiB");
	assert_null(strstr(strstr(text, "!!! the analysis") + 1, "!!! the analysis"));
	free(text);
	summary__free(summary);
}

/* A full disk loses lines and does not end the run. */
static void test_full_disk(void **state)
{
	struct line_sink *lines = line_sink__open("/dev/full", false);
	struct pipeline *pipeline = run(lines, NULL);
	struct line_totals totals;

	(void)state;
	pipeline__totals(pipeline, &totals);
	assert_int_equal(totals.windows, 2);
	assert_int_equal(totals.lost_lines, 1 + (12 + 2) + 2 + (10 + 2));
	assert_non_null(strstr(line_sink__error(lines), "No space left"));
	pipeline__close(pipeline);
	assert_int_equal(line_sink__close(lines), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_many_variances),
	    cmocka_unit_test(test_full_disk),
	    cmocka_unit_test(test_shed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
