// SPDX-License-Identifier: GPL-2.0-or-later
#include "diagnose/regression.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_eigen.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <string.h>

static const double SINGULAR = 1e-10; /* least 1 - R_j^2 */
static const double CONSTANT = 1e-12; /* deviation of a column that counts as none, to its size */
static const double TIE = 1e-9;	      /* difference of shares that counts as none */

#define LEVEL 0.05   /* level of significance of all tests */
#define VIF_LEAST 10 /* variance inflation factor from which a factor may be removed */
#define PARTNER 0.1  /* least standardised auxiliary coefficient that shares a removed factor */

#define COLUMNS REGRESSION_FACTORS

const struct regression_options regression_defaults = {.alpha = LEVEL, .vif_min = VIF_LEAST, .partner = PARTNER};

void regression__begin(struct regression_moments *moments, uint32_t factors)
{
	memset(moments, 0, sizeof(*moments));
	moments->factors = factors < COLUMNS ? factors : COLUMNS;
}

bool regression__add(struct regression_moments *moments, double duration, const double *factors, double weight)
{
	double row[COLUMNS + 1] = {duration}, before[COLUMNS + 1];
	double total = moments->weight + weight;

	if (!(weight > 0) || !isfinite(weight) || !isfinite(duration))
		return false;
	for (uint32_t j = 0; j < moments->factors; j++) {
		row[j + 1] = factors[j];
		if (!isfinite(factors[j]))
			return false;
	}
	for (uint32_t j = 0; j <= moments->factors; j++) {
		before[j] = row[j] - moments->mean[j];
		moments->mean[j] += before[j] * weight / total;
	}
	for (uint32_t i = 0; i <= moments->factors; i++) {
		for (uint32_t j = i; before[i] != 0 && j <= moments->factors; j++) {
			moments->co[i][j] += before[i] * before[j] * weight * moments->weight / total;
			moments->co[j][i] = moments->co[i][j];
		}
	}
	moments->weight = total;
	moments->rows++;
	return true;
}

void regression__merge(struct regression_moments *moments, const struct regression_moments *from)
{
	double total = moments->weight + from->weight, apart[COLUMNS + 1];

	if (!from->rows)
		return;
	if (!moments->rows) {
		*moments = *from;
		return;
	}
	for (uint32_t j = 0; j <= moments->factors; j++) {
		apart[j] = from->mean[j] - moments->mean[j];
		moments->mean[j] += apart[j] * from->weight / total;
	}
	for (uint32_t i = 0; i <= moments->factors; i++)
		for (uint32_t j = 0; j <= moments->factors; j++)
			moments->co[i][j] +=
			    from->co[i][j] + apart[i] * apart[j] * moments->weight * from->weight / total;
	moments->weight = total;
	moments->rows += from->rows;
}

/* A set of factors and the inverse of its correlation matrix. */
struct set {
	uint32_t of[COLUMNS]; /* factors */
	uint32_t count;
	double inverse[COLUMNS][COLUMNS];
	double log_determinant;
	bool singular;
};

static double correlation(const struct regression_moments *m, uint32_t a, uint32_t b)
{
	return m->co[a][b] / sqrt(m->co[a][a] * m->co[b][b]);
}

/*
 * Inverts by eigenvalues, since a singular matrix must still show which factors make it so: those with a
 * part in a vanishing direction have an infinite inflation.
 */
static void invert(const struct regression_moments *m, struct set *set)
{
	double matrix[COLUMNS * COLUMNS], vectors[COLUMNS * COLUMNS], values[COLUMNS];
	gsl_matrix_view a = gsl_matrix_view_array(matrix, set->count, set->count);
	gsl_matrix_view v = gsl_matrix_view_array(vectors, set->count, set->count);
	gsl_vector_view l = gsl_vector_view_array(values, set->count);
	gsl_eigen_symmv_workspace *work = gsl_eigen_symmv_alloc(set->count);

	for (uint32_t i = 0; i < set->count; i++)
		for (uint32_t j = 0; j < set->count; j++)
			gsl_matrix_set(&a.matrix, i, j, i == j ? 1 : correlation(m, set->of[i] + 1, set->of[j] + 1));
	/* Out of memory is reported as singular: nothing is claimed. */
	set->singular = !work || gsl_eigen_symmv(&a.matrix, &l.vector, &v.matrix, work);
	gsl_eigen_symmv_free(work);
	set->log_determinant = 0;
	memset(set->inverse, 0, sizeof(set->inverse));
	for (uint32_t k = 0; k < set->count; k++) {
		double value = fmax(values[k], SINGULAR * SINGULAR);

		set->log_determinant += log(value);
		for (uint32_t i = 0; i < set->count; i++)
			for (uint32_t j = 0; j < set->count; j++)
				set->inverse[i][j] +=
				    gsl_matrix_get(&v.matrix, i, k) * gsl_matrix_get(&v.matrix, j, k) / value;
	}
	for (uint32_t i = 0; i < set->count; i++)
		set->singular |= !(set->inverse[i][i] < 1 / SINGULAR);
}

static double vif(const struct set *set, uint32_t at)
{
	return set->inverse[at][at] < 1 / SINGULAR ? fmax(1, set->inverse[at][at]) : INFINITY;
}

/* Farrar and Glauber's second test: whether factor `at` of the set is explained by the others. */
static double vif_p(const struct set *set, uint32_t at, double rows)
{
	double others = set->count - 1, inflation = vif(set, at);

	if (isinf(inflation))
		return 0;
	return gsl_cdf_fdist_Q((inflation - 1) * (rows - set->count) / others, others, rows - set->count);
}

/* Bartlett's test of |R|, the first of Farrar and Glauber. */
static double chi2(const struct set *set, double rows)
{
	return -(rows - 1 - (2.0 * set->count + 5) / 6) * set->log_determinant;
}

static double chi2_p(const struct set *set, double rows)
{
	if (set->singular)
		return 0;
	return gsl_cdf_chisq_Q(fmax(0, chi2(set, rows)), set->count * (set->count - 1.0) / 2);
}

/*
 * Whether a goes before b: infinitely inflated before any finite, then the more inflated; of equals the one that
 * correlates less with the duration, then the later.
 */
static bool worse(const struct regression_moments *m, const struct set *set, uint32_t a, uint32_t b)
{
	double x = vif(set, a), y = vif(set, b), x_y, y_y;

	/* the two of a pair are equally inflated */
	if (set->count > 2 && isinf(x) != isinf(y))
		return isinf(x);
	if (set->count > 2 && !isinf(x) && fabs(x - y) > TIE * fmax(x, y))
		return x > y;
	x_y = fabs(correlation(m, set->of[a] + 1, 0));
	y_y = fabs(correlation(m, set->of[b] + 1, 0));
	if (fabs(x_y - y_y) > TIE)
		return x_y < y_y;
	return set->of[a] > set->of[b];
}

/* Returns the factor to remove next, as an index in the set; -1 = the set is good. */
static int32_t next_removed(const struct regression_moments *m, const struct regression_options *options,
			    const struct set *set)
{
	int32_t worst = -1;

	if (set->count < 2 || (!set->singular && chi2_p(set, (double)m->rows) >= options->alpha))
		return -1;
	for (uint32_t at = 0; at < set->count; at++) {
		if (vif_p(set, at, (double)m->rows) >= options->alpha || vif(set, at) < options->vif_min)
			continue;
		if (worst < 0 || worse(m, set, at, (uint32_t)worst))
			worst = (int32_t)at;
	}
	return worst;
}

static void take_out(struct set *set, uint32_t at)
{
	memmove(&set->of[at], &set->of[at + 1], (set->count - at - 1) * sizeof(*set->of));
	set->count--;
}

/*
 * Fits column y on the set by least squares: standardised coefficients, and the standard error of each.
 * Returns the share of variance explained.
 */
static double fit(const struct regression_moments *m, const struct set *set, uint32_t y, double *b, double *error)
{
	double explained = 0, left, freedom = (double)m->rows - set->count - 1;

	for (uint32_t i = 0; i < set->count; i++) {
		b[i] = 0;
		for (uint32_t j = 0; j < set->count; j++)
			b[i] += set->inverse[i][j] * correlation(m, set->of[j] + 1, y);
		explained += b[i] * correlation(m, set->of[i] + 1, y);
	}
	explained = fmin(1, fmax(0, explained));
	left = (1 - explained) / freedom;
	for (uint32_t i = 0; i < set->count; i++)
		error[i] = sqrt(left * set->inverse[i][i]);
	return explained;
}

/* Returns a two-sided p; a coefficient without error is certain, unless it is 0. */
static double t_p(double value, double error, double freedom)
{
	if (error > 0)
		return 2 * gsl_cdf_tdist_Q(fabs(value / error), freedom);
	return value != 0 ? 0 : 1;
}

static void list_remaining(const struct regression_moments *m, const struct regression_options *options,
			   const struct set *set, struct regression_result *result)
{
	double b[COLUMNS], error[COLUMNS], freedom = (double)m->rows - set->count - 1, spread = 1 / m->weight;
	double intercept_error;

	result->r2 = fit(m, set, 0, b, error);
	result->sigma = sqrt((1 - result->r2) * m->co[0][0] / freedom);
	result->intercept = m->mean[0];
	for (uint32_t i = 0; i < set->count; i++) {
		struct regression_factor *factor = &result->factor[set->of[i]];
		uint32_t column = set->of[i] + 1;
		double scale = sqrt(m->co[0][0] / m->co[column][column]);

		factor->fate = REGRESSION_REMAINING;
		factor->vif = vif(set, i);
		factor->coefficient = b[i] * scale;
		factor->error = error[i] * scale;
		factor->p = t_p(b[i], error[i], freedom);
		factor->t = error[i] > 0 ? b[i] / error[i] : copysign(INFINITY, b[i]);
		factor->significant = factor->p < options->alpha;
		result->intercept -= factor->coefficient * m->mean[column];
		for (uint32_t j = 0; j < set->count; j++)
			spread += m->mean[column] * m->mean[set->of[j] + 1] * set->inverse[i][j] /
				  sqrt(m->co[column][column] * m->co[set->of[j] + 1][set->of[j] + 1]);
	}
	intercept_error = result->sigma * sqrt(fmax(0, spread));
	result->intercept_p = t_p(result->intercept, intercept_error, freedom);
}

/*
 * Lists the cost of a removed factor as if it, not its collinear ones, were the cause: rule A of the
 * project's reading of "estimated by their multicollinear relationship" (VAPRO (PPoPP'22) section 4.2).
 */
static void list_removed(const struct regression_moments *m, const struct regression_options *options,
			 const struct set *set, uint32_t removed, struct regression_result *result)
{
	struct regression_factor *factor = &result->factor[removed];
	double gamma[COLUMNS], error[COLUMNS], freedom = (double)m->rows - set->count - 1;

	factor->fate = REGRESSION_COLLINEAR;
	factor->error = factor->t = factor->p = NAN;
	factor->coefficient = NAN;
	fit(m, set, removed + 1, gamma, error);
	for (uint32_t k = 0; k < set->count; k++) {
		const struct regression_factor *partner = &result->factor[set->of[k]];
		double slope = m->co[set->of[k] + 1][removed + 1] / m->co[removed + 1][removed + 1];

		if (fabs(gamma[k]) < options->partner || t_p(gamma[k], error[k], freedom) >= options->alpha)
			continue;
		factor->shared |= 1U << set->of[k];
		if (!partner->significant)
			continue;
		factor->coefficient =
		    (isnan(factor->coefficient) ? 0 : factor->coefficient) + partner->coefficient * slope;
		factor->significant = true;
	}
}

static bool varies(const struct regression_moments *m, uint32_t column)
{
	double size = fabs(m->mean[column]) * CONSTANT;

	return m->co[column][column] > m->weight * size * size && m->co[column][column] > 0;
}

void regression__fit(const struct regression_moments *moments, const struct regression_options *options,
		     struct regression_result *result)
{
	struct set set = {0};
	uint32_t removed[COLUMNS], removed_count = 0;
	gsl_error_handler_t *handler = gsl_set_error_handler_off();

	*result = (struct regression_result){
	    .intercept = NAN, .intercept_p = NAN, .sigma = NAN, .r2 = NAN, .chi2 = NAN, .chi2_p = NAN};
	for (uint32_t j = 0; j < moments->factors; j++) {
		result->factor[j] = (struct regression_factor){
		    .fate = REGRESSION_CONSTANT, .coefficient = NAN, .error = NAN, .t = NAN, .p = NAN, .vif = NAN};
		if (varies(moments, j + 1))
			set.of[set.count++] = j;
	}
	result->outcome = moments->rows < moments->factors + REGRESSION_ROWS_BEYOND ? REGRESSION_TOO_FEW
			  : !varies(moments, 0)					    ? REGRESSION_NO_VARIANCE
			  : !set.count						    ? REGRESSION_NO_FACTOR
										    : REGRESSION_FITTED;
	if (result->outcome != REGRESSION_FITTED)
		goto out;
	invert(moments, &set);
	for (int32_t at; (at = next_removed(moments, options, &set)) >= 0; invert(moments, &set)) {
		result->factor[set.of[at]].vif = vif(&set, (uint32_t)at);
		removed[removed_count++] = set.of[at];
		result->factor[set.of[at]].removed_as = removed_count;
		take_out(&set, (uint32_t)at);
	}
	if (set.count > 1) {
		result->chi2 = chi2(&set, (double)moments->rows);
		result->chi2_p = chi2_p(&set, (double)moments->rows);
	}
	list_remaining(moments, options, &set, result);
	for (uint32_t i = 0; i < removed_count; i++)
		list_removed(moments, options, &set, removed[i], result);
out:
	gsl_set_error_handler(handler);
}
