// SPDX-License-Identifier: GPL-2.0-or-later
/* Equal warnings of one owner are one record a window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon/repeats.h"

static struct repeats repeats;
static struct repeat last;
static unsigned reports;

static void report(void *ctx, const struct repeat *repeat)
{
	(void)ctx;
	last = *repeat;
	reports++;
}

static unsigned end_window(void)
{
	reports = 0;
	repeats__end_window(&repeats, report, NULL);
	return reports;
}

static void equal_warnings_are_one_record(void **state)
{
	(void)state;
	repeats = (struct repeats){0};
	assert_true(repeats__note(&repeats, "too_short", 1, 100, "first"));
	assert_true(repeats__note(&repeats, "too_short", 2, 101, "of another owner"));
	assert_true(repeats__note(&repeats, "no_calls", 1, 102, "another one"));
	for (pid_t pid = 200; pid < 1200; pid++)
		assert_false(repeats__note(&repeats, "too_short", 1, pid, "later"));
	assert_int_equal(end_window(), 1);
	assert_string_equal(last.code, "too_short");
	assert_string_equal(last.text, "later");
	assert_int_equal(last.count, 1000);
	assert_int_equal(last.pid, 1199);
	/* as long as they go on each window has one record */
	assert_false(repeats__note(&repeats, "too_short", 1, 1300, "again"));
	assert_int_equal(end_window(), 1);
	assert_int_equal(last.count, 1);
	/* after a window without, the next one is reported at once */
	assert_int_equal(end_window(), 0);
	assert_true(repeats__note(&repeats, "too_short", 1, 1400, "first again"));
	assert_int_equal(end_window(), 0);
}

static void more_than_fit_are_reported(void **state)
{
	(void)state;
	repeats = (struct repeats){0};
	for (uid_t owner = 0; owner < 2 * REPEATS_MOST; owner++)
		assert_true(repeats__note(&repeats, "too_short", owner, 1, ""));
	assert_true(repeats__note(&repeats, "too_short", 2 * REPEATS_MOST - 1, 1, ""));
	assert_false(repeats__note(&repeats, "too_short", 0, 1, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equal_warnings_are_one_record),
	    cmocka_unit_test(more_than_fit_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
