/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regions of slow IO: stalls, and what a hog on the rank's CPU has to do with them. */
#include "painted.h"

/* A frozen file system and a hog, each in IO that is slow anyway, are regions of their own. */
static void test_region_stall(void **state)
{
	struct region_result result;

	(void)state;
	for (uint32_t rank = 0; rank < 2; rank++) {
		paint(rank, 4, 14, VAPRO_IO, 0.6, false);
		paint(rank, 14, 15, VAPRO_IO, 0.3, false);
		paint(rank, 15, 21, VAPRO_IO, 0.01, false);
		paint(rank, 21, 34, VAPRO_IO, 0.6, false);
	}
	paint(0, 34, 46, VAPRO_IO, 0.4, true);
	assert_int_equal(grown(&result), 4);
	assert_bins(&result.drafts[0], 4, 14);
	assert_bins(&result.drafts[1], 14, 21);
	assert_int_equal(result.drafts[1].cell_count, 2 * 7);
	assert_near(result.drafts[1].lost[VAPRO_IO], 2 * (0.7 + 6 * 0.99) * BIN, 0.1 * BIN);
	assert_bins(&result.drafts[2], 21, 34);
	assert_bins(&result.drafts[3], 34, 46);
	assert_int_equal(result.drafts[3].cell_count, 12);
	region__clear(&result);
}

/* Slows down IO: shares of what it loses are sleep for a device, and waits for the CPU. */
static void paint_asleep(uint32_t row, int from, int to, double asleep, double preempted)
{
	for (int bin = from; bin < to; bin++) {
		struct bundle_rec rec = fragment(bin, bin + 0.999, 0.5 * BIN, 0.5 * preempted * BIN);
		float *factor = factors();

		factor[VAPRO_PREEMPTED] = rec.factor[VAPRO_PREEMPTED];
		factor[VAPRO_BLOCKED_IO] = (float)(0.5 * asleep * BIN);
		rec.factor = factor;
		heatmap__add(&map, &rec, row, VAPRO_IO, 0, UINT64_MAX);
	}
}

/* IO that sleeps longer for as long as a hog has the rank's CPU is held up by it; a slow disk at another time is not.
 */
static void test_region_io_beside_a_hog(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 10, 20, VAPRO_COMPUTATION, 0.5, true);
	paint_asleep(0, 10, 21, 1, 0);
	paint(2, 30, 36, VAPRO_COMPUTATION, 0.5, true);
	paint_asleep(2, 26, 40, 1, 0);
	assert_int_equal(grown(&result), 3);
	assert_bins(&result.drafts[0], 10, 21);
	assert_true(result.drafts[0].has[VAPRO_COMPUTATION] && result.drafts[0].has[VAPRO_IO]);
	assert_false(result.drafts[1].has[VAPRO_COMPUTATION] && result.drafts[1].has[VAPRO_IO]);
	region__clear(&result);
}

/* The same where neither its sleep nor its waits for the CPU are most of what it loses. */
static void test_region_io_in_part_beside_a_hog(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 10, 20, VAPRO_COMPUTATION, 0.5, true);
	paint_asleep(0, 10, 20, 0.45, 0.45);
	paint(2, 10, 20, VAPRO_COMPUTATION, 0.5, true);
	paint_asleep(2, 10, 20, 0.2, 0.2);
	assert_int_equal(grown(&result), 3);
	assert_true(result.drafts[0].has[VAPRO_COMPUTATION] && result.drafts[0].has[VAPRO_IO]);
	assert_false(result.drafts[1].has[VAPRO_COMPUTATION] && result.drafts[1].has[VAPRO_IO]);
	region__clear(&result);
}

/* One disturbance whose bins are stalled now and then, and a stall alone, stay whole. */
static void test_region_stalls_again(void **state)
{
	struct region_result result;

	(void)state;
	for (int bin = 4; bin < 40; bin += 9) {
		paint(0, bin, bin + 5, VAPRO_IO, 0.5, false);
		paint(0, bin + 5, bin + 9, VAPRO_IO, 0.01, false);
	}
	paint(2, 10, 11, VAPRO_IO, 0.7, false);
	paint(2, 11, 18, VAPRO_IO, 0, false);
	paint(2, 18, 19, VAPRO_IO, 0.5, false);
	assert_int_equal(grown(&result), 2);
	assert_bins(&result.drafts[0], 4, 40);
	assert_bins(&result.drafts[1], 10, 19);
	region__clear(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_region_stall),
	    TEST(test_region_io_beside_a_hog),
	    TEST(test_region_io_in_part_beside_a_hog),
	    TEST(test_region_stalls_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
