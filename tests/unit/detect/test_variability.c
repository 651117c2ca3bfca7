/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Figures of rows with known variances, and what they say: in which direction times vary, and by what. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "detect/variability.h"
#include "model/batches.h"

#define ROWS 8

static struct variation rows[ROWS];
static const struct variation *list[ROWS];

static int clear_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		variation__clear(&rows[i]);
		list[i] = &rows[i];
	}
	return 0;
}

/* Adds a batch of five fragments; parts: of a fragment. */
static void add(size_t row, double ns, double software, double frequency)
{
	static uint64_t bin;
	const double part[VARIATION_PARTS] = {
	    [VARIATION_SOFTWARE] = BATCH_MEMBERS * software, [VARIATION_FREQUENCY] = BATCH_MEMBERS * frequency};
	const struct variation_bundle bundle = {
	    .bin = bin++, .n = BATCH_MEMBERS, .time_ns = BATCH_MEMBERS * ns, .ns = BATCH_MEMBERS * ns, .part = part};

	assert_int_equal(variation__add(&rows[row], &bundle), 0);
}

static struct variability_figures figures_of(size_t count)
{
	struct variability_figures figures;

	for (size_t i = 0; i < count; i++)
		assert_int_equal(variation__close(&rows[i]), 0);
	assert_int_equal(variability__of(list, count, &figures), 0);
	return figures;
}

static void assert_near(double value, double expected, double error)
{
	if (!(fabs(value - expected) <= error))
		fail_msg("%.12g, expected %.12g", value, expected);
}

/*
 * Rows of 101, 101, 102, 102, 103, 103; one, and four more: by hand, within 12, between 52, of 15 and 2 degrees of
 * freedom: epsilon squared (52 - 2 * 12 / 15) / 64.
 */
static void test_between(void **state)
{
	static const double means[] = {102, 103, 106};
	struct variability_figures figures;

	(void)state;
	for (size_t row = 0; row < 3; row++)
		for (int i = 0; i < 6; i++)
			add(row, means[row] - 1 + i / 2, 0, 0);
	figures = figures_of(3);
	assert_int_equal(figures.rows, 3);
	assert_near(figures.batches, 18, 0);
	assert_near(figures.fragments, 90, 0);
	assert_near(figures.between, (52 - 2 * 12 / 15.0) / 64, 1e-12);
	assert_near(figures.slowest, 106 / 103.0 - 1, 1e-9);
	assert_near(figures.over_fastest, 106 / 102.0 - 1, 1e-9);
	assert_true(isnan(figures.spread)); /* of fewer than six */
	assert_near(figures.range_over_mean, 2 / 103.0, 1e-9);
	assert_true(isnan(figures.rv) && isnan(figures.rv_error));
	/* all within a tenth */
	assert_int_equal(figures.kind, VAPRO_VARIES_NOT);
	assert_int_equal(figures.origin, VAPRO_ORIGIN_UNKNOWN);
}

/* Differences that scatter makes are none: rows of the same values in another order, and nearly so. */
static void test_between_by_chance(void **state)
{
	struct variability_figures figures;

	(void)state;
	for (size_t row = 0; row < ROWS; row++)
		for (int i = 0; i < 100; i++)
			add(row, 100 + 2 * ((i * 37 + (int)row) % 100) + (row == 3), 0, 0);
	figures = figures_of(ROWS);
	assert_true(figures.between == 0);
	assert_int_equal(figures.kind, VAPRO_VARIES_TEMPORALLY);
	assert_true(figures.spread < 0.02);
	assert_near(figures.temporal, 0.9 * 198 / 199, 0.02);
}

static void test_kinds(void **state)
{
	static const struct {
		double rank, time; /* how much slower odd rows are, and every fourth batch */
		enum vapro_variability_kind kind;
	} cases[] = {
	    {0, 0, VAPRO_VARIES_NOT},
	    {0.05, 0.05, VAPRO_VARIES_NOT},
	    {0.3, 0, VAPRO_VARIES_SPATIALLY},
	    {0, 0.3, VAPRO_VARIES_TEMPORALLY},
	    {0.3, 0.3, VAPRO_VARIES_BOTH},
	    {0.3, 0.05, VAPRO_VARIES_SPATIALLY},
	    {0.05, 0.3, VAPRO_VARIES_TEMPORALLY},
	    {1, 0.3, VAPRO_VARIES_SPATIALLY},
	    {0.2, 1, VAPRO_VARIES_TEMPORALLY},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct variability_figures figures;
		double p = 0.25, between, within;

		clear_rows(NULL);
		for (size_t row = 0; row < ROWS; row++)
			for (int i = 0; i < 80; i++)
				add(row,
				    1000 * (1 + cases[c].rank * (double)(row % 2)) *
					(1 + (i % 4 == 3 ? cases[c].time : 0)),
				    0, 0);
		figures = figures_of(ROWS);
		if (figures.kind != cases[c].kind)
			fail_msg("%g, %g: %s, between %.3f", cases[c].rank, cases[c].time,
				 vapro_variability_kind_name[figures.kind], figures.between);
		if (cases[c].rank == 0)
			continue;
		/* a row has the mean r (1 + p t) and the variance r^2 t^2 p (1 - p), with r = 1 or 1 + rank */
		between = pow(cases[c].rank * (1 + p * cases[c].time) / 2, 2);
		within = pow(cases[c].time, 2) * p * (1 - p) * (1 + pow(1 + cases[c].rank, 2)) / 2;
		/* less what scatter makes of it: 7 mean squares within, of 640 - 8 degrees of freedom */
		assert_near(figures.between, (between - 7 * within / 632) / (between + within), 0.002);
	}
}

/* One rank of eight is slow for an eighth of the time each: no rank is slower than others. */
static void test_successive(void **state)
{
	struct variability_figures figures;

	(void)state;
	for (size_t row = 0; row < ROWS; row++)
		for (int i = 0; i < 160; i++)
			add(row, i / 20 == (int)row ? 2000 : 1000, i / 20 == (int)row ? 1000 : 0, 0);
	figures = figures_of(ROWS);
	assert_int_equal(figures.kind, VAPRO_VARIES_TEMPORALLY);
	assert_true(figures.between == 0);
	assert_near(figures.software, 1, 1e-9);
	assert_int_equal(figures.origin, VAPRO_ORIGIN_SOFTWARE);
	/* an eighth of the batches has the other value: 1 / (p (1 - p)) - 3 */
	assert_near(figures.rv, 64 / 7.0 - 3, 1e-9);
	assert_near(figures.rv_n, 160, 0);
	assert_near(figures.rv_error, sqrt(24 / 160.0), 1e-12);
}

static void test_origin(void **state)
{
	struct variability_figures figures;

	(void)state;
	for (int i = 0; i < 40; i++) {
		add(0, i % 4 ? 1000 : 1500, i % 4 ? 10 : 210, 0);
		add(1, i % 4 ? 1000 : 1500, i % 4 ? 10 : 210, 0);
	}
	figures = figures_of(2);
	assert_near(figures.software, 200 / 500.0, 1e-9);
	assert_int_equal(figures.origin, VAPRO_ORIGIN_UNKNOWN);
	clear_rows(NULL);
	for (int i = 0; i < 40; i++) {
		add(0, i % 4 ? 1000 : 1500, i % 4 ? 10 : 110, i % 4 ? 100 : 400);
		add(1, i % 4 ? 1000 : 1500, i % 4 ? 10 : 110, i % 4 ? 100 : 400);
	}
	figures = figures_of(2);
	assert_near(figures.software, 100 / 500.0, 1e-9);
	assert_near(figures.frequency, 300 / 500.0, 1e-9);
	assert_true(isnan(figures.stalls));
	assert_int_equal(figures.origin, VAPRO_ORIGIN_HARDWARE);
}

/* Stalls count where nearly all fragments were counted. */
static void test_stalls(void **state)
{
	(void)state;
	for (int all = 0; all < 2; all++) {
		struct variability_figures figures;

		clear_rows(NULL);
		for (int i = 0; i < 40; i++) {
			const double part[VARIATION_PARTS] = {[VARIATION_STALLS] = i % 4 ? 4000 : 9000};
			const struct variation_bundle bundle = {.bin = (uint64_t)i,
								.n = 10,
								.ns = i % 4 ? 10000 : 16000,
								.counted = all || i % 2,
								.part = part};

			assert_int_equal(variation__add(&rows[0], &bundle), 0);
		}
		figures = figures_of(1);
		assert_int_equal(figures.kind, VAPRO_VARIES_TEMPORALLY);
		assert_int_equal(figures.origin, all ? VAPRO_ORIGIN_HARDWARE : VAPRO_ORIGIN_UNKNOWN);
		if (all)
			assert_near(figures.stalls, 5 / 6.0, 1e-9);
		else
			assert_true(isnan(figures.stalls));
		assert_true(isnan(figures.between) && isnan(figures.slowest) && isnan(figures.over_fastest));
	}
}

/* Rows of which some have slow and some have fast outliers: the median RV is that of a row, and no mean of both. */
static void test_signs(void **state)
{
	struct variability_figures figures;

	(void)state;
	for (size_t row = 0; row < 4; row++)
		for (int i = 0; i < 200; i++)
			add(row, i % 10 ? 1000 : row % 2 ? 1000 + 20 : 1000 - 20, 0, 0);
	figures = figures_of(4);
	/* two values, one with a share of a tenth */
	assert_near(fabs(figures.rv), 1 / 0.09 - 3, 1e-6);
	assert_near(fabs(figures.rv_worst), 1 / 0.09 - 3, 1e-6);
}

/* Rows with fewer than five batches take no part, and keep their places. */
static void test_few(void **state)
{
	struct variability_figures figures;

	(void)state;
	assert_int_equal(variability__of(list, 0, &figures), -ENODATA);
	for (int i = 0; i < 4; i++)
		add(0, 5000, 0, 0);
	assert_int_equal(variation__close(&rows[0]), 0);
	assert_int_equal(variability__of(list, 1, &figures), -ENODATA);
	for (size_t row = 1; row < ROWS; row++)
		for (int i = 0; i < 120; i++)
			add(row, i % 10 || row != 5 ? 1000 + i % 2 : 1900, 0, 0);
	figures = figures_of(ROWS);
	assert_int_equal(figures.rows, ROWS - 1);
	assert_int_equal(figures.temporal_row, 5);
	assert_int_equal(figures.rv_row, 5);
	assert_true(figures.rv_worst > 4);
	assert_true(figures.slowest < 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_between, clear_rows, clear_rows),
	    cmocka_unit_test_setup_teardown(test_between_by_chance, clear_rows, clear_rows),
	    cmocka_unit_test_setup_teardown(test_kinds, clear_rows, clear_rows),
	    cmocka_unit_test_setup_teardown(test_successive, clear_rows, clear_rows),
	    cmocka_unit_test_setup_teardown(test_origin, clear_rows, clear_rows),
	    cmocka_unit_test_setup_teardown(test_stalls, clear_rows, clear_rows),
	    cmocka_unit_test_setup_teardown(test_signs, clear_rows, clear_rows),
	    cmocka_unit_test_setup_teardown(test_few, clear_rows, clear_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
