// SPDX-License-Identifier: GPL-2.0-or-later
/* Slowdowns that are within the scatter of the work, or that come gradually. */
#include "detect/chance.h"
#include "painted.h"

#define USUAL_NS 1e6
#define FEW 9 /* slow fragments */

static uint32_t row;
static struct variance variance;
static struct evidence_input input;

static void begin(uint64_t begin_bin, uint64_t end_bin)
{
	other_job(4, 2);
	row = 0;
	variance = (struct variance){
	    .begin = FIRST + begin_bin, .end = FIRST + end_bin, .rows = &row, .row_count = 1, .matched = true};
	input = (struct evidence_input){.config = &config, .map = &map, .job = job, .source = VAPRO_BY_INSTRUCTIONS};
}

/* Half of the other ranks' fragments take a fifth more than their mean, half a fifth less. */
static bool explained(double times, double others_n)
{
	struct series series[4] = {{.row = 0, .next = 1}, {.row = 1, .next = 2}, {.row = 2, .next = 3}};
	struct workload workload = {.series = 0, .class = VAPRO_COMPUTATION};
	struct series_book book = {.series = series, .count = 4, .workloads = &workload, .workload_count = 1};
	struct tally_series entry = {.n = FEW, .net = FEW * times * USUAL_NS, .lost = USUAL_NS};
	bool is;

	series[3] = (struct series){.row = 3, .next = SERIES_NONE};
	for (int i = 0; i < 4; i++) {
		series[i].class = VAPRO_COMPUTATION;
		assert_int_equal(histogram__add(&series[i].cpu, (i % 2 ? 1.2 : 0.8) * USUAL_NS, others_n / 3), 0);
	}
	/* what the slow row itself takes does not count */
	assert_int_equal(histogram__add(&series[0].cpu, 100 * USUAL_NS, 1000), 0);
	variance.total.series = &entry;
	variance.total.series_count = 1;
	input.series = &book;
	is = chance__explains(&variance, &input);
	variance.total = (struct tally){0};
	for (int i = 0; i < 4; i++)
		histogram__clear(&series[i].cpu);
	return is;
}

static void test_scatter(void **state)
{
	(void)state;
	begin(10, 40);
	/* the mean of nine scatters by a third of 0.19; the mean of the three others is 1.07 */
	assert_true(explained(1.3, 300));
	assert_true(explained(1.42, 300));
	assert_false(explained(1.48, 300));
	/* others hardly do it */
	assert_false(explained(1.3, 15));
}

/* A row whose time grows by 1 % a bin, and one that is slow from one bin to the next. */
static void test_gradual(void **state)
{
	(void)state;
	for (int sharp = 0; sharp < 2; sharp++) {
		begin(18, 45);
		for (int bin = 0; bin < 50; bin++) {
			double slow = sharp ? (bin < 18 ? 1 : 1.5) : 1 + 0.01 * bin;

			paint(0, bin, bin + 1, VAPRO_COMPUTATION, 1 / slow, false);
		}
		assert_int_equal(chance__gradual(&variance, &input), !sharp);
	}
	/* nothing is known of the time before */
	begin(2, 45);
	for (int bin = 0; bin < 50; bin++)
		paint(0, bin, bin + 1, VAPRO_COMPUTATION, 0.7, false);
	assert_false(chance__gradual(&variance, &input));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_scatter),
	    TEST(test_gradual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
