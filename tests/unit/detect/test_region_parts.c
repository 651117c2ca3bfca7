/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regions that touch each other and are several: by time, by cause, by rows. */
#include "painted.h"

/* A stretch that is a little slow for any reason, and a hog in it: regions that only touch are not one. */
static void test_region_parts(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 10, 20, VAPRO_COMPUTATION, 0.75, false);
	paint(0, 20, 25, VAPRO_COMPUTATION, 0.4, true);
	paint(0, 25, 40, VAPRO_COMPUTATION, 0.75, false);
	paint(1, 10, 40, VAPRO_COMPUTATION, 0.75, false);
	assert_int_equal(grown(&result), 2);
	assert_bins(&result.drafts[0], 10, 40);
	assert_int_equal(result.drafts[0].cell_count, 55);
	assert_bins(&result.drafts[1], 20, 25);
	assert_int_equal(result.drafts[1].cell_count, 5);
	assert_near(result.drafts[1].lost[VAPRO_COMPUTATION], 5 * 0.6 * BIN, 0.1 * BIN);
	region__clear(&result);
}

/* The hypervisor steals the CPU and then a hog takes it: each has its own beginning and end. */
static void test_region_stolen(void **state)
{
	struct region_result result;

	(void)state;
	for (int bin = 17; bin < 20; bin++) {
		struct bundle_rec rec = fragment(bin, bin + 0.999, 0.7 * BIN, 0);
		float factor[BUNDLE_FACTORS] = {[VAPRO_STEAL] = 0.3F * BIN};

		rec.factor = factor;
		heatmap__add(&map, &rec, 0, VAPRO_COMPUTATION, 0, UINT64_MAX);
	}
	paint(0, 20, 35, VAPRO_COMPUTATION, 0.5, true);
	assert_int_equal(grown(&result), 2);
	assert_bins(&result.drafts[0], 17, 20);
	assert_bins(&result.drafts[1], 20, 35);
	region__clear(&result);
}

/* Bins at a hog's borders, with less attributed time, are the hog's; so is a bin in which it had less of the CPU.
 */
static void test_region_stays_whole(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 10, 11, VAPRO_COMPUTATION, 0.7, false);
	paint(0, 11, 18, VAPRO_COMPUTATION, 0.5, true);
	paint(0, 18, 19, VAPRO_COMPUTATION, 0.7, false);
	for (int bin = 30; bin < 42; bin++) {
		struct bundle_rec rec = fragment(bin, bin + 0.999, 0.8 * BIN, (bin % 4 < 2 ? 0.2 : 0.1) * BIN);

		heatmap__add(&map, &rec, 2, VAPRO_COMPUTATION, 0, UINT64_MAX);
	}
	assert_int_equal(grown(&result), 2);
	assert_bins(&result.drafts[0], 10, 19);
	assert_bins(&result.drafts[1], 30, 42);
	region__clear(&result);
}

/* Two causes that alternate are one variance; one after the other they are two. */
static void test_region_alternates(void **state)
{
	struct region_result result;

	(void)state;
	for (int bin = 0; bin < 36; bin += 12) {
		paint(0, bin, bin + 8, VAPRO_COMPUTATION, 0.7, false);
		paint(0, bin + 8, bin + 12, VAPRO_COMPUTATION, 0.6, true);
	}
	paint(2, 10, 20, VAPRO_COMPUTATION, 0.8, false);
	paint(2, 20, 30, VAPRO_COMPUTATION, 0.4, true);
	assert_int_equal(grown(&result), 3);
	assert_int_equal(result.drafts[0].cell_count, 36);
	assert_int_equal(result.drafts[1].cell_count, 10);
	assert_int_equal(result.drafts[2].cell_count, 10);
	region__clear(&result);
}

/* A rank that is slow for long, with a hog, a stop and another hog in that time: each is a region of its own. */
static void test_region_one_after_another(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 0, 50, VAPRO_COMPUTATION, 0.6, false);
	paint(1, 0, 50, VAPRO_COMPUTATION, 0.6, false);
	for (int bin = 5; bin < 50; bin += 15)
		paint(0, bin, bin + 6, VAPRO_COMPUTATION, 0.2, true);
	assert_int_equal(grown(&result), 4);
	assert_int_equal(result.drafts[0].cell_count, 100 - 3 * 6);
	for (uint64_t i = 1; i < 4; i++)
		assert_bins(&result.drafts[i], 15 * i - 10, 15 * i - 4);
	region__clear(&result);
}

/* Something short takes the CPUs of three ranks, and then one of them is stopped: the others are not part of that. */
static void test_region_before_a_stop(void **state)
{
	struct region_result result;

	(void)state;
	for (uint32_t rank = 0; rank < 3; rank++)
		paint(rank, 10, 12, VAPRO_COMPUTATION, 0.4, true);
	paint(1, 12, 24, VAPRO_COMMUNICATION, 0.01, true);
	assert_int_equal(grown(&result), 2);
	assert_bins(&result.drafts[0], 10, 12);
	assert_int_equal(result.drafts[0].cell_count, 2 * 2);
	assert_int_equal(result.drafts[0].cells[0].row, 0);
	assert_int_equal(result.drafts[0].cells[3].row, 2);
	assert_bins(&result.drafts[1], 10, 24);
	assert_int_equal(result.drafts[1].cell_count, 2 + 12);
	region__clear(&result);
}

/* A stop and a hog, with a little noise after or before: they end and begin when they do. */
static void test_region_beside_noise(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 10, 16, VAPRO_COMPUTATION, 0.01, true);
	paint(0, 16, 19, VAPRO_COMPUTATION, 0.84, false);
	paint(2, 27, 30, VAPRO_COMPUTATION, 0.84, false);
	paint(2, 30, 40, VAPRO_COMPUTATION, 0.5, true);
	assert_int_equal(grown(&result), 2);
	assert_bins(&result.drafts[0], 10, 17);
	assert_bins(&result.drafts[1], 29, 40);
	region__clear(&result);
}

/* One rank is slow for ten seconds; its neighbour has a hog, and later a short stop, in that time: neither is lost. */
static void test_region_beside_a_long_one(void **state)
{
	struct region_result result;

	(void)state;
	paint(1, 0, 50, VAPRO_COMPUTATION, 0.65, false);
	paint(0, 7, 20, VAPRO_COMPUTATION, 0.57, true);
	paint(2, 30, 34, VAPRO_COMPUTATION, 0.2, true);
	paint(2, 45, 46, VAPRO_COMPUTATION, 0.8, false); /* too small to be reported */
	assert_int_equal(grown(&result), 3);
	assert_int_equal(result.drafts[1].cell_count, 50);
	assert_bins(&result.drafts[0], 7, 20);
	assert_int_equal(result.drafts[0].cell_count, 13);
	assert_int_equal(result.drafts[0].cells[0].row, 0);
	assert_bins(&result.drafts[2], 30, 34);
	assert_int_equal(result.drafts[2].cell_count, 4);
	assert_int_equal(result.drafts[2].cells[0].row, 2);
	assert_int_equal(result.small_count, 1);
	region__clear(&result);
}

/* A hog that took next to nothing from the neighbour of its rank, in a stretch in which both are slow anyway. */
static void test_region_little_part(void **state)
{
	struct region_result result;
	int hogs = 0;

	(void)state;
	paint(0, 5, 40, VAPRO_COMPUTATION, 0.7, false);
	paint(1, 5, 40, VAPRO_COMPUTATION, 0.7, false);
	paint(0, 15, 27, VAPRO_COMPUTATION, 0.2, true);
	paint(1, 18, 19, VAPRO_COMPUTATION, 0.4, true);
	grown(&result);
	for (size_t i = 0; i < result.count; i++) {
		const struct draft *draft = &result.drafts[i];

		if (draft->begin != FIRST + 15)
			continue;
		hogs++;
		assert_bins(draft, 15, 27);
		assert_int_equal(draft->cell_count, 12);
		assert_int_equal(draft->cells[11].row, 0);
	}
	assert_int_equal(hogs, 1);
	region__clear(&result);
}

/* A rank that lost more than half as much as the ranks on average belongs to them, however short. */
static void test_region_of_two_rows(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 10, 14, VAPRO_COMPUTATION, 0.5, true);
	paint(1, 10, 14, VAPRO_COMPUTATION, 0.5, true);
	paint(1, 14, 20, VAPRO_COMMUNICATION, 0.5, true);
	assert_int_equal(grown(&result), 1);
	assert_bins(&result.drafts[0], 10, 20);
	assert_int_equal(result.drafts[0].cell_count, 2 * 4 + 6);
	region__clear(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_region_parts),
	    TEST(test_region_stolen),
	    TEST(test_region_stays_whole),
	    TEST(test_region_alternates),
	    TEST(test_region_one_after_another),
	    TEST(test_region_before_a_stop),
	    TEST(test_region_beside_noise),
	    TEST(test_region_beside_a_long_one),
	    TEST(test_region_little_part),
	    TEST(test_region_of_two_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
