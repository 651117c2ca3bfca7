/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The figures of some rows: pure statistics of their batches. */
#include "detect/variability.h"

#include "model/judgement.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#define MOSTLY_BETWEEN 0.7 /* share of the variance between ranks, from which it is spatial; the rest: temporal */
#define RV_BATCHES 100	   /* least batches of a rank with an RV: of 16 normal ones 6 % seem to have outliers */
#define SPREAD_RANKS 6	   /* least ranks with a spread: of fewer, its percentiles are the least and greatest */

/* Figures of the rows, by place; index: the row of a place. */
struct table_of_rows {
	size_t count;
	uint32_t *index;
	double *median, *temporal, *range, *rv, *scratch;
	uint32_t *rv_index;
	size_t rv_count;
};

static bool make_table(struct table_of_rows *table, size_t count)
{
	double *values = calloc(count, 5 * sizeof(*values));
	uint32_t *numbers = calloc(count, 2 * sizeof(*numbers));

	*table = (struct table_of_rows){.index = numbers, .median = values};
	if (!values || !numbers)
		return false;
	table->rv_index = numbers + count;
	table->temporal = values + count;
	table->range = values + 2 * count;
	table->rv = values + 3 * count;
	table->scratch = values + 4 * count;
	return true;
}

static void free_table(struct table_of_rows *table)
{
	free(table->median);
	free(table->index);
}

/* Returns a quantile of some values, which stay as they are. */
static double quantile(struct table_of_rows *table, const double *values, size_t count, double share)
{
	for (size_t i = 0; i < count; i++)
		table->scratch[i] = values[i];
	gsl_sort(table->scratch, 1, count);
	return gsl_stats_quantile_from_sorted_data(table->scratch, 1, count, share);
}

static void add_row(struct table_of_rows *table, uint32_t index, const struct variation *row)
{
	double median = variation__quantile(row, 0.5), rv = moments__rv(&row->moments);
	size_t at = table->count++;

	table->index[at] = index;
	table->median[at] = median;
	table->temporal[at] = (variation__quantile(row, VARIES_HIGH) - variation__quantile(row, VARIES_LOW)) / median;
	table->range[at] = (row->moments.most - row->moments.least) / row->moments.mean;
	if (row->moments.n < RV_BATCHES || isnan(rv))
		return;
	table->rv[table->rv_count] = rv;
	table->rv_index[table->rv_count++] = index;
}

static void set_temporal(struct variability_figures *figures, struct table_of_rows *table)
{
	size_t worst = 0;

	for (size_t i = 1; i < table->count; i++) {
		if (table->temporal[i] > table->temporal[worst])
			worst = i;
	}
	figures->temporal = quantile(table, table->temporal, table->count, 0.5);
	figures->temporal_worst = table->temporal[worst];
	figures->temporal_row = table->index[worst];
	figures->range_over_mean = quantile(table, table->range, table->count, 0.5);
}

static void set_spatial(struct variability_figures *figures, struct table_of_rows *table)
{
	double middle, least, most;

	figures->spread = figures->slowest = figures->over_fastest = NAN;
	if (table->count < 2)
		return;
	middle = quantile(table, table->median, table->count, 0.5);
	gsl_stats_minmax(&least, &most, table->median, 1, table->count);
	figures->slowest = most / middle - 1;
	figures->over_fastest = most / least - 1;
	if (table->count >= SPREAD_RANKS)
		figures->spread = (quantile(table, table->median, table->count, VARIES_HIGH) -
				   quantile(table, table->median, table->count, VARIES_LOW)) /
				  middle;
}

static int compare_sizes(const void *a, const void *b)
{
	double left = fabs(*(const double *)a), right = fabs(*(const double *)b);

	return (left > right) - (left < right);
}

/* Of values that are alike on both sides the sign is a coin: the median is that by size, with its sign. */
static void set_rv(struct variability_figures *figures, struct table_of_rows *table,
		   const struct variation *const *rows)
{
	size_t worst = 0;

	figures->rv = figures->rv_worst = figures->rv_error = figures->rv_n = NAN;
	if (!table->rv_count)
		return;
	figures->rv_n = INFINITY;
	for (size_t i = 0; i < table->rv_count; i++) {
		figures->rv_n = fmin(figures->rv_n, rows[table->rv_index[i]]->moments.n);
		if (fabs(table->rv[i]) > fabs(table->rv[worst]))
			worst = i;
	}
	figures->rv_worst = table->rv[worst];
	figures->rv_row = table->rv_index[worst];
	figures->rv_error = sqrt(24 / figures->rv_n);
	qsort(table->rv, table->rv_count, sizeof(*table->rv), compare_sizes);
	figures->rv = table->rv[(table->rv_count - 1) / 2];
}

/*
 * Sets the share of the variance between rows, of one-way analysis of variance: the sum of squares between them, less
 * what scatter within rows alone would make it, over the sum of all (epsilon squared). It is 0 where the F test finds
 * no difference.
 */
static void set_between(struct variability_figures *figures, const struct table_of_rows *table,
			const struct variation *const *rows, const struct moments *all)
{
	double within = 0, k = (double)table->count, free_within = all->n - k, mean_square, between;

	figures->between = NAN;
	if (table->count < 2 || !(free_within > 0) || !(all->m2 > 0))
		return;
	for (size_t i = 0; i < table->count; i++)
		within += rows[table->index[i]]->moments.m2;
	mean_square = within / free_within;
	between = fmax(0, all->m2 - within);
	figures->between = fmax(0, between - (k - 1) * mean_square) / all->m2;
	if (mean_square > 0 && gsl_cdf_fdist_Q(between / (k - 1) / mean_square, k - 1, free_within) >= CHANCE_MOST)
		figures->between = 0;
}

/* Sets which parts of the time explain the variance: their covariances with the time add up to it. */
static void set_parts(struct variability_figures *figures, const struct variation *all)
{
	figures->software = figures->frequency = 0;
	figures->stalls = NAN;
	if (!(all->moments.m2 > 0))
		return;
	figures->software = all->part_with[VARIATION_SOFTWARE] / all->moments.m2;
	figures->frequency = all->part_with[VARIATION_FREQUENCY] / all->moments.m2;
	if (all->counted >= SHARE_NEARLY_ALL * all->fragments)
		figures->stalls = all->part_with[VARIATION_STALLS] / all->moments.m2;
}

static enum vapro_variability_origin origin_of(const struct variability_figures *figures)
{
	if (figures->kind == VAPRO_VARIES_NOT)
		return VAPRO_ORIGIN_UNKNOWN;
	if (figures->software >= SHARE_MOST)
		return VAPRO_ORIGIN_SOFTWARE;
	if (figures->frequency >= SHARE_MOST || (!isnan(figures->stalls) && figures->stalls >= SHARE_MOST))
		return VAPRO_ORIGIN_HARDWARE;
	return VAPRO_ORIGIN_UNKNOWN;
}

/* A kind needs ranks, or times, that are not alike; where both are not, the shares of the variance decide. */
static enum vapro_variability_kind kind_of(const struct variability_figures *figures)
{
	double width = isnan(figures->spread) ? figures->over_fastest : fmax(figures->spread, figures->slowest);
	bool in_time = figures->temporal_worst > RATIO_ALIKE - 1;
	bool in_space = !isnan(figures->between) && figures->between > 0 && width > RATIO_ALIKE - 1;

	if (!in_time || !in_space)
		return in_time ? VAPRO_VARIES_TEMPORALLY : in_space ? VAPRO_VARIES_SPATIALLY : VAPRO_VARIES_NOT;
	if (figures->between >= MOSTLY_BETWEEN)
		return VAPRO_VARIES_SPATIALLY;
	return figures->between <= 1 - MOSTLY_BETWEEN ? VAPRO_VARIES_TEMPORALLY : VAPRO_VARIES_BOTH;
}

int variability__of(const struct variation *const *rows, size_t count, struct variability_figures *figures)
{
	struct variation all = {.fragments = 0};
	struct table_of_rows table;
	int error = make_table(&table, count + 1) ? 0 : -ENOMEM;

	*figures = (struct variability_figures){.rows = 0};
	for (size_t i = 0; !error && i < count; i++) {
		if (rows[i]->moments.n < LEAST_BATCHES || !(rows[i]->moments.least > 0))
			continue;
		add_row(&table, (uint32_t)i, rows[i]);
		error = variation__merge(&all, rows[i]);
	}
	if (!error && !table.count)
		error = -ENODATA;
	if (error)
		goto cleanup;
	figures->rows = (uint32_t)table.count;
	figures->batches = all.moments.n;
	figures->fragments = all.fragments;
	set_temporal(figures, &table);
	set_spatial(figures, &table);
	set_rv(figures, &table, rows);
	set_between(figures, &table, rows, &all.moments);
	set_parts(figures, &all);
	figures->kind = kind_of(figures);
	figures->origin = origin_of(figures);
cleanup:
	free_table(&table);
	variation__clear(&all);
	return error;
}
