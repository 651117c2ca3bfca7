// SPDX-License-Identifier: GPL-2.0-or-later
/* Available factors, and reasons for missing factors, of machines other than this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "probe/pmu/os_factors.h"

static struct os_factor factor_of(const struct os_facts *facts, const char *name)
{
	struct os_factor factors[OS_FACTORS], none = {0};

	os_factors__of(facts, factors);
	for (int i = 0; i < OS_FACTORS; i++) {
		/* each missing factor has a reason, each available one a source */
		assert_true(factors[i].available ? factors[i].source != NULL : factors[i].reason != NULL);
		assert_false(factors[i].approx && !factors[i].available);
	}
	for (int i = 0; i < OS_FACTORS; i++) {
		if (!strcmp(factors[i].name, name))
			return factors[i];
	}
	fail_msg("no %s", name);
	return none;
}

static void nothing_is_there(void **state)
{
	struct os_facts facts = {0};

	(void)state;
	assert_false(factor_of(&facts, "throttled").available);
	assert_non_null(strstr(factor_of(&facts, "throttled").reason, "CONFIG_FAIR_GROUP_SCHED"));
	facts.queues = true;
	assert_non_null(strstr(factor_of(&facts, "throttled").reason, "CONFIG_CFS_BANDWIDTH"));
	assert_non_null(strstr(factor_of(&facts, "steal").reason, "CONFIG_PARAVIRT"));
	assert_non_null(strstr(factor_of(&facts, "irq").reason, "--interrupts off"));
	assert_non_null(strstr(factor_of(&facts, "soft_irq").reason, "--interrupts off"));
	assert_non_null(strstr(factor_of(&facts, "frequency").reason, "cpufreq"));
	facts.reports_speed = true;
	assert_false(factor_of(&facts, "frequency").available);
}

static void what_a_kernel_has_is_reported(void **state)
{
	struct os_facts facts = {.queues = true, .throttled_old = true, .steal = true, .interrupts = true};

	(void)state;
	assert_true(factor_of(&facts, "throttled").available);
	assert_true(factor_of(&facts, "throttled").approx);
	facts.throttled = true;
	assert_false(factor_of(&facts, "throttled").approx);
	assert_null(factor_of(&facts, "throttled").reason);
	facts.virtual_machine = true;
	assert_non_null(strstr(factor_of(&facts, "steal").reason, "does not report it"));
	facts.steal_ever = true;
	assert_null(factor_of(&facts, "steal").reason);
	assert_string_equal(factor_of(&facts, "irq").source, "tracepoints");
	facts.irq_time = true;
	assert_string_equal(factor_of(&facts, "irq").source, "run queue");
	facts.slow_clock = facts.reports_speed = true;
	assert_true(factor_of(&facts, "frequency").available);
}

static void this_machine_has_them(void **state)
{
	struct os_facts facts;

	(void)state;
	os_factors__learn(&facts, false);
	assert_false(factor_of(&facts, "hard_irq").available);
	os_factors__learn(&facts, true);
	assert_true(factor_of(&facts, "hard_irq").available);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_is_there),
	    cmocka_unit_test(what_a_kernel_has_is_reported),
	    cmocka_unit_test(this_machine_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
