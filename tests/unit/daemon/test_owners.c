// SPDX-License-Identifier: GPL-2.0-or-later
/* What each owner of processes has for sure, borrows and gives back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon/owners.h"

#define SECOND 1000000000ULL

static struct owners owners;

static void join(uid_t uid, size_t processes)
{
	while (processes--)
		owners__join(&owners, uid);
}

static void owners_have_numbers(void **state)
{
	uint32_t first, second;

	(void)state;
	owners = (struct owners){0};
	first = owners__join(&owners, 7);
	second = owners__join(&owners, 8);
	assert_int_not_equal(first, second);
	assert_int_equal(owners__join(&owners, 7), first);
	assert_int_equal(owners.active, 2);
	owners__leave(&owners, first);
	assert_int_equal(owners.active, 2);
	owners__leave(&owners, first);
	assert_int_equal(owners.active, 1);
	/* a free number has no history */
	owners.of[first].level = 3;
	assert_int_equal(owners__join(&owners, 9), first);
	assert_int_equal(owners.of[first].level, 0);
}

static void a_quarter_is_for_sure(void **state)
{
	uint32_t lender = KERNEL_SLOTS;

	(void)state;
	owners = (struct owners){0};
	join(1, 1000);
	assert_int_equal(owners__guaranteed(&owners, 1023, true), 255);
	assert_true(owners__may_claim(&owners, 2, 1023, &lender));
	assert_int_equal(owners.of[lender].uid, 1);
	assert_false(owners__may_claim(&owners, 1, 1023, &lender)); /* it has more than that */
	join(2, 255);
	assert_false(owners__may_claim(&owners, 2, 1023, &lender));
	/* processes that leave make room */
	owners.of[1].leaving = 1;
	assert_true(owners__may_claim(&owners, 2, 1023, &lender));
	/* the one that has borrowed most gives back */
	owners = (struct owners){0};
	join(1, 400);
	join(2, 600);
	assert_true(owners__may_claim(&owners, 3, 1023, &lender));
	assert_int_equal(owners.of[lender].uid, 2);
	/* nothing is borrowed */
	owners = (struct owners){0};
	join(1, 200);
	assert_false(owners__may_claim(&owners, 2, 1023, &lender));
	for (uid_t uid = 2; uid < 12; uid++)
		join(uid, 1);
	assert_int_equal(owners__guaranteed(&owners, 1100, false), 100);
}

static void shares_leave_room_for_one_more(void **state)
{
	(void)state;
	owners = (struct owners){0};
	for (uid_t uid = 0; uid < 8; uid++) {
		uint32_t sum = 0, guaranteed;

		join(uid, 1);
		guaranteed = owners__guaranteed(&owners, KERNEL_SHARE_ALL, false);
		for (uint32_t i = 0; i <= uid; i++) {
			assert_true(owners__share(&owners, i) >= guaranteed);
			sum += owners__share(&owners, i);
		}
		assert_true(sum <= KERNEL_SHARE_ALL);
		if (uid < 3)
			assert_true(sum + guaranteed <= KERNEL_SHARE_ALL);
	}
}

/* Runs both owners of the test for some seconds. Returns the steps that the first one lost. */
static unsigned run(double first, double second, unsigned seconds, uint64_t *now_ns)
{
	unsigned steps = 0;

	for (unsigned i = 0; i < seconds; i++) {
		uint32_t step;

		*now_ns += SECOND;
		owners__note(&owners, 0, owners.of[0].ran_ns + first * SECOND, SECOND);
		owners__note(&owners, 1, owners.of[1].ran_ns + second * SECOND, SECOND);
		step = owners__adjust(&owners, 0.04, *now_ns);
		assert_int_not_equal(step, 1);
		steps += step == 0;
	}
	return steps;
}

static void cpu_time_costs_detail(void **state)
{
	uint64_t now_ns = 100 * SECOND;

	(void)state;
	owners = (struct owners){0};
	join(1, 1);
	join(2, 1);
	assert_int_equal(run(0.03, 0.005, 100, &now_ns), 0);
	assert_int_equal(run(0.08, 0.005, 12, &now_ns), 3);
	assert_int_equal(owners__share(&owners, 0), owners__share(&owners, 1) >> 3);
	assert_int_equal(run(0.08, 0.005, 100, &now_ns), 2); /* the least share */
	assert_int_equal(owners__share(&owners, 0), owners__share(&owners, 1) >> 5);
	/* it comes back one by one */
	assert_int_equal(run(0.01, 0.005, 100, &now_ns), 0);
	assert_int_equal(owners.of[0].level, 4);
	/* an owner that is alone has no bound */
	owners__leave(&owners, 1);
	owners.of[1].rate = 0;
	for (int i = 0; i < 300; i++) {
		now_ns += SECOND;
		owners__note(&owners, 0, owners.of[0].ran_ns + 0.5 * SECOND, SECOND);
		assert_int_equal(owners__adjust(&owners, 0.04, now_ns), KERNEL_SLOTS);
	}
	assert_int_equal(owners.of[0].level, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(owners_have_numbers),
	    cmocka_unit_test(a_quarter_is_for_sure),
	    cmocka_unit_test(shares_leave_room_for_one_more),
	    cmocka_unit_test(cpu_time_costs_detail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
