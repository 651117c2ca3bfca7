/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which stalls of one length are noise, and which are the steps of a program: by when they come, and what they may be.
 */
#include "detect/stall_facts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/histogram.h"

#define S 1e9
#define STALL_NS 5e6
enum { ROWS = 8, STALLS = 40 };

static struct stg_row rows[ROWS];
static struct stg_job job = {.rows = rows, .row_count = ROWS, .host_count = 1};
static struct stalls stalls;
static uint64_t seed;

static double unit(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / 9007199254740992.0;
}

/* Adds the stalls of a row, on average each second: regular ones, or at random. `may_wait` of ten may be waits. */
static void add_row(uint32_t row, bool regular, int may_wait)
{
	double at = 100 * S + 1e7 * row;

	for (int i = 0; i < STALLS; i++) {
		at += regular ? S : -log(1 - unit()) * S;
		assert_int_equal(stalls__add(&stalls, &(struct stall_bundle){.row = row,
									     .class = VAPRO_COMMUNICATION,
									     .n = 1,
									     .ns = STALL_NS,
									     .edge_ns = STALL_NS / 2,
									     .gap_ns = 1e7,
									     .may_wait = i % 10 < may_wait,
									     .start_ns = (uint64_t)at,
									     .end_ns = (uint64_t)(at + STALL_NS)}),
				 0);
	}
}

static bool is_noise(bool regular, int may_wait)
{
	uint32_t index = histogram__index(STALL_NS);
	struct stall_kind kind = {.class = VAPRO_COMMUNICATION, .low = index, .high = index, .summed = true};
	struct stall_facts facts;

	for (uint32_t row = 0; row < ROWS; row++)
		add_row(row, regular, may_wait);
	stall_kinds__sum(&stalls, ROWS, &kind);
	assert_int_equal(kind.n, ROWS * STALLS);
	assert_int_equal(stall_facts__find(&stalls, &kind, &job, &facts), 0);
	stalls__clear(&stalls);
	assert_true(fabs(facts.may_wait - may_wait / 10.) < 1e-9);
	return stall_facts__is_noise(&facts, true);
}

/* Delays of calls that nothing else explains are noise whenever they come. */
static void delays_are_noise(void **state)
{
	(void)state;
	assert_true(is_noise(false, 0));
	assert_true(is_noise(true, 0));
}

/*
 * Where ranks go on with other calls a long one may still be a wait for one of them: in a sweep each is as long as the
 * rank is deep in it. Nearly all stalls are of that kind there, or they come as regularly as the sweeps.
 */
static void waits_of_a_sweep_are_none(void **state)
{
	(void)state;
	assert_true(is_noise(false, 4));
	assert_true(is_noise(false, 8));
	assert_false(is_noise(false, 9));
	assert_false(is_noise(true, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(delays_are_noise),
	    cmocka_unit_test(waits_of_a_sweep_are_none),
	};

	return cmocka_run_group_tests_name("stall facts", tests, NULL, NULL);
}
