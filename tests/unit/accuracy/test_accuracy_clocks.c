// SPDX-License-Identifier: GPL-2.0-or-later
/* Jobs with a host whose clock is off have the findings of the same jobs with one time on all hosts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/accuracy/findings.h"

#define HOSTS 4

/* Offsets are found in a first window, confirmed in a later one, and corrected before the effects, which begin at 42 s.
 */
static struct job usual(double length_ns)
{
	struct job job = {.seed = 7, .ranks = 16, .hosts = HOSTS, .seconds = 80, .jitter = 0.02};

	job__program(&job, length_ns, 0.2, 0);
	return job;
}

static void find(const struct job *job, enum vapro_workload_source source, struct findings *findings)
{
	struct vapro_config config;
	struct job_totals totals;
	struct truths truths = {0};
	struct stream_sink *sink;

	config__init(&config);
	sink = findings__sink(&config, source, findings);
	assert_non_null(sink);
	assert_int_equal(job__run(job, source, config.window_s, sink, &truths, &totals), 0);
	assert_int_equal(stream__close(sink), 0);
	truths__free(&truths);
}

/* The alarm of a class that lost most; NULL: there is none. */
static const struct found_variance *alarm_of(const struct findings *findings, enum vapro_class class)
{
	const struct found_variance *found = NULL;

	for (size_t i = 0; i < findings->variance_count; i++) {
		const struct found_variance *at = &findings->variances[i];

		if (at->alarm && at->class == class && (!found || at->lost > found->lost))
			found = at;
	}
	return found;
}

static unsigned alarms(const struct findings *findings)
{
	unsigned count = 0;

	for (size_t i = 0; i < findings->variance_count; i++)
		count += findings->variances[i].alarm;
	return count;
}

/* Seconds of waiting that are an effect of a variance. */
static double waiting_for(const struct findings *findings, uint64_t id)
{
	double sum = 0;

	for (size_t i = 0; i < findings->variance_count; i++)
		sum += findings->variances[i].effect_of == id ? findings->variances[i].lost : 0;
	return sum;
}

static void assert_offset(const struct findings *findings, const struct job *job)
{
	assert_int_equal(findings->clock_count, HOSTS);
	for (uint32_t i = 0; i < HOSTS; i++) {
		const struct found_clock *clock = &findings->clocks[i];
		double expected = (int)i == job->skewed_host ? job->skew_s : 0;

		if (!clock->known || fabs(clock->offset - expected) > 0.010 || clock->spread > 0.05 ||
		    fabs(clock->corrected - expected) > 0.010)
			fail_msg("clock of %s: known %d, %.3f ms +- %.3f, corrected %.3f, expected %.3f", clock->host,
				 clock->known, 1e3 * clock->offset, 1e3 * clock->spread, 1e3 * clock->corrected,
				 1e3 * expected);
	}
}

/* The same alarm, with the same ranks and effects, at the same time. */
static void assert_same(const struct job *job, const struct findings *even, const struct findings *skewed)
{
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		const struct found_variance *a = alarm_of(even, class), *b = alarm_of(skewed, class);

		assert_int_equal(!a, !b);
		if (!a)
			continue;
		if (a->rank_count != b->rank_count || memcmp(a->ranks, b->ranks, a->rank_count * sizeof(*a->ranks)) ||
		    fabs(a->begin - b->begin) > 0.2001 || fabs(a->end - b->end) > 0.2001 ||
		    fabs(a->lost - b->lost) > 0.1 * a->lost ||
		    fabs(waiting_for(even, a->id) - waiting_for(skewed, b->id)) > 0.15 * waiting_for(even, a->id)) {
			findings__print(even, stderr);
			findings__print(skewed, stderr);
			fail_msg("host %d, %.3f s: %.1f..%.1f and %.1f..%.1f, %.3f and %.3f s, waiting %.3f and %.3f",
				 job->skewed_host, job->skew_s, a->begin, a->end, b->begin, b->end, a->lost, b->lost,
				 waiting_for(even, a->id), waiting_for(skewed, b->id));
		}
	}
	assert_int_equal(alarms(even), alarms(skewed));
}

static void assert_same_with(struct job job, enum vapro_workload_source source, const double *skews, size_t count)
{
	struct findings even, skewed;

	find(&job, source, &even);
	assert_true(alarms(&even) > 0);
	assert_offset(&even, &job);
	for (size_t i = 0; i < count; i++) {
		job.skew_s = skews[i];
		find(&job, source, &skewed);
		assert_offset(&skewed, &job);
		assert_same(&job, &even, &skewed);
		findings__free(&skewed);
	}
	findings__free(&even);
}

static void assert_findings_stay(struct job job, enum vapro_workload_source source)
{
	static const double skews[] = {0.13, 0.5, 2, -0.13, -0.5, -2};

	assert_same_with(job, source, skews, sizeof(skews) / sizeof(*skews));
}

/* All kernels say that their clocks are right, and one is wrong. */
static void a_hog_on_a_host_whose_kernel_is_wrong(void **state)
{
	static const double skews[] = {0.05, -0.1, 0.3, -1, 0.004};
	struct job job = usual(5e6);

	(void)state;
	job__effect(&job, EFFECT_CPU_BUSY, 42, 50, 2)->ranks = (struct job_ranks){RANKS_RANGE, 6, 6};
	job.skewed_host = 1;
	job.clock_error_s = 0.005;
	assert_same_with(job, VAPRO_BY_ARGUMENTS, skews, sizeof(skews) / sizeof(*skews));
}

static void a_hog_on_the_skewed_host(void **state)
{
	struct job job = usual(5e6);

	(void)state;
	job__effect(&job, EFFECT_CPU_BUSY, 42, 50, 2)->ranks = (struct job_ranks){RANKS_RANGE, 6, 6};
	job.skewed_host = 1;
	assert_findings_stay(job, VAPRO_BY_ARGUMENTS);
}

static void a_hog_beside_the_skewed_host(void **state)
{
	struct job job = usual(5e6);

	(void)state;
	job__effect(&job, EFFECT_CPU_BUSY, 42, 50, 2)->ranks = (struct job_ranks){RANKS_RANGE, 6, 6};
	job.skewed_host = 3;
	assert_findings_stay(job, VAPRO_BY_INSTRUCTIONS);
}

/* A stall shorter than the offset: its waiting is elsewhere in time. */
static void a_short_stall(void **state)
{
	struct job job = usual(20e6);
	struct job_effect *effect = job__effect(&job, EFFECT_STALLS, 45, 0, 1);

	(void)state;
	effect->ranks = (struct job_ranks){RANKS_RANGE, 0, 0};
	effect->length = 0.6;
	job.skewed_host = 0;
	assert_findings_stay(job, VAPRO_BY_ARGUMENTS);
}

static void a_slow_network(void **state)
{
	struct job job = usual(5e6);

	(void)state;
	job__effect(&job, EFFECT_CALLS, 42, 54, 4);
	job.skewed_host = 2;
	assert_findings_stay(job, VAPRO_BY_ARGUMENTS);
}

/* The ranks of one host are slow, among their peers on the other hosts and whatever its clock says. */
static void a_slow_host_is_named(void **state)
{
	static const double skews[] = {0, 0.5};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct job job = usual(5e6);
		struct findings findings;
		bool named = false;

		job__effect(&job, EFFECT_SLOW, 0, 0, 1.4)->ranks = (struct job_ranks){RANKS_HOST, 2, 2};
		job.skewed_host = 2;
		job.skew_s = skews[i];
		find(&job, VAPRO_BY_ARGUMENTS, &findings);
		for (size_t k = 0; k < findings.imbalance_count; k++) {
			const struct found_imbalance *at = &findings.imbalances[k];

			named |= at->rank_count == 4 && at->ranks[0] == 8 && at->ranks[3] == 11 &&
				 strstr(at->place, "host n2");
		}
		assert_true(named);
		findings__free(&findings);
	}
}

static void without_collectives_nothing_is_known(void **state)
{
	struct job job = usual(5e6);
	struct findings even, skewed;

	(void)state;
	job.step_count = JOB_ALLREDUCE; /* neighbours exchange, and no rank leaves with all others */
	job__effect(&job, EFFECT_CPU_BUSY, 42, 50, 2)->ranks = (struct job_ranks){RANKS_RANGE, 6, 6};
	find(&job, VAPRO_BY_ARGUMENTS, &even);
	job.skewed_host = 1;
	job.skew_s = 0.5;
	find(&job, VAPRO_BY_ARGUMENTS, &skewed);
	assert_int_equal(skewed.clock_count, HOSTS);
	for (uint32_t i = 0; i < HOSTS; i++) {
		assert_false(skewed.clocks[i].known);
		assert_true(skewed.clocks[i].corrected == 0);
	}
	findings__free(&even);
	findings__free(&skewed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_hog_on_the_skewed_host),
	    cmocka_unit_test(a_hog_beside_the_skewed_host),
	    cmocka_unit_test(a_hog_on_a_host_whose_kernel_is_wrong),
	    cmocka_unit_test(a_short_stall),
	    cmocka_unit_test(a_slow_network),
	    cmocka_unit_test(a_slow_host_is_named),
	    cmocka_unit_test(without_collectives_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
