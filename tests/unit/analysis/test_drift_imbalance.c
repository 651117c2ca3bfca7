// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Drift and imbalance are reported as such, not as variances, alone and beside a hog, which alone is an
 * alarm; and a hog is neither.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "sim.h"

#define HOG                                                                                                            \
	{                                                                                                              \
		.rank = 1, .begin = 33, .end = 38, .pid = 77                                                           \
	}

static const struct {
	const char *name;
	struct sim_scenario scenario;
	bool drift, imbalance, alarm;
} diagnoses[] = {
    {"nothing", {.ranks = 3, .seconds = 80, .seed = 1, .noise = 0.03}, false, false, false},
    {"hog", {.ranks = 3, .seconds = 80, .seed = 2, .noise = 0.03, .hogs = {HOG}, .hog_count = 1}, false, false, true},
    {"drift", {.ranks = 3, .seconds = 80, .seed = 3, .noise = 0.03, .drift = 0.007}, true, false, false},
    {"drift and hog",
     {.ranks = 3, .seconds = 80, .seed = 4, .noise = 0.03, .drift = 0.007, .hogs = {HOG}, .hog_count = 1},
     true,
     false,
     true},
    {"imbalance", {.ranks = 3, .seconds = 80, .seed = 5, .noise = 0.03, .slow_rank_factor = 1.4}, false, true, false},
    {"imbalance and hog",
     {.ranks = 3, .seconds = 80, .seed = 6, .noise = 0.03, .slow_rank_factor = 1.4, .hogs = {HOG}, .hog_count = 1},
     false,
     true,
     true},
    {"a step of all",
     {.ranks = 3, .seconds = 80, .seed = 7, .noise = 0.03, .grow_at = 40, .grow_factor = 1.3},
     true,
     false,
     false},
};

static void test_drift_imbalance(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		struct sim_report report;
		const struct sim_found *alarm;
		bool good;

		sim_run(&diagnoses[i].scenario, VAPRO_BY_ARGUMENTS, &report);
		alarm = sim_alarm(&report);
		good = (report.drifts > 0) == diagnoses[i].drift && (report.imbalances > 0) == diagnoses[i].imbalance &&
		       report.ever_alarms == diagnoses[i].alarm && (alarm != NULL) == diagnoses[i].alarm;
		/* the hog's place, time and cost, whatever else is reported */
		if (good && alarm)
			good = alarm->first_rank == 1 && alarm->last_rank == 1 && fabs(alarm->begin - 33) < 0.5 &&
			       fabs(alarm->end - 38) < 0.5 && alarm->interferer_pid == 77 &&
			       fabs(alarm->lost_by_class[VAPRO_COMPUTATION] / report.truth_preempted[1] - 1) < 0.15;
		if (good && diagnoses[i].imbalance)
			good = report.imbalance.slow_rank == 2 &&
			       fabs(report.imbalance.slow_ns / report.imbalance.fast_ns - 1.4) < 0.05;
		if (!good) {
			sim_print(&report);
			fail_msg("%s: %d drifts, %d imbalances, %d alarms", diagnoses[i].name, report.drifts,
				 report.imbalances, report.ever_alarms);
		}
	}
}

/* Equal instructions that take longer, window by window, are a drift of speed; more of them are none. */
static void test_drift_of_counted_work(void **state)
{
	static const struct {
		struct sim_scenario scenario;
		bool drift;
	} jobs[] = {
	    {{.ranks = 3, .seconds = 80, .seed = 1, .noise = 0.03}, false},
	    {{.ranks = 3, .seconds = 80, .seed = 3, .noise = 0.03, .drift = 0.003}, true},
	    {{.ranks = 3, .seconds = 80, .seed = 4, .noise = 0.03, .hogs = {HOG}, .hog_count = 1}, false},
	    {{.ranks = 3, .seconds = 80, .seed = 7, .noise = 0.03, .grow_at = 40, .grow_factor = 1.3}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
		struct sim_report report;

		sim_run(&jobs[i].scenario, VAPRO_BY_INSTRUCTIONS, &report);
		if ((report.drifts > 0) != jobs[i].drift) {
			sim_print(&report);
			fail_msg("job %zu: %d drifts", i, report.drifts);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_drift_imbalance),
	    cmocka_unit_test(test_drift_of_counted_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
