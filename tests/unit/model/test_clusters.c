/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cells and clusters against a plain Algorithm 1 that sorts single vectors; merging. */
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
#define MOST 160

struct vector {
	double x[D];
	uint64_t ns;
	uint32_t handle;
	int cluster; /* by the plain algorithm */
};

static struct vapro_config config;

/* ---- Algorithm 1 as the paper has it: sort, take the least, take all that are near, again */

static double length(const double *a, const double *b)
{
	double squares = 0;

	for (int i = 0; i < D; i++)
		squares += (a[i] - b[i]) * (a[i] - b[i]);
	return sqrt(squares);
}

/* Near a seed the seed's component, or the floor where that is more, is the unit of each component. */
static double unit_of(double component)
{
	return config.cluster_tolerance > 0 ? fmax(component, (double)config.cluster_floor / config.cluster_tolerance)
					    : 1;
}

static double distance(const double *vector, const double *seed)
{
	double most = 0;

	for (int i = 0; i < D; i++) {
		double apart = fabs(vector[i] - seed[i]);

		most = fmax(most, apart > 0 ? apart / unit_of(seed[i]) : 0);
	}
	return most;
}

static double units_of(const double *seed)
{
	static const double zero[D];

	return distance(zero, seed);
}

static int before(const struct vector *a, const struct vector *b)
{
	static const double zero[D];
	double x = length(a->x, zero), y = length(b->x, zero);

	for (int i = 0; x == y && i < D; i++) {
		if (a->x[i] != b->x[i])
			return a->x[i] < b->x[i] ? -1 : 1;
	}
	return (x > y) - (x < y);
}

static int compare_vectors(const void *a, const void *b)
{
	return before(a, b);
}

static double reach_of(void)
{
	return config.cluster_tolerance > 0 ? config.cluster_tolerance : (double)config.cluster_floor;
}

static int plain(struct vector *vectors, int count)
{
	double reach = reach_of();
	int clusters = 0;

	qsort(vectors, (size_t)count, sizeof(*vectors), compare_vectors);
	for (int i = 0; i < count; i++)
		vectors[i].cluster = -1;
	for (int seed = 0; seed < count; seed++) {
		if (vectors[seed].cluster >= 0)
			continue;
		for (int i = seed; i < count; i++) {
			if (vectors[i].cluster < 0 && distance(vectors[i].x, vectors[seed].x) <= reach)
				vectors[i].cluster = clusters;
		}
		clusters++;
	}
	return clusters;
}

/* ---- made-up workloads */

enum kind { CLASSES, JITTER, CONTINUUM, SMALL, BORDERS, KINDS };

/* scale: factor of all components of a vector, as longer loops have more of everything */
static double number(uint64_t *random, enum kind kind, const double *centers, double scale)
{
	double center = centers[(int)(sim_random(random) * 5)];

	switch (kind) {
	case CLASSES: /* counts repeat but for a few */
		return center + floor(3 * sim_random(random));
	case JITTER: /* upwards, as counters err */
		return floor(center * (1 + 0.03 * sim_random(random)));
	case CONTINUUM:
		return floor(centers[0] * scale * (1 + 0.001 * sim_random(random)));
	case SMALL:
		return floor(400 * sim_random(random));
	default: /* on and beside the border of the least */
		return centers[0] * (1 + 0.05 * floor(3 * sim_random(random))) + floor(2 * sim_random(random));
	}
}

static int make(struct vector *vectors, uint64_t *random, int dimensions)
{
	int count = 1 + (int)(MOST * sim_random(random) * sim_random(random));
	enum kind kind = (enum kind)(KINDS * sim_random(random));
	double centers[D][5];

	for (int k = 0; k < D; k++) {
		for (int i = 0; i < 5; i++)
			centers[k][i] = floor(exp(4 + 14 * sim_random(random)));
	}
	config.cluster_tolerance = sim_random(random) < 0.7 ? 0.05 : 0.2 * sim_random(random);
	config.cluster_floor = sim_random(random) < 0.5 ? 64 : 0;
	for (int i = 0; i < count; i++) {
		double scale = 0.3 + 4 * sim_random(random);

		vectors[i] = (struct vector){.ns = (uint64_t)(1e6 * sim_random(random))};
		for (int k = 0; k < dimensions; k++)
			vectors[i].x[k == 2 ? D - 1 : k] = number(random, kind, centers[k], scale);
		if (i && sim_random(random) < 0.3)
			memcpy(vectors[i].x, vectors[i - 1].x, sizeof(vectors[i].x));
	}
	return count;
}

/* ---- the comparison */

static void check_exact(const struct clusters *clusters, const struct vector *vectors, int count, int plain_count)
{
	const struct cluster *all;
	uint64_t members[MOST + 1] = {0}, sum_ns[MOST + 1] = {0}, least_ns[MOST + 1];
	size_t found;

	all = clusters__all(clusters, &found);
	assert_int_equal(found, plain_count);
	memset(least_ns, 0xff, sizeof(least_ns));
	for (int i = 0; i < count; i++) {
		int at = vectors[i].cluster;

		/* both algorithms number clusters by seed */
		assert_ptr_equal(clusters__of(clusters, vectors[i].handle), &all[at]);
		if (!members[at]++)
			assert_memory_equal(all[at].seed, vectors[i].x, sizeof(vectors[i].x));
		sum_ns[at] += vectors[i].ns;
		least_ns[at] = vectors[i].ns < least_ns[at] ? vectors[i].ns : least_ns[at];
	}
	for (size_t i = 0; i < found; i++) {
		assert_int_equal(all[i].members, members[i]);
		assert_int_equal(all[i].sum_ns, sum_ns[i]);
		assert_int_equal(all[i].fastest_ns, least_ns[i]);
	}
}

/*
 * Checks Algorithm 1 but for thresholds: seeds are the least remaining vectors, members lie within reach +
 * slack, and vectors of later clusters beyond reach - slack. vectors are in order.
 */
static void check_bound(const struct clusters *clusters, const struct vector *vectors, int count)
{
	const struct cluster_certificate *certificate = clusters__certificate(clusters);
	double width = ldexp(CELLS_WIDTH, (int)certificate->widened);
	double most = certificate->widened > 8 ? INFINITY : config.cluster_tolerance < width ? width : width / 2;
	double reach = reach_of();
	const struct cluster *all;
	bool seen[MOST] = {0};
	size_t found;

	all = clusters__all(clusters, &found);
	assert_true(certificate->slack >= 0 && certificate->slack <= most * (1 + 1e-9));
	assert_true(certificate->straddling > 0);
	for (int i = 0; i < count; i++) {
		const struct cluster *own = clusters__of(clusters, vectors[i].handle);

		assert_non_null(own);
		if (!seen[own - all])
			assert_memory_equal(own->seed, vectors[i].x, sizeof(vectors[i].x));
		seen[own - all] = true;
		for (const struct cluster *at = all; at <= own; at++) {
			double slack = certificate->slack * (units_of(at->seed) + reach) * (1 + 1e-9);
			double apart = distance(vectors[i].x, at->seed);

			assert_true(at == own ? apart <= reach + slack : apart >= reach - slack);
		}
	}
}

static void against_plain(int trials, uint64_t random, int dimensions, size_t cells)
{
	int exact = 0, approximate = 0, widened = 0;

	for (int trial = 0; trial < trials; trial++) {
		struct vector vectors[MOST];
		int count = make(vectors, &random, dimensions), plain_count;
		struct clusters *clusters;

		config.cluster_cells = cells;
		clusters = clusters__new(&config);
		for (int i = 0; i < count; i++)
			assert_int_equal(clusters__add(clusters, vectors[i].x, vectors[i].x, 1, vectors[i].ns,
						       vectors[i].ns, &vectors[i].handle),
					 0);
		assert_int_equal(clusters__form(clusters), 0);
		plain_count = plain(vectors, count);
		widened += clusters__certificate(clusters)->widened > 0;
		if (clusters__certificate(clusters)->exact) {
			check_exact(clusters, vectors, count, plain_count);
			assert_true(clusters__certificate(clusters)->slack == 0);
			exact++;
		} else {
			check_bound(clusters, vectors, count);
			approximate++;
		}
		clusters__free(clusters);
	}
	print_message("%d dimensions, %zu cells: %d exact, %d within the bound, %d of all widened\n", dimensions, cells,
		      exact, approximate, widened);
	assert_true(exact > trials / 4 && approximate > trials / 50);
	assert_true(cells > MOST ? !widened : widened > trials / 50);
}

static int setup(void **state)
{
	(void)state;
	sim_config(&config);
	return 0;
}

static void test_one_dimension(void **state)
{
	(void)state;
	against_plain(10000, 1, 1, 4096);
	against_plain(1000, 2, 1, 24);
}

static void test_three_dimensions(void **state)
{
	(void)state;
	against_plain(10000, 3, 3, 4096);
	against_plain(1000, 4, 3, 24);
}

/* ---- merging */

static int compare_keys(const void *a, const void *b)
{
	return memcmp(((const struct workload_cell *)a)->key, ((const struct workload_cell *)b)->key,
		      sizeof(((struct workload_cell *)0)->key));
}

static struct workload_cell *sorted(const struct clusters *clusters, size_t *count)
{
	const struct cells *cells = clusters__cells(clusters);
	struct workload_cell *copy = calloc(cells->count, sizeof(*copy));

	*count = cells->count;
	memcpy(copy, cells->items, cells->count * sizeof(*copy));
	/* clears the origin of a set, not its content */
	for (size_t i = 0; i < cells->count; i++)
		copy[i].handle = copy[i].cluster = copy[i].name = 0;
	qsort(copy, *count, sizeof(*copy), compare_keys);
	return copy;
}

static void check_same(struct clusters *a, struct clusters *b)
{
	struct workload_cell *x, *y;
	const struct cluster *left, *right;
	size_t count, other;

	assert_int_equal(clusters__cells(a)->widened, clusters__cells(b)->widened);
	x = sorted(a, &count);
	y = sorted(b, &other);
	assert_int_equal(count, other);
	for (size_t i = 0; i < count; i++) {
		assert_memory_equal(x[i].key, y[i].key, sizeof(x[i].key));
		assert_memory_equal(x[i].low, y[i].low, sizeof(x[i].low));
		assert_memory_equal(x[i].high, y[i].high, sizeof(x[i].high));
		assert_memory_equal(x[i].least, y[i].least, sizeof(x[i].least));
		assert_true(x[i].norm == y[i].norm && x[i].corner == y[i].corner);
		assert_true(x[i].n == y[i].n && x[i].sum_ns == y[i].sum_ns && x[i].min_ns == y[i].min_ns);
	}
	free(x);
	free(y);
	assert_int_equal(clusters__form(a), 0);
	assert_int_equal(clusters__form(b), 0);
	assert_true(clusters__certificate(a)->exact == clusters__certificate(b)->exact);
	assert_true(clusters__certificate(a)->slack == clusters__certificate(b)->slack);
	left = clusters__all(a, &count);
	right = clusters__all(b, &other);
	assert_int_equal(count, other);
	for (size_t i = 0; i < count; i++) {
		assert_memory_equal(left[i].seed, right[i].seed, sizeof(left[i].seed));
		assert_true(left[i].members == right[i].members && left[i].sum_ns == right[i].sum_ns);
		assert_true(left[i].fastest_ns == right[i].fastest_ns && left[i].reach == right[i].reach);
	}
}

/* Bundles of ranks, hosts and windows give the same clusters in any order, below and beyond the bound. */
static void test_order(void **state)
{
	static const uint64_t bounds[] = {1, 2, 16, 50, 4096};
	uint64_t random = 5;

	(void)state;
	for (int trial = 0; trial < 1500; trial++) {
		struct vector vectors[MOST];
		double high[MOST][D];
		int count = make(vectors, &random, 1 + trial % 3), order[MOST];
		struct clusters *one, *other;

		config.cluster_cells = bounds[trial % 5];
		one = clusters__new(&config);
		other = clusters__new(&config);
		for (int i = 0; i < count; i++) {
			int place = (int)((i + 1) * sim_random(&random));

			order[i] = order[place];
			order[place] = i;
			/* some are bundles */
			for (int k = 0; k < D; k++)
				high[i][k] = vectors[i].x[k] * (i % 4 ? 1 : 1 + 0.1 * sim_random(&random));
			clusters__add(one, vectors[i].x, high[i], 1 + i % 4, vectors[i].ns, vectors[i].ns / 2, NULL);
		}
		for (int k = 0; k < count; k++) {
			int i = order[k];

			clusters__add(other, vectors[i].x, high[i], 1 + i % 4, vectors[i].ns, vectors[i].ns / 2, NULL);
			/* forming them meanwhile makes no difference */
			if (sim_random(&random) < 0.05)
				assert_int_equal(clusters__form(other), 0);
		}
		check_same(one, other);
		clusters__free(one);
		clusters__free(other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_dimension),
	    cmocka_unit_test(test_three_dimensions),
	    cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
