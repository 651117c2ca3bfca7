// SPDX-License-Identifier: GPL-2.0-or-later
/* A run in one line and in ten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "page/report_text.h"
#include "report/run_option.h"

#define HEAD                                                                                                           \
	"{\"schema\":\"vapro/1\",\"time\":\"2026-01-01T00:00:10.000000000Z\",\"host\":\"n1\",\"job\":\"slurm:7.0\","
#define SPAN "\"begin\":\"2026-01-01T00:00:00.000000000Z\",\"end\":\"2026-01-01T00:00:10.000000000Z\","
#define WINDOW                                                                                                         \
	HEAD "\"type\":\"window\"," SPAN                                                                               \
	     "\"ranks\":\"0-1\",\"world_size\":2,\"coverage\":{\"computation\":0.9,\"communication\":0.05,\"io\":0,"   \
	     "\"total\":0.95},\"performance\":{\"computation\":1,\"communication\":1,\"io\":null,\"total\":1}}\n"

static void read_report(struct run_report *report, char *records)
{
	FILE *file = fmemopen(records, strlen(records), "r");

	assert_non_null(file);
	assert_int_equal(run_report__init(report), 0);
	assert_int_equal(run_report__add_file(report, file, RUN_OPTION_LAST, "test"), 0);
	assert_int_equal(run_report__finish(report), 0);
	fclose(file);
}

/* Writes the records of many slow regions, each of another cause. */
static char *slow_records(int count)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	fputs(WINDOW, out);
	for (int i = 1; i <= count; i++) {
		fprintf(out,
			HEAD "\"type\":\"variance\"," SPAN
			     "\"id\":%d,\"revision\":1,\"state\":\"closed\",\"class\":\"computation\",\"ranks\":\"%d\","
			     "\"rank_count\":1,\"lost_seconds\":%d,\"confirmed\":true,\"confidence\":\"confirmed\","
			     "\"alarm\":true,"
			     "\"severity\":\"critical\",\"performance\":0.5}\n",
			i, i, i);
		fprintf(out,
			HEAD
			"\"type\":\"diagnosis\",\"variance\":%d,\"cause\":\"preempted\",\"culprit\":\"a\\\"b`$(x)%d\","
			"\"interferers\":[{\"comm\":\"a\\\"b`$(x)%d\",\"pid\":%d,\"relation\":\"foreign\",\"seconds\":%"
			"d}]}\n",
			i, i, i, 100 + i, i);
	}
	fclose(out);
	return text;
}

static size_t lines_of(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static void a_line_stands_in_a_command(void **state)
{
	char line[REPORT_LINE_SIZE], *quiet = strdup(WINDOW), *slow = slow_records(3), job[300];
	struct run_report report;

	(void)state;
	read_report(&report, quiet);
	assert_memory_equal(report_text__line(&report, "7", line), "vapro: quiet: ", 14);
	assert_non_null(strstr(line, "; 95 % evaluated; vapro report --job 7"));
	memset(job, 'j', sizeof(job));
	job[sizeof(job) - 1] = '\0';
	assert_true(strlen(report_text__line(&report, job, line)) <= 250);
	run_report__free(&report);
	read_report(&report, slow);
	report_text__line(&report, NULL, line);
	assert_non_null(strstr(line, "critical: "));
	assert_true(strlen(line) <= 250);
	for (const char *at = line; *at; at++)
		assert_true(*at >= ' ' && *at <= '~' && !strchr("\"'`$\\", *at));
	run_report__free(&report);
	free(quiet);
	free(slow);
}

static void a_text_has_ten_lines_at_most(void **state)
{
	(void)state;
	for (int count = 0; count < 20; count += 3) {
		char *records = slow_records(count), *text = NULL;
		struct run_report report;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		read_report(&report, records);
		assert_int_equal(report_text__write(&report, "more", out), 0);
		fclose(out);
		assert_true(lines_of(text) >= 4 && lines_of(text) <= REPORT_TEXT_LINES);
		assert_non_null(strstr(text, "2 ranks"));
		assert_non_null(strstr(text, "\nmore\n"));
		if (count > 9)
			assert_non_null(strstr(text, " more\n"));
		run_report__free(&report);
		free(records);
		free(text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_line_stands_in_a_command),
	    cmocka_unit_test(a_text_has_ten_lines_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
