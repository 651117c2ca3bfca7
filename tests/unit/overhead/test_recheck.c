// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "overhead/recalibrate.h"

static void one_that_differs_is_an_accident(void **state)
{
	struct recalibration recalibration = {0};
	double ratio = 0;

	(void)state;
	assert_false(recalibrate__judge(&recalibration, 700, 2000, &ratio));
	assert_false(recalibrate__judge(&recalibration, 700, 720, &ratio));
	assert_false(recalibrate__judge(&recalibration, 700, 2000, &ratio));
	assert_false(recalibrate__judge(&recalibration, 700, 0, &ratio)); /* not measured */
	assert_false(recalibrate__judge(&recalibration, 700, 2000, &ratio));
	assert_false(recalibrate__judge(&recalibration, 700, 300, &ratio)); /* cheaper, not more expensive */
	assert_true(recalibrate__judge(&recalibration, 700, 350, &ratio));
	assert_true(ratio == 0.5); /* the nearer ratio */
}

static void two_that_agree_are_used(void **state)
{
	struct recalibration recalibration = {0};
	struct costs costs = {.entry_ns = 450,
			      .call_ns = 700,
			      .stepped_call_ns = 1600,
			      .bystander_ns = 50,
			      .pause_ns = {{900, 3000}, {0, 500}}};
	double ratio = 0;

	(void)state;
	assert_false(recalibrate__judge(&recalibration, 700, 1400, &ratio));
	assert_true(recalibrate__judge(&recalibration, 700, 1500, &ratio));
	assert_true(ratio == 2);
	recalibrate__scale(&costs, ratio);
	assert_true(costs.call_ns == 1400 && costs.entry_ns == 900 && costs.bystander_ns == 100);
	assert_true(costs.nop5_ns == 0);
	assert_true(costs.pause_ns[0][1] == 6000 && costs.pause_ns[1][1] == 1000);
	assert_false(recalibrate__judge(&recalibration, costs.call_ns, 1450, &ratio));
	assert_false(recalibrate__judge(&recalibration, 0, 1450, &ratio)); /* never calibrated */
}

static void hits_after_pauses_cost_more(void **state)
{
	const struct costs costs = {.entry_ns = 450,
				    .call_ns = 700,
				    .stepped_call_ns = 1600,
				    .syscall_ns = 180,
				    .pause_ns = {{900, 3000}, {0, 500}}};
	struct kernel_counters counters = {.enter = 10, .exit = 8, .left = 2, .stepped = 3, .syscalls = 5};

	(void)state;
	assert_true(costs__of(&costs, &counters) == 12 * 450 + 8 * 250 + 3 * 900 + 5 * 180);
	counters = (struct kernel_counters){.enter = 10, .exit = 10, .pauses = {{4, 1}, {0, 2}}};
	assert_true(costs__of(&costs, &counters) == 10 * 700 + 4 * 900 + 3000 + 2 * 500);
}

static void what_stays_in_the_caches_costs_less(void **state)
{
	/* without a pause 100 ns; 500 after a long one at entries, hardly more at returns */
	const struct costs costs = {
	    .entry_ns = 450,
	    .call_ns = 700,
	    .pause_ns = {{0, 3000, 4000}, {0, 500, 500}},
	    .preamble_ns = {{100, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500},
			    {100, 102, 103, 103, 103, 103, 103, 103, 103, 103, 103, 103}},
	};
	const uint64_t pauses[KERNEL_PAUSES] = {10, 2, 2};
	struct kernel_counters counters = {.enter = 14, .exit = 14, .pauses = {{10, 2, 2}, {10, 4}}};

	(void)state;
	/* 4 of 14 hits would have 400 ns more */
	assert_true(costs__of_pauses(&costs, 0, pauses, 14 * 100 + 4 * 400) == 14000);
	assert_true(costs__of_pauses(&costs, 0, pauses, 14 * 100 + 4 * 100) == 3500);
	assert_true(costs__of_pauses(&costs, 0, pauses, 14 * 90) == 0);
	assert_true(costs__of_pauses(&costs, 0, pauses, 14 * 100 + 4 * 1200) == 3 * 14000);
	assert_true(costs__of_pauses(&costs, 0, pauses, 14 * 4000) == 4 * 14000);
	/* where the calibration shows no difference, costs are its own */
	assert_true(costs__of_pauses(&costs, 1, (uint64_t[KERNEL_PAUSES]){10, 4}, 14 * 4000) == 2000);
	assert_true(costs__of_pauses(&costs, 0, (uint64_t[KERNEL_PAUSES]){0}, 0) == 0);
	counters.preamble_ns[0] = 14 * 100 + 4 * 100;
	assert_true(costs__of(&costs, &counters) == 14 * 700 + 3500 + 2000);
}

static void longer_programs_cost_more(void **state)
{
	const struct costs costs = {.entry_ns = 450, .call_ns = 700, .program_ns = {200, 100}};
	struct kernel_counters counters = {
	    .enter = 1000, .exit = 800, .rows = 200, .timed = {20, 20}, .timed_ns = {20 * 500, 20 * 90}};

	(void)state;
	/* hits of rows are not timed, and a shorter program takes nothing off */
	assert_true(costs__of(&costs, &counters) == 1000 * 450 + 800 * 250 + 800 * 300);
	counters.timed_ns[1] = 20 * 160;
	assert_true(costs__of(&costs, &counters) == 1000 * 450 + 800 * 250 + 800 * 300 + 800 * 60);
	assert_true(costs__of_return(&costs, &counters) == 250 + 60);
	counters.timed[0] = counters.timed[1] = 3; /* too few */
	assert_true(costs__of_return(&costs, &counters) == 250);
	assert_true(costs__of(&costs, &counters) == 1000 * 450 + 800 * 250);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_that_differs_is_an_accident), cmocka_unit_test(two_that_agree_are_used),
	    cmocka_unit_test(hits_after_pauses_cost_more),     cmocka_unit_test(what_stays_in_the_caches_costs_less),
	    cmocka_unit_test(longer_programs_cost_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
