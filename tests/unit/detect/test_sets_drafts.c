// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets as drafts of variances: one for the whole set, beside drafts with another cause. */
#include "detect/sets.h"
#include "painted.h"

#define RATIO 1.1

static uint32_t slow_rows[] = {3, 7};
static struct rank_set set;
static struct sets sets;
static struct region_result drafts;

/* Eight ranks on four hosts; the ranks of the last host are a tenth slower from bin 5 to 45. */
static int begin(void **state)
{
	setup(state);
	other_job(8, 4);
	set = (struct rank_set){.rows = slow_rows,
				.count = 2,
				.ratio = RATIO,
				.certain = true,
				.place = true,
				.variance = true,
				.since = FIRST + 5,
				.until = FIRST + 50};
	sets = (struct sets){.items = &set, .count = 1};
	return 0;
}

static int end(void **state)
{
	region__clear(&drafts);
	return teardown(state);
}

#define DRAFTS(f) cmocka_unit_test_setup_teardown(f, begin, end)

/* Paints computation at its usual speed, or as slow as the set. */
static void paint_row(uint32_t row, int from, int to)
{
	paint(row, from, to, VAPRO_COMPUTATION, row % 4 == 3 ? 1 / RATIO : 1, false);
}

static void apply(void)
{
	assert_int_equal(sets__apply(&sets, &map, job, &config, &drafts), 0);
}

static const struct draft *lasting(void)
{
	const struct draft *found = NULL;

	for (size_t i = 0; i < drafts.count; i++) {
		if (!drafts.drafts[i].lasting)
			continue;
		assert_null(found);
		found = &drafts.drafts[i];
	}
	return found;
}

static bool has_cell(const struct draft *draft, uint32_t row, int bin)
{
	for (size_t i = 0; i < draft->cell_count; i++)
		if (draft->cells[i].row == row && draft->cells[i].bin == FIRST + (uint64_t)bin)
			return true;
	return false;
}

/* No cell of the set crosses the threshold, and still there is a draft, with all cells and the loss. */
static void test_below_threshold(void **state)
{
	const struct draft *draft;

	(void)state;
	for (uint32_t row = 0; row < 8; row++)
		paint_row(row, 5, 45);
	assert_int_equal(grown(&drafts), 0);
	apply();
	assert_int_equal(drafts.count, 1);
	draft = lasting();
	assert_non_null(draft);
	assert_int_equal(draft->cell_count, 2 * 40);
	assert_int_equal(draft->begin, FIRST + 5);
	assert_int_equal(draft->end, FIRST + 45);
	assert_true(draft->has[VAPRO_COMPUTATION] && !draft->waiting && !draft->path);
	assert_near(draft->lost[VAPRO_COMPUTATION] / BIN, 80 * 0.999 * (1 - 1 / RATIO), 0.01);
	for (size_t i = 0; i < draft->cell_count; i++)
		assert_int_equal(draft->cells[i].row % 4, 3);
}

/* Sets that look like work as well are no variances. */
static void test_no_variance(void **state)
{
	(void)state;
	for (uint32_t row = 0; row < 8; row++)
		paint_row(row, 5, 45);
	assert_int_equal(grown(&drafts), 0);
	set.variance = false;
	apply();
	assert_int_equal(drafts.count, 0);
	set.variance = true;
	set.since = FIRST + 50;
	apply();
	assert_int_equal(drafts.count, 0);
	/* cells after the end of a set are no part of it */
	set.since = FIRST + 5;
	set.until = FIRST + 20;
	apply();
	assert_int_equal(drafts.count, 1);
	assert_int_equal(drafts.drafts[0].cell_count, 2 * 15);
	assert_int_equal(drafts.drafts[0].end, FIRST + 20);
}

/* The set absorbs regions of its slowest cells: one bad host is one alarm, not one for each rank. */
static void test_absorbs(void **state)
{
	(void)state;
	for (uint32_t row = 0; row < 8; row++) {
		paint_row(row, 5, 20);
		paint_row(row, 25, 45);
		paint(row, 20, 25, VAPRO_COMPUTATION, row == 3 ? 0.8 : row == 7 ? 0.78 : 1, false);
	}
	assert_true(grown(&drafts) > 0);
	apply();
	assert_int_equal(drafts.count, 1);
	assert_non_null(lasting());
	assert_int_equal(lasting()->cell_count, 2 * 40);
}

/* Without counts references may have learnt the set's durations: then it loses nothing and is no variance. */
static void test_not_shown(void **state)
{
	(void)state;
	set.certain = false;
	for (uint32_t row = 0; row < 8; row++)
		paint(row, 5, 45, VAPRO_COMPUTATION, row % 4 == 3 ? 1 - 0.4 * (1 - 1 / RATIO) : 1, false);
	apply();
	assert_null(lasting());
	set.certain = true;
	apply();
	assert_non_null(lasting());
	region__clear(&drafts);
	/* half of the loss is enough */
	set.certain = false;
	for (uint32_t row = 3; row < 8; row += 4)
		paint(row, 45, 50, VAPRO_COMPUTATION, 1 - 2 * (1 - 1 / RATIO), false);
	apply();
	assert_non_null(lasting());
}

/* A hog on a rank of the set is another cause, and so is a region much slower than the set. */
static void test_leaves_others(void **state)
{
	static const struct {
		double performance;
		bool attributed;
	} diagnoses[] = {{0.7, true}, {0.5, true}, {0.4, false}};

	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		const struct draft *draft, *own = NULL;

		end(state);
		begin(state);
		for (uint32_t row = 0; row < 8; row++) {
			paint_row(row, 5, 20);
			paint_row(row, 30, 45);
			if (row != 7)
				paint_row(row, 20, 30);
		}
		paint(7, 20, 30, VAPRO_COMPUTATION, diagnoses[c].performance, diagnoses[c].attributed);
		assert_int_equal(grown(&drafts), 1);
		apply();
		assert_int_equal(drafts.count, 2);
		draft = lasting();
		own = &drafts.drafts[draft == &drafts.drafts[0]];
		/* no cell is in two drafts */
		assert_int_equal(draft->cell_count, 2 * 40 - 10);
		for (int bin = 5; bin < 45; bin++) {
			bool hog = bin >= 20 && bin < 30;

			assert_int_equal(has_cell(draft, 7, bin), !hog);
			assert_int_equal(has_cell(own, 7, bin), hog);
			assert_true(has_cell(draft, 3, bin));
		}
		assert_near(own->lost[VAPRO_COMPUTATION] / BIN, 10 * 0.999 * (1 - diagnoses[c].performance), 0.1);
	}
}

/* Regions with other ranks in them, or of other classes and layers, are not the set's. */
static void test_leaves_neighbours(void **state)
{
	(void)state;
	for (uint32_t row = 0; row < 8; row++)
		paint_row(row, 5, 20);
	/* a row of the set and one of the next host: by host ranks are in the order 0 4 1 5 2 6 3 7 */
	paint(3, 20, 30, VAPRO_COMPUTATION, 0.8, false);
	paint(6, 20, 30, VAPRO_COMPUTATION, 0.8, false);
	paint(7, 35, 45, VAPRO_IO, 0.5, false);
	assert_int_equal(grown(&drafts), 2);
	for (size_t i = 0; i < drafts.count; i++)
		if (drafts.drafts[i].has[VAPRO_COMPUTATION])
			assert_int_equal(drafts.drafts[i].cell_count, 20);
	apply();
	assert_int_equal(drafts.count, 3);
	assert_non_null(lasting());
	assert_int_equal(lasting()->cell_count, 2 * 15);
}

/* Bins without enough computation to be judged, or before the set's begin, are no part of the set. */
static void test_invalid_bins(void **state)
{
	(void)state;
	for (uint32_t row = 0; row < 8; row++) {
		paint_row(row, 0, 10);
		paint_row(row, 20, 30);
	}
	assert_int_equal(grown(&drafts), 0);
	apply();
	assert_int_equal(drafts.count, 1);
	assert_int_equal(drafts.drafts[0].cell_count, 2 * 15);
	assert_false(has_cell(&drafts.drafts[0], 3, 4));
	assert_false(has_cell(&drafts.drafts[0], 3, 15));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    DRAFTS(test_below_threshold), DRAFTS(test_no_variance),   DRAFTS(test_absorbs),
	    DRAFTS(test_not_shown),	  DRAFTS(test_leaves_others), DRAFTS(test_leaves_neighbours),
	    DRAFTS(test_invalid_bins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
