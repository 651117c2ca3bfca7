// SPDX-License-Identifier: GPL-2.0-or-later
/* Simulated jobs whose times vary from rank to rank, in time, both or not at all, by a known amount. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/accuracy/findings.h"

#define RANKS 16
#define SECONDS 60.0

static struct findings findings;

/* 16 ranks on 2 hosts, with two sockets each. */
static struct job usual(double jitter)
{
	struct job job = {.seed = 2, .ranks = RANKS, .hosts = 2, .seconds = SECONDS, .jitter = jitter};

	job__program(&job, 20e6, 0.2, 0.1);
	return job;
}

static void find(const struct job *job, enum vapro_workload_source source)
{
	struct vapro_config config;
	struct job_totals totals;
	struct truths truths = {0};
	struct stream_sink *sink;

	config__init(&config);
	findings__free(&findings);
	sink = findings__sink(&config, source, &findings);
	assert_non_null(sink);
	assert_int_equal(job__run(job, source, config.window_s, sink, &truths, &totals), 0);
	assert_int_equal(stream__close(sink), 0);
	truths__free(&truths);
	assert_true(findings.variability_count >= 3);
	for (uint32_t i = 1; i < findings.variability_count; i++)
		assert_true(findings.variability[i - 1].seconds >= findings.variability[i].seconds);
}

/* The computation with most time, or the writes. */
static const struct found_variability *of_class(enum vapro_class class)
{
	for (uint32_t i = 0; i < findings.variability_count; i++) {
		if (findings.variability[i].class == class)
			return &findings.variability[i];
	}
	fail_msg("nothing of class %s", vapro_class_name[class]);
	return NULL;
}

static void assert_is(const struct found_variability *found, enum vapro_variability_kind kind,
		      enum vapro_variability_origin origin)
{
	if (found->figures.kind != kind || found->figures.origin != origin)
		fail_msg("%s, %s: in time %.3f, %.3f, spread %.3f, slowest %.3f, between %.3f, software %.3f, "
			 "frequency %.3f",
			 vapro_variability_kind_name[found->figures.kind],
			 vapro_variability_origin_name[found->figures.origin], found->figures.temporal,
			 found->figures.temporal_worst, found->figures.spread, found->figures.slowest,
			 found->figures.between, found->figures.software, found->figures.frequency);
}

static void assert_near(double value, double expected, double error)
{
	if (!(fabs(value - expected) <= error))
		fail_msg("%g, expected %g +- %g", value, expected, error);
}

static void test_quiet(void **state)
{
	const double jitters[] = {0.01, 0.03, 0.06};

	(void)state;
	for (size_t i = 0; i < sizeof(jitters) / sizeof(*jitters); i++) {
		for (int source = 0; source < JOB_MODES; source++) {
			struct job job = usual(jitters[i]);

			find(&job, (enum vapro_workload_source)source);
			for (uint32_t k = 0; k < findings.variability_count; k++) {
				assert_is(&findings.variability[k], VAPRO_VARIES_NOT, VAPRO_ORIGIN_UNKNOWN);
				assert_int_equal(findings.variability[k].figures.rows, RANKS);
				assert_string_equal(findings.variability[k].ranks, "");
			}
			/* batches of n fragments scatter by the jitter over the root of n; 3.29 deviations */
			assert_near(of_class(VAPRO_COMPUTATION)->figures.temporal,
				    3.29 * jitters[i] /
					sqrt(of_class(VAPRO_COMPUTATION)->figures.fragments /
					     of_class(VAPRO_COMPUTATION)->figures.batches),
				    0.1 * jitters[i] + 0.004); /* half a bucket */
		}
	}
}

static void test_slow_socket(void **state)
{
	(void)state;
	for (int source = 0; source < JOB_MODES; source++) {
		struct job job = usual(0.02);
		const struct found_variability *found;

		job__effect(&job, EFFECT_SLOW, 0, 0, 1.2)->ranks = (struct job_ranks){RANKS_SOCKET, 1, 1};
		find(&job, (enum vapro_workload_source)source);
		found = of_class(VAPRO_COMPUTATION);
		assert_is(found, VAPRO_VARIES_SPATIALLY,
			  source == VAPRO_BY_INSTRUCTIONS ? VAPRO_ORIGIN_HARDWARE : VAPRO_ORIGIN_UNKNOWN);
		assert_near(found->figures.slowest, 0.2, 0.015);
		assert_true(found->figures.between > 0.95);
		assert_string_equal(found->ranks, "4-7");
		assert_non_null(strstr(found->place, "socket 1"));
		assert_int_equal(of_class(VAPRO_IO)->figures.kind, VAPRO_VARIES_NOT);
	}
}

/* Another task shares the CPU of each rank for a tenth of the time, one after the other. */
static void test_successive_hogs(void **state)
{
	struct job job = usual(0.02);
	const struct found_variability *found;

	(void)state;
	job.ranks = 10;
	for (int rank = 0; rank < 10; rank++)
		job__effect(&job, EFFECT_CPU_BUSY, 3 + 5.6 * rank, 3 + 5.6 * (rank + 1), 2)->ranks =
		    (struct job_ranks){RANKS_RANGE, rank, rank};
	find(&job, VAPRO_BY_ARGUMENTS);
	found = of_class(VAPRO_COMPUTATION);
	assert_is(found, VAPRO_VARIES_TEMPORALLY, VAPRO_ORIGIN_SOFTWARE);
	assert_true(found->figures.software > 0.95);
	assert_true(found->figures.between < 0.05);
	assert_near(found->figures.temporal, 1, 0.1);
}

/*
 * A power cap at which each processor has its own speed, and varies more in time than the processors differ (varbench,
 * figures 9 and 10): the machine reports the frequencies.
 */
static void test_power_cap(void **state)
{
	(void)state;
	for (int source = 0; source < JOB_MODES; source++) {
		struct job job = usual(0.01);
		const struct found_variability *found;

		for (int socket = 1; socket < 4; socket++)
			job__effect(&job, EFFECT_FREQUENCY, 0, 0, 1 + 0.08 * socket)->ranks =
			    (struct job_ranks){RANKS_SOCKET, socket, socket};
		for (int spell = 0; spell < 4; spell++)
			job__effect(&job, EFFECT_FREQUENCY, 7 + 14 * spell, 14 + 14 * spell, 1.25);
		find(&job, (enum vapro_workload_source)source);
		found = of_class(VAPRO_COMPUTATION);
		assert_is(found, VAPRO_VARIES_BOTH, VAPRO_ORIGIN_HARDWARE);
		assert_near(found->figures.over_fastest, 0.24, 0.04);
		assert_near(found->figures.temporal, 0.22, 0.06);
	}
}

/*
 * Some writes of rank 0 alone take 6 ms more, at random, every half second on average: 0.72 s in all, beside the
 * scatter that all writes have.
 */
static void test_random_io(void **state)
{
	struct job job = usual(0.02);
	const struct found_variability *found;
	struct job_effect *effect;
	double scatter;

	(void)state;
	find(&job, VAPRO_BY_ARGUMENTS);
	scatter = of_class(VAPRO_IO)->call_above_s;
	effect = job__effect(&job, EFFECT_HITS, 0, 0, 2);
	effect->ranks = (struct job_ranks){RANKS_RANGE, 0, 0};
	effect->steps = 1U << JOB_WRITE;
	effect->period = 0.5;
	effect->length = 6e-3;
	find(&job, VAPRO_BY_ARGUMENTS);
	found = of_class(VAPRO_IO);
	assert_is(found, VAPRO_VARIES_TEMPORALLY, VAPRO_ORIGIN_UNKNOWN);
	assert_int_equal(found->temporal_rank, 0);
	assert_int_equal(found->work, VAPRO_WORK_COUNTED);
	assert_non_null(strstr(found->labels, "function=write"));
	assert_near(found->call_p50_s, 2.08e-3, 5e-5);
	/* 2.28 ms of single calls; those of a bin are merged */
	assert_near(found->call_p95_s, 2.2e-3, 0.1e-3);
	assert_near(found->call_above_s - scatter, 6e-3 * SECONDS / 0.5, 0.12);
}

static int free_all(void **state)
{
	(void)state;
	findings__free(&findings);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_quiet),	    cmocka_unit_test(test_slow_socket),
	    cmocka_unit_test(test_successive_hogs), cmocka_unit_test(test_power_cap),
	    cmocka_unit_test(test_random_io),
	};

	return cmocka_run_group_tests(tests, NULL, free_all);
}
