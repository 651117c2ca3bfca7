// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The regression against worked cases (tests/data/stats: expected by other statistics packages),
 * against least squares by orthogonalisation of the rows, and on degenerate input.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cjson/cJSON.h>
#include <cmocka.h>

#include "diagnose/regression.h"
#include "sim.h"

#define ROWS 400

struct rows {
	uint32_t factors;
	size_t count;
	double y[ROWS], x[ROWS][REGRESSION_FACTORS], weight[ROWS];
};

static void assert_close(double value, double expected, double tolerance, const char *what)
{
	if (!(fabs(value - expected) <= tolerance * fmax(fabs(expected), 1e-300)))
		fail_msg("%s: %.12g, expected %.12g", what, value, expected);
}

static void read_csv(const char *path, struct rows *rows)
{
	FILE *file = fopen(path, "r");
	char line[512], *at, *end;

	assert_non_null(file);
	memset(rows, 0, sizeof(*rows));
	assert_non_null(fgets(line, sizeof(line), file));
	for (at = line; *at; at++)
		rows->factors += *at == ',';
	while (fgets(line, sizeof(line), file)) {
		rows->y[rows->count] = strtod(line, &end);
		for (uint32_t j = 0; j < rows->factors; j++)
			rows->x[rows->count][j] = strtod(end + 1, &end);
		rows->weight[rows->count++] = 1;
	}
	fclose(file);
}

static cJSON *read_json(const char *path)
{
	FILE *file = fopen(path, "r");
	static char text[16384];
	size_t size;
	cJSON *json;

	assert_non_null(file);
	size = fread(text, 1, sizeof(text) - 1, file);
	text[size] = '\0';
	fclose(file);
	json = cJSON_Parse(text);
	assert_non_null(json);
	return json;
}

static cJSON *item(cJSON *object, const char *key)
{
	cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);

	assert_non_null(found);
	return found;
}

static double number_at(cJSON *object, const char *key, int index)
{
	return cJSON_GetArrayItem(item(object, key), index)->valuedouble;
}

static void gather(const struct rows *rows, struct regression_moments *moments)
{
	regression__begin(moments, rows->factors);
	for (size_t i = 0; i < rows->count; i++)
		assert_true(regression__add(moments, rows->y[i], rows->x[i], rows->weight[i]));
}

static int index_of(cJSON *list, const char *name)
{
	int index = 0;
	cJSON *one;

	cJSON_ArrayForEach(one, list)
	{
		if (!strcmp(one->valuestring, name))
			return index;
		index++;
	}
	return -1;
}

static void check_case(const char *csv, const char *expected_path)
{
	static struct rows rows;
	struct regression_moments moments;
	struct regression_result result;
	cJSON *expected = read_json(expected_path), *names, *steps = item(expected, "steps"), *ols, *last;
	uint32_t significant = 0;

	read_csv(csv, &rows);
	gather(&rows, &moments);
	regression__fit(&moments, &regression_defaults, &result);
	assert_int_equal(result.outcome, REGRESSION_FITTED);
	names = item(cJSON_GetArrayItem(steps, 0), "factors");
	for (int step = 0; step < cJSON_GetArraySize(steps); step++) {
		cJSON *removed = item(cJSON_GetArrayItem(steps, step), "removed");
		int at;

		if (!cJSON_IsString(removed))
			continue;
		at = index_of(names, removed->valuestring);
		assert_int_equal(result.factor[at].fate, REGRESSION_COLLINEAR);
		assert_int_equal(result.factor[at].removed_as, step + 1);
		assert_close(
		    result.factor[at].vif,
		    number_at(cJSON_GetArrayItem(steps, step), "vif",
			      index_of(item(cJSON_GetArrayItem(steps, step), "factors"), removed->valuestring)),
		    1e-6, "vif");
	}
	last = cJSON_GetArrayItem(steps, cJSON_GetArraySize(steps) - 1);
	assert_close(result.chi2, item(last, "chi2")->valuedouble, 1e-6, "chi2");
	assert_close(result.chi2_p, item(last, "chi2_p")->valuedouble, 1e-6, "chi2 p");
	ols = item(expected, "ols_raw");
	assert_close(result.intercept, item(ols, "intercept")->valuedouble, 1e-6, "intercept");
	assert_close(result.intercept_p, number_at(ols, "p", 0), 1e-6, "intercept p");
	assert_close(result.r2, item(ols, "r2")->valuedouble, 1e-6, "r2");
	assert_close(result.sigma, item(ols, "sigma")->valuedouble, 1e-6, "sigma");
	for (int k = 0; k < cJSON_GetArraySize(item(expected, "kept")); k++) {
		const char *name = cJSON_GetArrayItem(item(expected, "kept"), k)->valuestring;
		const struct regression_factor *factor = &result.factor[index_of(names, name)];

		assert_int_equal(factor->fate, REGRESSION_REMAINING);
		assert_close(factor->coefficient, number_at(ols, "beta", k), 1e-6, name);
		assert_close(factor->error, number_at(ols, "se", k + 1), 1e-6, name);
		assert_close(factor->t, number_at(ols, "t", k + 1), 1e-6, name);
		assert_close(factor->p, number_at(ols, "p", k + 1), 1e-6, name);
		assert_close(factor->vif, number_at(last, "vif", k), 1e-6, name);
		assert_int_equal(factor->significant, index_of(item(expected, "significant"), name) >= 0);
		significant += factor->significant;
	}
	assert_int_equal(significant, cJSON_GetArraySize(item(expected, "significant")));
	cJSON_Delete(expected);
}

static void test_worked_cases(void **state)
{
	(void)state;
	check_case("tests/data/stats/case1_pair.csv", "tests/data/stats/case1_pair.expected.json");
	check_case("tests/data/stats/case2_orth.csv", "tests/data/stats/case2_orth.expected.json");
}

/* The removed factor of a pair has the pair's cost, and names the factor that it cannot be distinguished from. */
static void test_implied_coefficient(void **state)
{
	static struct rows rows;
	struct regression_moments moments;
	struct regression_result result;

	(void)state;
	read_csv("tests/data/stats/case1_pair.csv", &rows);
	gather(&rows, &moments);
	regression__fit(&moments, &regression_defaults, &result);
	assert_close(result.factor[0].coefficient, 922.468, 1e-6, "implied");
	assert_int_equal(result.factor[0].shared, 1U << 1);
	assert_true(result.factor[0].significant);
}

/* Computes least squares by modified Gram-Schmidt, twice, in long double: shares no line with the tested code. */
static void by_rows(const struct rows *rows, const bool *use, long double *beta, long double *error)
{
	static long double q[REGRESSION_FACTORS + 1][ROWS], r[REGRESSION_FACTORS + 1][REGRESSION_FACTORS + 1];
	static long double inverse[REGRESSION_FACTORS + 1][REGRESSION_FACTORS + 1], left[ROWS];
	uint32_t column[REGRESSION_FACTORS + 1], count = 1;
	long double rss = 0, qy[REGRESSION_FACTORS + 1];

	for (uint32_t j = 0; j < rows->factors; j++)
		if (use[j])
			column[count++] = j;
	memset(r, 0, sizeof(r));
	for (uint32_t k = 0; k < count; k++) {
		for (size_t i = 0; i < rows->count; i++)
			q[k][i] = sqrtl(rows->weight[i]) * (k ? (long double)rows->x[i][column[k]] : 1);
		for (int pass = 0; pass < 2; pass++)
			for (uint32_t l = 0; l < k; l++) {
				long double dot = 0;

				for (size_t i = 0; i < rows->count; i++)
					dot += q[l][i] * q[k][i];
				for (size_t i = 0; i < rows->count; i++)
					q[k][i] -= dot * q[l][i];
				r[l][k] += dot;
			}
		for (size_t i = 0; i < rows->count; i++)
			r[k][k] += q[k][i] * q[k][i];
		r[k][k] = sqrtl(r[k][k]);
		for (size_t i = 0; i < rows->count; i++)
			q[k][i] /= r[k][k];
	}
	for (size_t i = 0; i < rows->count; i++)
		left[i] = sqrtl(rows->weight[i]) * rows->y[i];
	for (uint32_t k = 0; k < count; k++) {
		qy[k] = 0;
		for (size_t i = 0; i < rows->count; i++)
			qy[k] += q[k][i] * left[i];
		for (size_t i = 0; i < rows->count; i++)
			left[i] -= qy[k] * q[k][i];
	}
	for (size_t i = 0; i < rows->count; i++)
		rss += left[i] * left[i];
	memset(inverse, 0, sizeof(inverse));
	for (int k = (int)count - 1; k >= 0; k--) {
		inverse[k][k] = 1 / r[k][k];
		for (uint32_t j = (uint32_t)k + 1; j < count; j++) {
			for (uint32_t l = (uint32_t)k + 1; l <= j; l++)
				inverse[k][j] -= r[k][l] * inverse[l][j];
			inverse[k][j] /= r[k][k];
		}
	}
	for (uint32_t k = 0; k < count; k++) {
		long double sum = 0, squares = 0;

		for (uint32_t j = k; j < count; j++) {
			sum += inverse[k][j] * qy[j];
			squares += inverse[k][j] * inverse[k][j];
		}
		beta[k ? column[k] + 1 : 0] = sum;
		error[k ? column[k] + 1 : 0] = sqrtl(squares * rss / (rows->count - count));
	}
}

static void make_design(struct rows *rows, double collinear, uint64_t *seed)
{
	double scale[REGRESSION_FACTORS], offset[REGRESSION_FACTORS];
	int kind = (int)(sim_random(seed) * 4);

	rows->factors = 1 + (uint32_t)(sim_random(seed) * 6);
	rows->count = rows->factors + REGRESSION_ROWS_BEYOND + (size_t)(sim_random(seed) * 200);
	for (uint32_t j = 0; j < rows->factors; j++) {
		scale[j] = pow(10, sim_random(seed) * 12 - 3);
		offset[j] = sim_random(seed) < 0.5 ? 0 : 100 * sim_random(seed);
	}
	for (size_t i = 0; i < rows->count; i++) {
		double common = sim_gauss(seed);

		rows->weight[i] = kind == 3 ? 1 + floor(sim_random(seed) * 50) : 1;
		rows->y[i] = 1e5 * (10 + sim_gauss(seed));
		for (uint32_t j = 0; j < rows->factors; j++) {
			/* kind 1: collinear; kind 2: nearly collinear */
			double share = kind == 1 ? collinear : kind == 2 ? 0.9 : 0;

			rows->x[i][j] = scale[j] * (offset[j] + share * common + (1 - share) * sim_gauss(seed));
			rows->y[i] += (j % 3) * 4e4 * rows->x[i][j] / scale[j];
		}
	}
}

/* 300 designs: the fit equals least squares of the rows on the retained factors. */
static void test_random_designs(void **state)
{
	static struct rows rows;
	uint64_t seed = 42;
	int removed = 0, weighted = 0;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct regression_moments moments;
		struct regression_result result;
		long double beta[REGRESSION_FACTORS + 1], error[REGRESSION_FACTORS + 1];
		bool use[REGRESSION_FACTORS];

		make_design(&rows, 0.99999, &seed);
		gather(&rows, &moments);
		regression__fit(&moments, &regression_defaults, &result);
		assert_int_equal(result.outcome, REGRESSION_FITTED);
		for (uint32_t j = 0; j < rows.factors; j++) {
			use[j] = result.factor[j].fate == REGRESSION_REMAINING;
			removed += !use[j];
		}
		weighted += rows.weight[0] != 1;
		by_rows(&rows, use, beta, error);
		for (uint32_t j = 0; j < rows.factors; j++) {
			if (!use[j])
				continue;
			/* relative to the error: a coefficient of zero has no digits */
			assert_true(fabs(result.factor[j].coefficient - (double)beta[j + 1]) <=
				    1e-6 * fmax(fabs((double)beta[j + 1]), (double)error[j + 1]));
			assert_close(result.factor[j].error, (double)error[j + 1], 1e-6, "standard error");
			assert_true(isfinite(result.factor[j].p) && result.factor[j].p >= 0 && result.factor[j].p <= 1);
		}
		assert_true(fabs(result.intercept - (double)beta[0]) <=
			    1e-6 * fmax(fabs((double)beta[0]), (double)error[0]));
	}
	assert_true(removed > 50 && weighted > 20);
}

/*
 * 300 designs and the same with an exact multiple of one factor appended: the multiple goes first, whatever
 * else is collinear, and the other retained factors are the same as without it.
 */
static void test_exact_multiple(void **state)
{
	static struct rows rows, with;
	uint64_t seed = 15;
	int compared = 0, others_removed = 0;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct regression_moments moments;
		struct regression_result without, result;
		uint32_t of;
		double times;

		make_design(&rows, 0.999, &seed);
		of = (uint32_t)(sim_random(&seed) * rows.factors);
		times = pow(2, floor(sim_random(&seed) * 40 - 20)); /* exact in binary */
		with = rows;
		with.factors++;
		for (size_t i = 0; i < rows.count; i++)
			with.x[i][rows.factors] = times * rows.x[i][of];
		gather(&rows, &moments);
		regression__fit(&moments, &regression_defaults, &without);
		gather(&with, &moments);
		regression__fit(&moments, &regression_defaults, &result);
		/* one row is missing where a design has the fewest possible rows */
		if (moments.rows < with.factors + REGRESSION_ROWS_BEYOND)
			continue;
		compared++;
		assert_int_equal(result.outcome, REGRESSION_FITTED);
		assert_int_equal(result.factor[rows.factors].fate, REGRESSION_COLLINEAR);
		assert_int_equal(result.factor[rows.factors].removed_as, 1);
		assert_true(isinf(result.factor[rows.factors].vif));
		for (uint32_t j = 0; j < rows.factors; j++) {
			bool removed = without.factor[j].fate == REGRESSION_COLLINEAR;

			others_removed += removed;
			assert_int_equal(result.factor[j].fate, without.factor[j].fate);
			assert_int_equal(result.factor[j].removed_as, removed ? without.factor[j].removed_as + 1 : 0);
		}
	}
	assert_true(compared > 290 && others_removed > 50);
}

/* Rows gathered in parts and merged in any order give the same result as together. */
static void test_merge(void **state)
{
	static struct rows rows;
	struct regression_moments whole, parts[5], sum;
	struct regression_result one, other;
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 50; round++) {
		make_design(&rows, 0.99999, &seed);
		gather(&rows, &whole);
		for (int i = 0; i < 5; i++)
			regression__begin(&parts[i], rows.factors);
		for (size_t i = 0; i < rows.count; i++)
			regression__add(&parts[(int)(sim_random(&seed) * 5)], rows.y[i], rows.x[i], rows.weight[i]);
		regression__begin(&sum, rows.factors);
		for (int i = 0; i < 5; i++)
			regression__merge(&sum, &parts[(i * 3 + round) % 5]);
		assert_int_equal(sum.rows, whole.rows);
		regression__fit(&whole, &regression_defaults, &one);
		regression__fit(&sum, &regression_defaults, &other);
		for (uint32_t j = 0; j < rows.factors; j++) {
			assert_int_equal(one.factor[j].fate, other.factor[j].fate);
			if (one.factor[j].fate == REGRESSION_REMAINING)
				assert_true(fabs(one.factor[j].coefficient - other.factor[j].coefficient) <=
					    1e-6 * one.factor[j].error);
		}
	}
}

static void test_degenerate(void **state)
{
	struct regression_moments moments;
	struct regression_result result;
	const double nothing[2] = {0, 0}, bad[2] = {NAN, 1};

	(void)state;
	regression__begin(&moments, 2);
	regression__fit(&moments, &regression_defaults, &result);
	assert_int_equal(result.outcome, REGRESSION_TOO_FEW);
	assert_false(regression__add(&moments, 1, bad, 1));
	assert_false(regression__add(&moments, INFINITY, nothing, 1));
	assert_false(regression__add(&moments, 1, nothing, 0));
	for (int i = 0; i < 30; i++)
		assert_true(regression__add(&moments, 5, (double[]){i, 3}, 1));
	regression__fit(&moments, &regression_defaults, &result);
	assert_int_equal(result.outcome, REGRESSION_NO_VARIANCE);

	regression__begin(&moments, 2);
	for (int i = 0; i < 30; i++)
		regression__add(&moments, i, (double[]){4e9, 3}, 1);
	regression__fit(&moments, &regression_defaults, &result);
	assert_int_equal(result.outcome, REGRESSION_NO_FACTOR);
	assert_int_equal(result.factor[0].fate, REGRESSION_CONSTANT);

	/* Exact duplicates, an exact law, and a constant: one of the pair is retained, only the stated is NAN. */
	regression__begin(&moments, 3);
	for (int i = 0; i < 40; i++)
		regression__add(&moments, 7 + 2.0 * i, (double[]){i, 10 * i, 3}, 1);
	regression__fit(&moments, &regression_defaults, &result);
	assert_int_equal(result.outcome, REGRESSION_FITTED);
	assert_int_equal(result.factor[0].fate, REGRESSION_REMAINING);
	assert_int_equal(result.factor[1].fate, REGRESSION_COLLINEAR);
	assert_int_equal(result.factor[2].fate, REGRESSION_CONSTANT);
	assert_true(isinf(result.factor[1].vif));
	assert_close(result.factor[0].coefficient, 2, 1e-9, "law");
	assert_close(result.factor[1].coefficient, 0.2, 1e-9, "implied law");
	assert_true(result.factor[0].p < 1e-12 && result.factor[0].significant);
	assert_close(result.intercept, 7, 1e-9, "intercept");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_worked_cases),   cmocka_unit_test(test_implied_coefficient),
	    cmocka_unit_test(test_random_designs), cmocka_unit_test(test_exact_multiple),
	    cmocka_unit_test(test_merge),	   cmocka_unit_test(test_degenerate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
