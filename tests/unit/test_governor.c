// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probe/governor.h"

#define SECOND 1000000000ULL

/*
 * A program that spends a share of its time in probes while they are open, seen every 10 ms; closing
 * takes effect 40 ms late. Returns the mean overhead.
 */
static double drive(double cap_pct, double share, uint64_t seconds, uint32_t *pauses)
{
	struct governor governor;
	struct governor_account account;
	double spent = 0;
	uint64_t late = 0;

	governor__init(&governor, cap_pct, 12345);
	governor__open_account(&account, SECOND);
	for (uint64_t now = SECOND; now < (seconds + 1) * SECOND; now += SECOND / 100) {
		bool open = !governor.paused_until_ns || now < late;
		double cost = open ? share * 1e7 : 0;
		bool overdrawn = governor__charge(&governor, &account, now, cost);

		spent += cost;
		if (governor.paused_until_ns) {
			governor__resume(&governor, now);
		} else if (overdrawn) {
			governor__pause(&governor, now, -account.credit_ns);
			late = now + SECOND / 25;
		}
	}
	*pauses = governor.pauses;
	return spent / ((double)seconds * 1e9);
}

static void flat_out_stays_under_the_cap(void **state)
{
	uint32_t pauses;

	(void)state;
	assert_true(drive(2, 0.5, 30, &pauses) < 0.02);
	assert_true(pauses > 3);
	assert_true(drive(2, 0.9, 30, &pauses) < 0.02);
	assert_true(drive(1, 0.5, 30, &pauses) < 0.01);
}

static void modest_programs_are_left_alone(void **state)
{
	uint32_t pauses;

	(void)state;
	assert_true(drive(2, 0.01, 60, &pauses) > 0.0099);
	assert_int_equal(pauses, 0);
}

static void no_cap_means_no_pause(void **state)
{
	uint32_t pauses;

	(void)state;
	assert_true(drive(0, 0.5, 10, &pauses) > 0.49);
	assert_int_equal(pauses, 0);
}

static void spells_differ(void **state)
{
	struct governor governor;
	uint64_t first;

	(void)state;
	governor__init(&governor, 2, 99);
	governor__pause(&governor, 0, 1e8);
	first = governor.paused_until_ns;
	governor__pause(&governor, 0, 1e8);
	assert_int_not_equal(first, governor.paused_until_ns);
	assert_true(first >= SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(flat_out_stays_under_the_cap),
	    cmocka_unit_test(modest_programs_are_left_alone),
	    cmocka_unit_test(no_cap_means_no_pause),
	    cmocka_unit_test(spells_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
