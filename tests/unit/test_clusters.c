/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cells and clusters against a plain Algorithm 1 that sorts single vectors; merging; bounds; identity; scores. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/cluster.h"
#include "model/score.h"
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

/* Near a seed each component is measured by what the seed has of it; where the floor is more, by that. */
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

/* scale: of all components of a vector, as loops that go on longer have more of everything */
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

		/* both number them by seed */
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
 * Algorithm 1 but for thresholds: seeds are the least of what was left, members lie within reach +
 * slack, and what was left to later ones beyond reach - slack. vectors are in order.
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
	/* how a set came about, not what it holds */
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

/* Ranks, hosts and windows in any tree of merges give what one run gives, below and beyond the bound. */
static void test_merge_order(void **state)
{
	static const uint64_t bounds[] = {1, 2, 16, 50, 4096};
	uint64_t random = 5;

	(void)state;
	for (int trial = 0; trial < 1500; trial++) {
		struct vector vectors[MOST];
		int count = make(vectors, &random, 1 + trial % 3), parts = 1 + (int)(8 * sim_random(&random));
		struct clusters *whole, *part[8];

		config.cluster_cells = bounds[trial % 5];
		whole = clusters__new(&config);
		for (int i = 0; i < parts; i++)
			part[i] = clusters__new(&config);
		for (int i = 0; i < count; i++) {
			struct clusters *to = part[(int)(parts * sim_random(&random))];
			double high[D];

			/* some are bundles */
			for (int k = 0; k < D; k++)
				high[k] = vectors[i].x[k] * (i % 4 ? 1 : 1 + 0.1 * sim_random(&random));
			clusters__add(whole, vectors[i].x, high, 1 + i % 4, vectors[i].ns, vectors[i].ns / 2, NULL);
			clusters__add(to, vectors[i].x, high, 1 + i % 4, vectors[i].ns, vectors[i].ns / 2, NULL);
		}
		while (parts > 1) {
			int from = (int)(parts * sim_random(&random)), to = (int)(parts * sim_random(&random));

			if (from == to)
				continue;
			/* that some were formed before makes no difference */
			if (sim_random(&random) < 0.3)
				assert_int_equal(clusters__form(part[from]), 0);
			assert_int_equal(clusters__merge(part[to], part[from]), 0);
			clusters__free(part[from]);
			part[from] = part[--parts];
		}
		check_same(whole, part[0]);
		clusters__free(whole);
		clusters__free(part[0]);
	}
}

/* ---- bounds and odd input */

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
	/* nothing at all */
	assert_int_equal(clusters__form(clusters), 0);
	clusters__all(clusters, &count);
	assert_int_equal(count, 0);
	assert_true(clusters__certificate(clusters)->exact);
	assert_int_equal(clusters__find(clusters, zero), CELLS_NONE);
	assert_null(clusters__of(clusters, CELLS_NONE));
	/* refused, and nothing stays of it */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		double vector[D] = {1, bad[i]};

		assert_int_equal(clusters__add(clusters, vector, vector, 1, 1, 1, NULL), -EINVAL);
	}
	assert_int_equal(clusters__add(clusters, one, zero, 1, 1, 1, NULL), -EINVAL); /* low above high */
	assert_int_equal(clusters__cells(clusters)->count, 0);
	/* all zeros: one cluster; what is too small to square counts as 0 */
	for (int i = 0; i < 10; i++)
		assert_int_equal(clusters__add(clusters, zero, zero, 1, 5, 5, NULL), 0);
	assert_int_equal(clusters__add(clusters, tiny, tiny, 1, 5, 5, NULL), 0);
	assert_int_equal(clusters__form(clusters), 0);
	all = clusters__all(clusters, &count);
	assert_int_equal(count, 1);
	assert_int_equal(all[0].members, 11);
	assert_true(all[0].norm == 0 && clusters__certificate(clusters)->exact);
	/* the largest numbers there may be */
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
	/* as many instructions, a few more of what is counted in small numbers */
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
	struct clusters *clusters, *other;
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
	/* A smaller seed turns up and cuts the class in two: the greater part keeps the name. */
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
	/* Another host brings a new workload between them: names stay, its own are not taken over. */
	other = clusters__new(&config);
	for (int i = 0; i < 10; i++) {
		add(other, 3000, 700);
		add(other, 5000, 901);
	}
	assert_int_equal(clusters__form(other), 0);
	assert_int_equal(clusters__merge(clusters, other), 0);
	assert_int_equal(clusters__form(clusters), 0);
	assert_true(id_at(clusters, 1000) == low && id_at(clusters, 5000) == high && id_at(clusters, 1048) == cut);
	assert_true(id_at(clusters, 3000) > cut);
	clusters__free(other);
	clusters__free(clusters);
}

/* ---- scores */

static struct vapro_score score(const char *truths, const char *found, const uint64_t *n)
{
	struct score_count counts[16];
	struct vapro_score result = {0};
	size_t count = strlen(truths);

	for (size_t i = 0; i < count; i++)
		counts[i] = (struct score_count){(uint64_t)truths[i], (uint64_t)found[i], n ? n[i] : 1};
	score__of(counts, count, &result);
	return result;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-6;
}

static void test_score(void **state)
{
	static const uint64_t pair[] = {300, 200, 100, 7}, third[] = {1, 1, 2};
	struct vapro_score is;

	(void)state;
	is = score("aabbcc", "xxyyzz", NULL);
	assert_true(is.homogeneity == 1 && is.completeness == 1 && is.v_measure == 1);
	assert_true(is.fragments == 6 && is.truths == 3 && is.clusters == 3);
	/* all in one cluster: complete, not homogeneous */
	is = score("aabb", "xxxx", NULL);
	assert_true(is.homogeneity == 0 && is.completeness == 1 && is.v_measure == 0);
	/* one class torn apart: the other way round */
	is = score("aaaa", "xxyy", NULL);
	assert_true(is.homogeneity == 1 && is.completeness == 0 && is.v_measure == 0);
	/* independent of each other */
	is = score("aabb", "xyxy", NULL);
	assert_true(near(is.homogeneity, 0) && near(is.completeness, 0));
	/* by hand: H(C) = ln 2, H(C|K) = 3/4 H(1/3); H(K) = 1/4 ln 4 + 3/4 ln 4/3, H(K|C) = 1/2 ln 2 */
	is = score("aabb", "xyyy", NULL);
	assert_true(near(is.homogeneity, 1 - 0.75 * (log(3) - 2 * log(2) / 3) / log(2)));
	assert_true(near(is.completeness, 1 - 0.5 * log(2) / (0.25 * log(4) + 0.75 * log(4.0 / 3))));
	/* weights are fragments; a pair may come in pieces */
	assert_true(near(score("aab", "xxy", third).homogeneity, 1));
	assert_true(near(score("abb", "xyx", third).v_measure, score("abbb", "xyxx", NULL).v_measure));
	/* sklearn 1.2.1 on four classes of which two are in one cluster */
	is = score("abcd", "xxyz", pair);
	assert_true(near(is.homogeneity, 0.478318) && is.completeness == 1 && near(is.v_measure, 0.647111));
	is = score("a", "x", NULL);
	assert_true(is.homogeneity == 1 && is.completeness == 1 && is.v_measure == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_dimension), cmocka_unit_test(test_three_dimensions),
	    cmocka_unit_test(test_merge_order),	  cmocka_unit_test(test_bounded),
	    cmocka_unit_test(test_odd_input),	  cmocka_unit_test(test_paper),
	    cmocka_unit_test(test_identity),	  cmocka_unit_test(test_score),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
