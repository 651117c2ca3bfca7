/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clusters at the borders of their input: bounds, odd input, the paper's example; identity. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/clusters.h"
#include "sim.h"

#define D VAPRO_MAGNITUDES

static struct vapro_config config;

static void test_bounded(void **state)
{
	uint64_t random = 6, members = 0;
	struct clusters *clusters;
	const struct cluster *all;
	uint32_t handles[100];
	size_t count;

	(void)state;
	sim_config(&config);
	config.cluster_cells = 64;
	clusters = clusters__new(&config);
	/* An adversary: no two alike, over the whole range of numbers, ever wider. */
	for (int i = 0; i < 50000; i++) {
		double vector[D];

		for (int k = 0; k < D; k++)
			vector[k] = pow(10, 300.0 * i / 50000 * (sim_random(&random) - 0.5));
		assert_int_equal(clusters__add(clusters, vector, vector, 1, 10, 10, &handles[i % 100]), 0);
		assert_true(clusters__cells(clusters)->count <= 64);
		if (i % 10000 == 0)
			assert_int_equal(clusters__form(clusters), 0);
	}
	assert_true(clusters__cells(clusters)->handle_count <= 64 * 21);
	assert_int_equal(clusters__form(clusters), 0);
	assert_true(clusters__certificate(clusters)->widened > 8);
	assert_false(clusters__certificate(clusters)->exact);
	all = clusters__all(clusters, &count);
	assert_true(count <= 64);
	for (size_t i = 0; i < count; i++)
		members += all[i].members;
	assert_int_equal(members, 50000);
	for (int i = 0; i < 100; i++)
		assert_non_null(clusters__of(clusters, handles[i]));
	clusters__free(clusters);
	/* A state of fixed workload that met the bound is certified all the same. */
	config.cluster_cells = 16;
	clusters = clusters__new(&config);
	for (int i = 0; i < 40; i++) {
		double vector[D] = {1e6 * pow(1.3, i)};

		assert_int_equal(clusters__add(clusters, vector, vector, 7, 70, 10, NULL), 0);
	}
	assert_int_equal(clusters__form(clusters), 0);
	assert_true(clusters__certificate(clusters)->widened > 0);
	assert_false(clusters__certificate(clusters)->exact); /* neighbours shared cells */
	clusters__free(clusters);
}

static void add(struct clusters *clusters, double norm, uint64_t ns)
{
	double vector[D] = {norm};

	assert_int_equal(clusters__add(clusters, vector, vector, 1, ns, ns, NULL), 0);
}

static void test_odd_input(void **state)
{
	static const double bad[] = {-1, NAN, INFINITY, -INFINITY, 1e151};
	double zero[D] = {0}, one[D] = {1}, huge[D], tiny[D] = {1e-200, -0.0};
	struct clusters *clusters;
	const struct cluster *all;
	size_t count;

	(void)state;
	sim_config(&config);
	clusters = clusters__new(&config);
	/* no input */
	assert_int_equal(clusters__form(clusters), 0);
	clusters__all(clusters, &count);
	assert_int_equal(count, 0);
	assert_true(clusters__certificate(clusters)->exact);
	assert_int_equal(clusters__find(clusters, zero), CELLS_NONE);
	assert_null(clusters__of(clusters, CELLS_NONE));
	/* refused input leaves no trace */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		double vector[D] = {1, bad[i]};

		assert_int_equal(clusters__add(clusters, vector, vector, 1, 1, 1, NULL), -EINVAL);
	}
	assert_int_equal(clusters__add(clusters, one, zero, 1, 1, 1, NULL), -EINVAL); /* low above high */
	assert_int_equal(clusters__cells(clusters)->count, 0);
	/* all zeros: one cluster; numbers too small to square count as 0 */
	for (int i = 0; i < 10; i++)
		assert_int_equal(clusters__add(clusters, zero, zero, 1, 5, 5, NULL), 0);
	assert_int_equal(clusters__add(clusters, tiny, tiny, 1, 5, 5, NULL), 0);
	assert_int_equal(clusters__form(clusters), 0);
	all = clusters__all(clusters, &count);
	assert_int_equal(count, 1);
	assert_int_equal(all[0].members, 11);
	assert_true(all[0].norm == 0 && clusters__certificate(clusters)->exact);
	/* the largest possible numbers */
	for (int i = 0; i < D; i++)
		huge[i] = CELLS_MAGNITUDE_MAX;
	assert_int_equal(clusters__add(clusters, huge, huge, UINT32_MAX, UINT64_MAX, 1, NULL), 0);
	assert_int_equal(clusters__add(clusters, huge, huge, 1, 1, 1, NULL), 0);
	assert_int_equal(clusters__form(clusters), 0);
	all = clusters__all(clusters, &count);
	assert_int_equal(count, 2);
	assert_true(isfinite(all[1].norm) && all[1].members == 1ULL << 32 && all[1].sum_ns == UINT64_MAX);
	clusters__free(clusters);
	/* one fragment */
	clusters = clusters__new(&config);
	add(clusters, 12345, 678);
	assert_int_equal(clusters__form(clusters), 0);
	all = clusters__all(clusters, &count);
	assert_int_equal(count, 1);
	assert_true(all[0].members == 1 && all[0].norm == 12345 && all[0].fastest_ns == 678);
	clusters__free(clusters);
	/* nothing is near without tolerance and floor */
	config.cluster_floor = 0;
	config.cluster_tolerance = 0;
	clusters = clusters__new(&config);
	for (int i = 0; i < 100; i++)
		add(clusters, i % 10, 1);
	assert_int_equal(clusters__form(clusters), 0);
	clusters__all(clusters, &count);
	assert_int_equal(count, 10);
	assert_true(clusters__certificate(clusters)->exact);
	clusters__free(clusters);
}

/* ---- the paper's example, identity, better minima */

static void test_paper(void **state)
{
	struct clusters *clusters;
	const struct cluster *all;
	double low[D] = {5000, 300}, high[D] = {5200, 310}, other[D] = {1000, [VAPRO_NAMED] = 211};
	size_t count;

	(void)state;
	sim_config(&config);
	config.cluster_floor = 0;
	clusters = clusters__new(&config);
	for (int i = 1050; i >= 1000; i--)
		add(clusters, i, 100 + (uint64_t)i);
	add(clusters, 1060, 90);
	assert_int_equal(clusters__form(clusters), 0);
	all = clusters__all(clusters, &count);
	assert_int_equal(count, 2);
	assert_true(all[0].members == 51 && all[0].fastest_ns == 1100 && all[0].norm == 1000 && all[0].reach == 0.05);
	assert_true(clusters__certificate(clusters)->exact);
	/* a bundle that varies in two components has no known least member: not certified */
	assert_int_equal(clusters__add(clusters, low, high, 10, 1000, 70, NULL), 0);
	assert_int_equal(clusters__form(clusters), 0);
	assert_false(clusters__certificate(clusters)->exact);
	clusters__free(clusters);
	/* "1000-1050 instructions and 200-210 load and store instructions are put into the same cluster" */
	clusters = clusters__new(&config);
	for (int i = 0; i <= 50; i += 10) {
		for (int k = 0; k <= 10; k += 2) {
			double vector[D] = {1000 + i, [VAPRO_NAMED] = 200 + k};

			assert_int_equal(clusters__add(clusters, vector, vector, 1, 1, 1, NULL), 0);
		}
	}
	assert_int_equal(clusters__form(clusters), 0);
	all = clusters__all(clusters, &count);
	assert_true(count == 1 && all[0].members == 36 && clusters__certificate(clusters)->exact);
	/* as many instructions, a few more of a small count */
	assert_int_equal(clusters__add(clusters, other, other, 1, 1, 1, NULL), 0);
	assert_int_equal(clusters__form(clusters), 0);
	clusters__all(clusters, &count);
	assert_int_equal(count, 2);
	clusters__free(clusters);
}

static uint32_t id_at(const struct clusters *clusters, double norm)
{
	double vector[D] = {norm};
	const struct cluster *cluster = clusters__of(clusters, clusters__find(clusters, vector));

	return cluster ? cluster->id : 0;
}

static void test_identity(void **state)
{
	struct clusters *clusters;
	uint32_t low, high, cut;

	(void)state;
	sim_config(&config);
	config.cluster_floor = 0;
	clusters = clusters__new(&config);
	for (int i = 0; i < 50; i++) {
		add(clusters, 1000 + i, 500);
		add(clusters, 5000, 900);
	}
	assert_int_equal(clusters__form(clusters), 0);
	low = id_at(clusters, 1000);
	high = id_at(clusters, 5000);
	assert_true(low && high && low != high);
	/* A smaller seed appears and divides the class: the greater part retains the name. */
	add(clusters, 990, 450);
	assert_int_equal(id_at(clusters, 990), 0); /* not formed yet */
	assert_int_equal(clusters__form(clusters), 0);
	cut = id_at(clusters, 1048);
	assert_true(id_at(clusters, 1000) == low && id_at(clusters, 990) == low && id_at(clusters, 5000) == high);
	assert_true(cut && cut != low && cut != high);
	/* A faster member is the reference of the whole cluster from then on. */
	add(clusters, 5001, 600);
	assert_int_equal(clusters__form(clusters), 0);
	assert_int_equal(id_at(clusters, 5000), high);
	{
		double vector[D] = {5000};
		const struct cluster *cluster = clusters__of(clusters, clusters__find(clusters, vector));

		assert_true(cluster->fastest_ns == 600 && cluster->members == 51);
	}
	/* A new workload between the two: names stay. */
	for (int i = 0; i < 10; i++)
		add(clusters, 3000, 700);
	assert_int_equal(clusters__form(clusters), 0);
	assert_true(id_at(clusters, 1000) == low && id_at(clusters, 5000) == high && id_at(clusters, 1048) == cut);
	assert_true(id_at(clusters, 3000) > cut);
	clusters__free(clusters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bounded),
	    cmocka_unit_test(test_odd_input),
	    cmocka_unit_test(test_paper),
	    cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
