// SPDX-License-Identifier: GPL-2.0-or-later
/* Metrics: names and values, bounds of the series, counters that do not fall, the file. VAPRO_TEST_METRICS=FILE leaves
 * one. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "metrics/metrics.h"

#define S 1000000000ULL
#define UTC 1800000000000000000ULL
#define BINS 50
#define RANKS 21

static double values[RANKS][BINS];
static struct result_row rows[RANKS];
static struct result_heatmap map;
static const struct metrics_counts none = {.overhead_pct = NAN};

/* A window of 10 s; rank r has a performance of 1 - r / 100. */
static struct job_result window(const char *job, uint32_t user)
{
	for (int rank = 0; rank < RANKS; rank++) {
		for (int bin = 0; bin < BINS; bin++)
			values[rank][bin] = bin % 2 ? 1 - rank / 100.0 : NAN;
		rows[rank] = (struct result_row){.rank = rank, .thread = -1, .host = "n1", .values = values[rank]};
	}
	map = (struct result_heatmap){
	    .class = VAPRO_COMPUTATION, .begin_ns = UTC, .bins = BINS, .rows = rows, .row_count = RANKS};
	return (struct job_result){.job = job,
				   .user = user,
				   .begin_ns = UTC,
				   .end_ns = UTC + 10 * S,
				   .rank_count = RANKS,
				   .coverage = {[VAPRO_COMPUTATION] = 0.75},
				   .overhead_pct_mean = 0.5,
				   .heatmaps = &map,
				   .heatmap_count = 1};
}

static char *printed(struct metrics *metrics, uint64_t now_ns)
{
	char *text;

	assert_int_equal(metrics__print(metrics, &none, true, now_ns, &text), 0);
	return text;
}

static unsigned series_of(const char *text)
{
	unsigned count = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		count += *line != '#';
	return count;
}

/* The value of a series; NAN where it is not there. */
static double value_of(const char *text, const char *series)
{
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		if (!strncmp(line, series, strlen(series)) && line[strlen(series)] == ' ')
			return atof(line + strlen(series));
	}
	return NAN;
}

static void has_value(struct metrics *metrics, uint64_t now_ns, const char *series, double value)
{
	char *text = printed(metrics, now_ns);
	double got = value_of(text, series);

	if (isnan(value) ? !isnan(got) : !(fabs(got - value) < 1e-9))
		fail_msg("%s is %g, not %g, in\n%s", series, got, value, text);
	free(text);
}

static void add_lost(struct metrics *metrics, const char *job, uint32_t user, const char *cause, double seconds)
{
	struct cause item = {.job = job,
			     .user = user,
			     .cause = cause,
			     .culprit = "secret-hog",
			     .confirmed = true,
			     .lost_seconds = seconds};

	metrics__add_causes(metrics, "main", &(struct cause_list){&item, 1});
}

static void test_values(void **state)
{
	struct metrics *metrics = metrics__new("/nowhere/vapro.prom");
	struct job_result result = window("slurm:7.0", 1002);
	const char *left = getenv("VAPRO_TEST_METRICS");
	FILE *file = left ? fopen(left, "w") : NULL;
	char *text;

	(void)state;
	assert_int_equal(metrics__add(metrics, "main", &result, S), 0);
	add_lost(metrics, "slurm:7.0", 1002, "preempted", 2.5);
	text = printed(metrics, S);
	assert_true(value_of(text, "vapro_up") == 1);
	assert_true(fabs(value_of(text, "vapro_overhead_ratio") - 0.005) < 1e-9);
	assert_true(fabs(value_of(text, "vapro_coverage_ratio{class=\"computation\"}") - 0.75) < 1e-9);
#define RATIO "vapro_job_performance_ratio{cluster=\"main\",job_id=\"slurm:7.0\",class=\"computation\",stat=\""
	assert_true(fabs(value_of(text, RATIO "min\"}") - 0.8) < 1e-9);
	assert_true(fabs(value_of(text, RATIO "p05\"}") - 0.81) < 1e-9);
	assert_true(fabs(value_of(text, RATIO "p50\"}") - 0.9) < 1e-9);
	assert_true(value_of(text, "vapro_job_lost_seconds_total{job_id=\"slurm:7.0\",cause=\"preempted\"}") == 2.5);
	assert_true(value_of(text, "vapro_node_lost_seconds_total{cause=\"preempted\"}") == 2.5);
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
	/* neither commands nor hosts, whatever the records name */
	assert_null(strstr(text, "secret"));
	assert_null(strstr(text, "n1"));
	if (file) {
		fputs(text, file);
		fclose(file);
	}
	free(text);
	metrics__free(metrics);
}

/* Labels have no process and no host of a job without a manager; odd letters are escaped. */
static void test_labels(void **state)
{
	struct metrics *metrics = metrics__new("x.prom");
	struct job_result result = window("none:pid-7857@vm", 0);
	char *text;

	(void)state;
	assert_int_equal(metrics__add(metrics, "a\"b\\c\nd", &result, S), 0);
	text = printed(metrics, S);
	assert_null(strstr(text, "7857"));
	assert_null(strstr(text, "@vm"));
	assert_non_null(strstr(text, "job_id=\"none:"));
	assert_non_null(strstr(text, "cluster=\"a\\\"b\\\\c\\nd\""));
	free(text);
	metrics__free(metrics);
}

/* Sums of causes are revised: counters follow the highest ones. */
static void test_counters_rise(void **state)
{
	struct metrics *metrics = metrics__new("x.prom");
	struct job_result result = window("j", 0);

	(void)state;
	metrics__add(metrics, "main", &result, S);
	add_lost(metrics, "j", 0, "stopped", 3);
	add_lost(metrics, "j", 0, "stopped", 1);
	has_value(metrics, S, "vapro_job_lost_seconds_total{job_id=\"j\",cause=\"throttled_or_stopped\"}", 3);
	add_lost(metrics, "j", 0, "throttled", 4);
	has_value(metrics, S, "vapro_job_lost_seconds_total{job_id=\"j\",cause=\"throttled_or_stopped\"}", 7);
	has_value(metrics, S, "vapro_node_lost_seconds_total{cause=\"stopped\"}", 3);
	add_lost(metrics, "unknown", 0, "stopped", 9);
	has_value(metrics, S, "vapro_node_lost_seconds_total{cause=\"stopped\"}", 3);
	metrics__free(metrics);
}

static void test_alarms(void **state)
{
	struct metrics *metrics = metrics__new("x.prom");
	struct job_result result = window("j", 0);
	struct result_variance variance = {.id = 5, .alarm = false, .severity = VAPRO_CRITICAL};
	struct result_hang hang = {.id = 6, .alarm = true, .severity = VAPRO_CRITICAL};

	(void)state;
	result.variances = &variance;
	result.variance_count = 1;
	metrics__add(metrics, "main", &result, S);
	has_value(metrics, S, "vapro_alarms_total{severity=\"critical\"}", 0);
	variance.alarm = true;
	variance.severity = VAPRO_WARNING;
	for (int i = 0; i < 3; i++)
		metrics__add(metrics, "main", &result, S);
	has_value(metrics, S, "vapro_alarms_total{severity=\"warning\"}", 1);
	variance.severity = VAPRO_CRITICAL;
	result.hang = &hang;
	metrics__add(metrics, "main", &result, S);
	has_value(metrics, S, "vapro_alarms_total{severity=\"warning\"}", 1);
	has_value(metrics, S, "vapro_alarms_total{severity=\"critical\"}", 2);
	metrics__free(metrics);
}

/* 1,000 jobs an hour, each of 40 minutes, for an hour: never more series than the bound, and none of what ended long
 * ago. */
static void test_many_jobs(void **state)
{
	struct metrics *metrics = metrics__new("x.prom");
	unsigned most = 0, shown = 0;
	char name[32];

	(void)state;
	for (unsigned minute = 0; minute < 60; minute++) {
		char *text;

		for (unsigned job = minute < 40 ? 0 : (minute - 40) * 1000 / 60; job < minute * 1000 / 60; job++) {
			struct job_result result;

			snprintf(name, sizeof(name), "slurm:%u.0", job);
			result = window(name, job);
			assert_int_equal(metrics__add(metrics, "main", &result, minute * 60 * S), 0);
			add_lost(metrics, name, job, "preempted", minute);
		}
		text = printed(metrics, minute * 60 * S);
		shown = series_of(text);
		most = shown > most ? shown : most;
		free(text);
	}
	assert_true(most <= METRICS_JOBS * METRICS_OF_JOB + METRICS_FIXED);
	assert_true(shown > METRICS_JOBS);
	has_value(metrics, 60 * 60 * S, "vapro_job_lost_seconds_total{job_id=\"slurm:999.0\",cause=\"preempted\"}",
		  NAN);
	{
		char *text = printed(metrics, 60 * 60 * S);

		assert_true(value_of(text, "vapro_job_lost_seconds_total{job_id=\"other\",cause=\"preempted\"}") >
			    1000);
		free(text);
		text = printed(metrics, 3 * 3600 * S);
		assert_true(series_of(text) <= METRICS_FIXED);
		free(text);
	}
	metrics__free(metrics);
}

/* Two users' jobs of one name: a series must be there once only. */
static void test_same_name(void **state)
{
	struct metrics *metrics = metrics__new("x.prom");
	struct job_result one = window("j", 1), two = window("j", 2);

	(void)state;
	metrics__add(metrics, "main", &one, S);
	metrics__add(metrics, "main", &two, S);
	add_lost(metrics, "j", 1, "preempted", 1);
	add_lost(metrics, "j", 2, "preempted", 2);
	has_value(metrics, S, "vapro_job_lost_seconds_total{job_id=\"j\",cause=\"preempted\"}", 1);
	has_value(metrics, S, "vapro_job_lost_seconds_total{job_id=\"other\",cause=\"preempted\"}", 2);
	has_value(metrics, S, "vapro_node_lost_seconds_total{cause=\"preempted\"}", 3);
	metrics__free(metrics);
}

/* The file is there as a whole or not at all, and another user may read it. */
static void test_file(void **state)
{
	char directory[] = "/tmp/vapro-test-metrics-XXXXXX", path[64], fresh[64];
	struct metrics *metrics;
	struct stat status;
	mode_t mask = umask(0077);

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/vapro.prom", directory);
	snprintf(fresh, sizeof(fresh), "%s/vapro.prom.new", directory);
	metrics = metrics__new(path);
	assert_int_equal(metrics__write(metrics, &none, true, S), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0644);
	/* a link in the way is replaced, not followed */
	assert_int_equal(symlink("/tmp/vapro-test-not-there", fresh), 0);
	assert_int_equal(metrics__write(metrics, &none, false, S), 0);
	assert_int_equal(access("/tmp/vapro-test-not-there", F_OK), -1);
	assert_int_equal(lstat(fresh, &status), -1);
	umask(mask);
	unlink(path);
	rmdir(directory);
	assert_int_equal(metrics__write(metrics, &none, true, S), -ENOENT);
	metrics__free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values), cmocka_unit_test(test_labels),    cmocka_unit_test(test_counters_rise),
	    cmocka_unit_test(test_alarms), cmocka_unit_test(test_many_jobs), cmocka_unit_test(test_same_name),
	    cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
