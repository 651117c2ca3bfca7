// SPDX-License-Identifier: GPL-2.0-or-later
/* For how long no judged fragment of a rank ended, and how often one did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "detect/sensing.h"
#include "near.h"

#define FIRST 100 /* bin in which the job begins */
#define BIN_S 0.2 /* VAPRO_BIN_NS */
#define ROWS 3

static struct sensing sensing;
static struct stg_row rows[ROWS];
static struct stg_job job;

static int setup(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ROWS; i++)
		rows[i] = (struct stg_row){.rank = i == 2 ? 5 : 0,
					   .thread = i == 1,
					   .leader = i == 1 ? 0 : i,
					   .from_ns = FIRST * VAPRO_BIN_NS};
	job = (struct stg_job){.rows = rows, .row_count = ROWS};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sensing__clear(&sensing);
	return 0;
}

static void begin(uint64_t from, uint64_t to)
{
	assert_int_equal(sensing__begin(&sensing, ROWS, from, to), 0);
}

/* Adds fragments that ended in a bin. */
static void add(uint32_t row, uint64_t bin, uint32_t n)
{
	struct bundle_rec rec = {
	    .start_ns = bin * VAPRO_BIN_NS + 1, .end_ns = bin * VAPRO_BIN_NS + 1000, .n = n, .covered = 1};

	sensing__add(&sensing, row, &rec);
}

static const struct result_sensing *end(uint64_t from, uint64_t to)
{
	sensing__end(&sensing, &job, from * VAPRO_BIN_NS, to * VAPRO_BIN_NS);
	return &sensing.sum;
}

static void intervals_are_counted(void **state)
{
	const struct result_sensing *sum;

	(void)state;
	begin(100, 150);
	for (uint64_t bin = 100; bin < 150; bin++) {
		if (bin < 120 || bin >= 134)
			add(0, bin, bin < 120 ? 10 : 1);
		add(2, bin, 400000);
	}
	sum = end(100, 150);
	/* the end in bin 134 is 15 bins after the one in bin 119 */
	assert_near(sum->unseen_s, 3.0, 1e-9);
	assert_int_equal(sum->rank, 0);
	assert_near(sum->fragments, 200 + 16 + 50 * 400000.0, 0.5);
	assert_near(sum->seconds, 2 * 50 * BIN_S, 1e-9);
	assert_int_equal(sum->intervals[0], 50 * 400000);
	assert_int_equal(sum->intervals[1], 0);
	assert_int_equal(sum->intervals[2], 200 + 15);
	assert_int_equal(sum->intervals[3], 1);
}

/* A time without judged fragments that began in an earlier window is as long as it is. */
static void windows_follow_each_other(void **state)
{
	(void)state;
	begin(100, 150);
	for (uint64_t bin = 100; bin < 150; bin++) {
		add(0, bin, 40);
		add(2, bin, 40);
	}
	assert_near(end(100, 150)->unseen_s, BIN_S, 1e-9);
	begin(150, 200);
	for (uint64_t bin = 150; bin < 200; bin++)
		add(0, bin, 40);
	assert_near(end(150, 200)->unseen_s, 50 * BIN_S, 1e-9);
	assert_int_equal(sensing.sum.rank, 5);
	begin(200, 250);
	for (uint64_t bin = 200; bin < 250; bin++)
		add(0, bin, 40);
	add(2, 210, 1);
	add(2, 249, 1);
	assert_near(end(200, 250)->unseen_s, 61 * BIN_S, 1e-9);
	assert_int_equal(sensing.sum.intervals[3], 2);
}

static void what_is_not_judged_shows_nothing(void **state)
{
	struct bundle_rec rec = {.start_ns = FIRST * VAPRO_BIN_NS, .end_ns = FIRST * VAPRO_BIN_NS + 9, .n = 7};

	(void)state;
	begin(100, 150);
	sensing__add(&sensing, 0, &rec);
	rec.covered = rec.attributed_only = 1;
	sensing__add(&sensing, 2, &rec);
	add(0, 99, 3); /* of the window before */
	add(0, 150, 3);
	assert_near(end(100, 150)->unseen_s, 50 * BIN_S, 1e-9);
	assert_near(sensing.sum.fragments, 0, 1e-9);
	assert_int_equal(sensing.sum.intervals[3], 0);
}

static void a_rank_that_ended_is_not_unseen(void **state)
{
	(void)state;
	rows[0].to_ns = rows[2].to_ns = 120 * VAPRO_BIN_NS;
	begin(100, 150);
	for (uint64_t bin = 100; bin <= 110; bin++) {
		add(0, bin, 5);
		add(2, bin + 9, 5);
	}
	/* rank 0 for the last 9 bins of its life, rank 5 before its first end */
	assert_near(end(100, 150)->unseen_s, 9 * BIN_S, 1e-9);
	assert_near(sensing.sum.seconds, 2 * 20 * BIN_S, 1e-9);
	begin(150, 200);
	assert_near(end(150, 200)->unseen_s, 0, 1e-9);
	assert_near(sensing.sum.seconds, 0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(intervals_are_counted, setup, teardown),
	    cmocka_unit_test_setup_teardown(windows_follow_each_other, setup, teardown),
	    cmocka_unit_test_setup_teardown(what_is_not_judged_shows_nothing, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_rank_that_ended_is_not_unseen, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
