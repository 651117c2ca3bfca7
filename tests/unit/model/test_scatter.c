// SPDX-License-Identifier: GPL-2.0-or-later
/* IO whose durations spread: usual scatter is no loss, and a stall stands out. */
#include "learned.h"

#include "model/scatter.h"

#define MS 1e6

static void begin_io(void)
{
	begin(1, VAPRO_BY_ARGUMENTS, VAPRO_IO, "function=fsync");
}

/* Draws a duration of a device: long tails, as log-normal. */
static double drawn(uint64_t *seed, double sigma)
{
	return 4 * MS * exp(sigma * sim_gauss(seed));
}

static double lost(double ns)
{
	struct bundle_rec rec = judged(0, 1000 * SECOND, ns);

	assert_true(rec.covered && rec.certified);
	return ns - rec.reference;
}

static void test_wide(void **state)
{
	static const double sigmas[] = {0.8, 1, 1.3};

	(void)state;
	for (size_t c = 0; c < sizeof(sigmas) / sizeof(sigmas[0]); c++) {
		uint64_t seed = 7 + c;
		double all = 0, ns;

		begin_io();
		for (uint64_t bin = 0; bin < 300 * SECOND; bin++) {
			learn(0, bin, 1, drawn(&seed, sigmas[c]), false);
			learn(0, bin, 1, drawn(&seed, sigmas[c]), false);
		}
		refresh();
		assert_false(series_of(0)->certified || series_of(0)->level);
		for (int i = 0; i < 1000; i++)
			all += lost(drawn(&seed, sigmas[c])) > 10;
		assert_true(all <= 1);
		ns = 4 * MS * exp(8 * sigmas[c]) + 100 * MS;
		assert_near(lost(ns) / ns, 1, 0.05);
		finish();
	}
}

/* One call of a second among calls of some ms is a stall, unless several were as long before. */
static void test_one_stall(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int before = 0; before < 2; before++) {
		begin_io();
		for (uint64_t bin = 0; bin < 40 * SECOND; bin++) {
			learn(0, bin, 1, drawn(&seed, 0.6), false);
			learn(0, bin, 1, before && bin % 40 == 7 ? 900 * MS : drawn(&seed, 0.6), false);
		}
		if (before)
			assert_near(lost(1050 * MS), 0, 1);
		else
			assert_near(lost(1050 * MS) / MS, 1046, 2);
		finish();
	}
}

/* Calls that spread one by one and not between bins are judged by the bin: a slowdown of all is found. */
static void test_level_bins(void **state)
{
	uint64_t seed = 5;

	(void)state;
	begin_io();
	for (uint64_t bin = 0; bin < 60 * SECOND; bin++)
		for (int i = 0; i < 20; i++)
			learn(0, bin, 1, drawn(&seed, 0.35), false);
	refresh();
	assert_true(series_of(0)->level && !series_of(0)->certified);
	assert_near(reference(0) / (4 * MS * exp(0.35 * 0.35 / 2)), 1, 0.08);
	assert_true(lost(12 * MS) > 7 * MS);
	finish();
}

/* The duration of a write into a pipe depends on its reader. */
static void test_peer(void **state)
{
	const char *labels[] = {"fd_kind=pipe function=write", "x"};
	uint64_t seed = 9;
	struct bundle_rec rec;

	(void)state;
	begin_kind(1, VAPRO_BY_ARGUMENTS, VAPRO_IO, labels, "fd_kind=pipe function=write");
	for (uint64_t bin = 0; bin < 40 * SECOND; bin++)
		learn(0, bin, 1, drawn(&seed, 1), false);
	rec = judged(0, 1000, 4 * MS);
	assert_false(rec.certified);
	finish();
}

static struct sim_report report;

/* Writes of which some flush for 20 ms at random are no variance; one that hangs for 400 ms is an alarm. */
static void test_stall_among_flushes(void **state)
{
	struct sim_scenario scenario = {
	    .ranks = 3, .seconds = 45, .seed = 31, .noise = 0.02, .write_every = 2, .flush_share = 0.3};
	const struct sim_found *alarm;

	(void)state;
	sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
	assert_int_equal(report.ever_alarms, 0);
	assert_true(report.coverage_last > 0.95);
	scenario.stall_rank = 1;
	scenario.stall_at = 26;
	scenario.stall_s = 0.4;
	scenario.stall_attributed = true;
	sim_run(&scenario, VAPRO_BY_ARGUMENTS, &report);
	assert_int_equal(report.alarms, 1);
	alarm = sim_alarm(&report);
	assert_true(alarm->class == VAPRO_IO && alarm->first_rank == 1 && alarm->rank_count == 1);
	assert_near(alarm->begin, 26, 0.4);
	assert_near(alarm->end, 26.4, 0.4);
	assert_near(alarm->lost_by_class[VAPRO_IO], 0.4, 0.04);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_wide), cmocka_unit_test(test_one_stall),	     cmocka_unit_test(test_level_bins),
	    cmocka_unit_test(test_peer), cmocka_unit_test(test_stall_among_flushes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
