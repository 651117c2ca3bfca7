// SPDX-License-Identifier: GPL-2.0-or-later
/* The agreement of clusters with the truth, against values by hand and by sklearn. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/accuracy/v_measure.h"

static struct v_measure measure(const char *truths, const char *found, const uint64_t *n)
{
	struct v_measure_count counts[16];
	struct v_measure result = {0};
	size_t count = strlen(truths);

	for (size_t i = 0; i < count; i++)
		counts[i] = (struct v_measure_count){(uint64_t)truths[i], (uint64_t)found[i], n ? n[i] : 1};
	v_measure__of(counts, count, &result);
	return result;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-6;
}

static void test_v_measure(void **state)
{
	static const uint64_t pair[] = {300, 200, 100, 7}, third[] = {1, 1, 2};
	struct v_measure is;

	(void)state;
	is = measure("aabbcc", "xxyyzz", NULL);
	assert_true(is.homogeneity == 1 && is.completeness == 1 && is.harmonic == 1);
	assert_true(is.fragments == 6 && is.truths == 3 && is.clusters == 3);
	/* all in one cluster: complete, not homogeneous */
	is = measure("aabb", "xxxx", NULL);
	assert_true(is.homogeneity == 0 && is.completeness == 1 && is.harmonic == 0);
	/* one class torn apart: homogeneous, not complete */
	is = measure("aaaa", "xxyy", NULL);
	assert_true(is.homogeneity == 1 && is.completeness == 0 && is.harmonic == 0);
	/* independent of each other */
	is = measure("aabb", "xyxy", NULL);
	assert_true(near(is.homogeneity, 0) && near(is.completeness, 0));
	/* by hand: H(C) = ln 2, H(C|K) = 3/4 H(1/3); H(K) = 1/4 ln 4 + 3/4 ln 4/3, H(K|C) = 1/2 ln 2 */
	is = measure("aabb", "xyyy", NULL);
	assert_true(near(is.homogeneity, 1 - 0.75 * (log(3) - 2 * log(2) / 3) / log(2)));
	assert_true(near(is.completeness, 1 - 0.5 * log(2) / (0.25 * log(4) + 0.75 * log(4.0 / 3))));
	/* weights are fragments; a pair may come in pieces */
	assert_true(near(measure("aab", "xxy", third).homogeneity, 1));
	assert_true(near(measure("abb", "xyx", third).harmonic, measure("abbb", "xyxx", NULL).harmonic));
	/* sklearn 1.2.1 on four classes of which two are in one cluster */
	is = measure("abcd", "xxyz", pair);
	assert_true(near(is.homogeneity, 0.478318) && is.completeness == 1 && near(is.harmonic, 0.647111));
	is = measure("a", "x", NULL);
	assert_true(is.homogeneity == 1 && is.completeness == 1 && is.harmonic == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_v_measure)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
