// SPDX-License-Identifier: GPL-2.0-or-later
/* The choice of functions to probe within a share of the time, and when the others are checked again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "probe/attach/row_plan.h"
#include "probe/attach/row_memory.h"
#include "probe/attach/row_backoff.h"

#define NEAR 1e-12

static void test_least_expensive_first(void **state)
{
	struct row_load loads[] = {
	    {.share = 35000 * 11000e-9},			   /* 38 % */
	    {.share = 100 * 11000e-9},				   /* 0.11 % */
	    {.share = 1 * 11000e-9},	 {.share = 2000 * 700e-9}, /* 0.14 %: its rate alone does not decide */
	    {.share = 0 * 11000e-9},
	};
	double used = row_plan__choose(loads, 5, 0.002);

	(void)state;
	assert_false(loads[0].open);
	assert_true(loads[1].open && loads[2].open && loads[4].open);
	assert_false(loads[3].open);
	assert_true(used > 0.00111 - NEAR && used < 0.00112);
	row_plan__choose(loads, 5, 0.003);
	assert_true(loads[3].open);
	assert_false(loads[0].open);
}

static void test_nothing_fits(void **state)
{
	struct row_load loads[20];

	(void)state;
	for (size_t i = 0; i < 20; i++)
		loads[i] = (struct row_load){.share = 3500 * 11000e-9, .open = true};
	assert_true(row_plan__choose(loads, 20, 0.0045) < NEAR);
	for (size_t i = 0; i < 20; i++)
		assert_false(loads[i].open);
	/* the sum of the functions is bounded, although each alone would fit */
	for (size_t i = 0; i < 20; i++)
		loads[i].share = 20 * 11000e-9;
	assert_true(row_plan__choose(loads, 20, 0.0009) <= 0.0009);
	assert_true(loads[0].open + loads[1].open + loads[19].open < 3);
}

/* Functions that share an exit: one is called, and the hits at the exit are charged to it. */
static void test_families_fit_as_one(void **state)
{
	struct row_load loads[] = {
	    {.family = 1, .share = 0.02, .own_share = 0.02},
	    {.family = 1, .share = 0.01},
	    {.family = 1, .share = 0.01},
	    {.share = 0.003, .own_share = 0.003},
	    {.family = 2, .share = 0.002, .own_share = 0.002},
	    {.family = 2, .share = 0.002, .own_share = 0.002},
	};

	(void)state;
	/* the exit is paid once, although each function alone would pay it */
	assert_true(fabs(row_plan__choose(loads, 6, 0.0271) - 0.027) < NEAR);
	for (size_t i = 0; i < 6; i++)
		assert_true(loads[i].open);
	assert_true(fabs(loads[1].family_share - 0.02) < NEAR && fabs(loads[5].family_share - 0.004) < NEAR);
	/* those that are not called would fit alone */
	assert_true(fabs(row_plan__choose(loads, 6, 0.0269) - 0.007) < NEAR);
	assert_false(loads[0].open || loads[1].open || loads[2].open);
	assert_true(loads[3].open && loads[4].open && loads[5].open);
	assert_true(fabs(row_plan__choose(loads, 6, 0.0069) - 0.003) < NEAR);
	assert_false(loads[4].open || loads[5].open);
	/* what one of them would cost is a guess, beyond what was counted */
	loads[5].share = 0.1;
	row_plan__choose(loads, 6, 0.05);
	assert_true(loads[0].open && !loads[4].open && !loads[5].open);
}

static void test_classes(void **state)
{
	(void)state;
	assert_int_equal(row_plan__class(0), 0);
	assert_int_equal(row_plan__class(10), 1);
	assert_int_equal(row_plan__class(999), 2);
	assert_int_equal(row_plan__class(1e6), ROW_CLASSES - 1);
}

static void test_backoff_grows_to_minutes(void **state)
{
	struct row_backoff backoff = {0};
	uint64_t now = 1000000000ULL, before = 0;

	(void)state;
	assert_false(row_backoff__is_over(&backoff, now));
	for (int i = 0; i < 8; i++) {
		uint64_t closed_ns;

		row_backoff__refuse(&backoff, now, 0.5);
		closed_ns = backoff.until_ns - now;
		assert_true(closed_ns >= ROW_BACKOFF_FIRST_S * 1000000000ULL && closed_ns >= before);
		assert_false(row_backoff__is_over(&backoff, now + closed_ns - 1));
		assert_true(row_backoff__is_over(&backoff, now + closed_ns));
		now += closed_ns;
		before = closed_ns;
	}
	assert_true(before >= 600 * 1000000000ULL && before < 900 * 1000000000ULL);
	/* opened and refused again: the backoff does not begin with the shortest time */
	row_backoff__opened(&backoff);
	assert_false(row_backoff__is_over(&backoff, UINT64_MAX));
	row_backoff__refuse(&backoff, now, 0);
	assert_true(backoff.until_ns - now >= 600 * 1000000000ULL);
}

static void test_memory(void **state)
{
	struct row_memory *memory = row_memory__new();
	struct row_backoff backoff = {.until_ns = 7, .level = 2}, got;

	(void)state;
	assert_non_null(memory);
	row_memory__keep(memory, 1, "aa", 0x1000, &backoff);
	backoff.level = 3;
	row_memory__keep(memory, 1, "aa", 0x1000, &backoff);
	row_memory__keep(memory, 1, "", 0x2000, &backoff);
	row_memory__recall(memory, 1, "aa", 0x1000, &got);
	assert_int_equal(got.until_ns, 7);
	assert_int_equal(got.level, 3);
	/* another program, another function, and one of a program that cannot be identified */
	row_memory__recall(memory, 1, "ab", 0x1000, &got);
	assert_int_equal(got.level, 0);
	row_memory__recall(memory, 1, "aa", 0x1001, &got);
	assert_int_equal(got.until_ns, 0);
	row_memory__recall(memory, 1, "", 0x2000, &got);
	assert_int_equal(got.level, 0);
	/* another user's file of this build-id */
	row_memory__recall(memory, 2, "aa", 0x1000, &got);
	assert_int_equal(got.until_ns, 0);
	for (uint64_t i = 0; i < 9000; i++) /* bounded: the oldest are dropped */
		row_memory__keep(memory, 1, "bb", i, &backoff);
	row_memory__recall(memory, 1, "bb", 8999, &got);
	assert_int_equal(got.level, 3);
	row_memory__recall(memory, 1, "aa", 0x1000, &got);
	assert_int_equal(got.level, 0);
	row_memory__free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_least_expensive_first),    cmocka_unit_test(test_nothing_fits),
	    cmocka_unit_test(test_families_fit_as_one),	     cmocka_unit_test(test_classes),
	    cmocka_unit_test(test_backoff_grows_to_minutes), cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
