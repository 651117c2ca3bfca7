// SPDX-License-Identifier: GPL-2.0-or-later
/* When ranks became slow: by the sharpest step of their computation. */
#include "detect/onset.h"
#include "painted.h"

static uint32_t rows[] = {0, 1};
static struct variance variance;
static struct evidence_input input;

static void begin(uint64_t begin_bin, uint64_t end_bin, size_t count)
{
	other_job(4, 2);
	variance =
	    (struct variance){.begin = FIRST + begin_bin, .end = FIRST + end_bin, .rows = rows, .row_count = count};
	input = (struct evidence_input){.config = &config, .map = &map, .job = job, .begin = FIRST, .end = FIRST + 50};
}

static struct onset onset(void)
{
	return onset__of(&variance, &input);
}

/* Paints a rank's time over reference from a bin on. */
static void take(uint32_t rank, int from, double times)
{
	paint(rank, from, 50, VAPRO_COMPUTATION, 1 / times, false);
}

/* All ranks are as usual until bin 18, and the first `slow` ones take longer from then on; the others differ as said.
 */
static void step(uint64_t begin_bin, size_t slow, double times, double others)
{
	begin(begin_bin, 45, slow);
	for (uint32_t rank = 0; rank < 4; rank++) {
		paint(rank, 0, 18, VAPRO_COMPUTATION, 1, false);
		take(rank, 18, rank < slow ? times : rank == 3 ? others : 1);
	}
}

static void test_sharp(void **state)
{
	(void)state;
	step(18, 1, 1.5, 1);
	assert_true(onset().known && onset().sharp && onset().lone);
	assert_near((double)onset().bin, FIRST + 18, 1);
	assert_near(onset().ratio, 1.5, 0.01);
	/* both rows of a region step */
	step(18, 2, 1.3, 1);
	assert_true(onset().lone);
	/* other rows change, too: the program did */
	step(18, 1, 1.5, 1.3);
	assert_true(onset().sharp);
	assert_false(onset().lone);
	/* a region that began long before has lost to something else as well */
	step(8, 1, 1.5, 1);
	assert_true(onset().sharp);
	assert_false(onset().lone);
}

/* Slow time that goes on after a gap belongs to the step that it began with; a step back ends it. */
static void test_goes_on(void **state)
{
	(void)state;
	step(30, 1, 1.5, 1);
	assert_true(onset().lone);
	for (uint32_t rank = 0; rank < 4; rank++) {
		if (!rank)
			begin(30, 45, 1);
		paint(rank, 0, 18, VAPRO_COMPUTATION, 1, false);
		paint(rank, 18, 22, VAPRO_COMPUTATION, rank ? 1 : 1 / 1.5, false);
		paint(rank, 22, 30, VAPRO_COMPUTATION, 1, false);
		paint(rank, 30, 50, VAPRO_COMPUTATION, rank == 1 ? 1 : 1 / 1.3, false);
	}
	assert_false(onset().lone);
}

/* A step back to time that is still slow ends nothing, whatever the rows took in between. */
static void test_still_slow(void **state)
{
	(void)state;
	begin(18, 45, 1);
	for (uint32_t rank = 0; rank < 4; rank++) {
		paint(rank, 0, 18, VAPRO_COMPUTATION, 1, false);
		for (int bin = 18; bin < 50; bin++) {
			double times = bin < 30 ? 1.3 + 0.03 * (bin - 18) : 1.3;

			paint(rank, bin, bin + 1, VAPRO_COMPUTATION, rank ? 1 : 1 / times, false);
		}
	}
	assert_true(onset().lone);
	assert_near(onset().ratio, 1.3, 0.02);
}

/*
 * Rank 0 takes 1.5 times as long from bin 18 on, so that all go on at two thirds of the rate. The work of rank 3 is not
 * judged any more, and takes so many bins of each.
 */
static void other_work(double of_a_bin)
{
	begin(18, 45, 1);
	for (uint32_t rank = 0; rank < 4; rank++)
		paint(rank, 0, 18, VAPRO_COMPUTATION, 1, false);
	take(0, 18, 1.5);
	for (int bin = 18; bin < 50; bin++) {
		for (uint32_t rank = 1; rank < 4; rank++) {
			double took = rank == 3 ? of_a_bin : 2 / 3.0;
			struct bundle_rec rec = fragment(bin, bin + took, took * BIN, 0);

			rec.covered = rank != 3;
			assert_int_equal(heatmap__add(&map, &rec, rank, VAPRO_COMPUTATION, 0, UINT64_MAX), 0);
		}
	}
}

/* Work that moved away from a rank may be so much less that it is not judged: how long it takes is known all the same.
 */
static void test_moved_away(void **state)
{
	(void)state;
	other_work(2 / 3.0);
	assert_true(onset().sharp && onset().lone);
	other_work(1 / 3.0);
	assert_true(onset().sharp);
	assert_false(onset().lone);
}

static void test_gradual(void **state)
{
	(void)state;
	begin(18, 45, 1);
	for (int bin = 0; bin < 50; bin++)
		paint(0, bin, bin + 1, VAPRO_COMPUTATION, 1 / (1 + 0.01 * bin), false);
	assert_true(onset().known);
	assert_false(onset().sharp);
}

/* Computations of a second are compared over three of them. */
static void test_long_computations(void **state)
{
	(void)state;
	begin(24, 45, 1);
	map.fragment_ns = 1e9;
	for (int bin = 0; bin < 25; bin += 5) {
		struct bundle_rec rec = fragment(bin, bin + 5, 5 * BIN, 0);

		assert_int_equal(heatmap__add(&map, &rec, 0, VAPRO_COMPUTATION, 0, UINT64_MAX), 0);
	}
	for (int bin = 25; bin < 45; bin += 10) {
		struct bundle_rec rec = fragment(bin, bin + 10, 5 * BIN, 0);

		assert_int_equal(heatmap__add(&map, &rec, 0, VAPRO_COMPUTATION, 0, UINT64_MAX), 0);
	}
	assert_true(onset().sharp);
	assert_int_equal(onset().width, 16);
}

/* Where the map does not have what was before, nothing is known; a step that comes later is. */
static void test_before(void **state)
{
	(void)state;
	begin(1, 45, 1);
	take(0, 0, 1.5);
	assert_false(onset().known || onset().sharp);
	begin(1, 45, 1);
	paint(0, 0, 20, VAPRO_COMPUTATION, 0.8, false);
	take(0, 20, 2);
	assert_false(onset().known || onset().lone);
	/* the map has forgotten the begin */
	begin(5, 45, 1);
	take(0, 0, 1.5);
	assert_true(onset().known);
	heatmap__advance(&map, FIRST, FIRST + 10 + HEATMAP_SPAN);
	assert_false(onset().known);
}

static void test_from_start(void **state)
{
	(void)state;
	begin(0, 45, 1);
	/* the ranks were first seen in bin 0 */
	variance.begin = 9;
	assert_true(onset__from_start(&variance, &input));
	variance.begin = 10;
	assert_false(onset__from_start(&variance, &input));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_sharp),	   TEST(test_goes_on),	  TEST(test_gradual), TEST(test_long_computations),
	    TEST(test_still_slow), TEST(test_moved_away), TEST(test_before),  TEST(test_from_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
