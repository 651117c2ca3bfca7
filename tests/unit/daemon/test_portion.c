// SPDX-License-Identifier: GPL-2.0-or-later
/* Work that is left for later passes of the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon/portion.h"

#define MOST 4

/* Does what a pass may do of so much work; returns how much is left. */
static size_t pass(struct portion *portion, size_t left)
{
	portion__begin(portion, MOST);
	for (; left && portion__allows(portion); left--)
		portion->done++;
	return left;
}

static void a_pass_does_so_much_and_no_more(void **state)
{
	struct portion portion;
	size_t left = 500, passes = 0;

	(void)state;
	for (; left; passes++) {
		size_t before = left;

		left = pass(&portion, left);
		assert_int_equal(before - left, MOST);
		assert_int_equal(portion.done, MOST);
		assert_true(portion.cut == (left > 0)); /* the loop comes back soon */
	}
	assert_int_equal(passes, 500 / MOST);
}

static void what_is_done_in_a_pass_is_not_left(void **state)
{
	struct portion portion;

	(void)state;
	assert_int_equal(pass(&portion, 0), 0);
	assert_false(portion.cut);
	assert_int_equal(pass(&portion, MOST - 1), 0);
	assert_false(portion.cut);
	assert_int_equal(pass(&portion, MOST), 0);
	assert_false(portion.cut);
	assert_int_equal(pass(&portion, MOST + 1), 1);
	assert_true(portion.cut);
	assert_int_equal(pass(&portion, 1), 0);
	assert_false(portion.cut);
}

static void work_that_costs_nothing_is_not_counted(void **state)
{
	struct portion portion;

	(void)state;
	portion__begin(&portion, MOST);
	for (int i = 0; i < 1000; i++) /* processes that were looked at, and not attached */
		assert_true(portion__allows(&portion));
	assert_false(portion.cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_pass_does_so_much_and_no_more),
	    cmocka_unit_test(what_is_done_in_a_pass_is_not_left),
	    cmocka_unit_test(work_that_costs_nothing_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
