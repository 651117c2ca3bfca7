// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/shift.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#define MOST_CORRELATION 0.9 /* of successive values: a greater one is not believed, as the error would be infinite */

/* Part of the first autocorrelation that counts. */
static double correlation(const double *values, size_t count)
{
	double r = count > 2 ? gsl_stats_lag1_autocorrelation(values, 1, count) : 0;

	return !(r > 0) ? 0 : fmin(r, MOST_CORRELATION);
}

/* How many times wider the error is than of independent values. */
static double widening(const double *a, size_t a_count, const double *b, size_t b_count)
{
	double r = (correlation(a, a_count) * (double)a_count + correlation(b, b_count) * (double)b_count) /
		   (double)(a_count + b_count);

	return sqrt((1 + r) / (1 - r));
}

/*
 * Returns the value that is at `at` in ascending order, and moves no smaller value behind it and no larger one before
 * it (Hoare, 1961). Pairs are many, and only three of them are wanted.
 */
static double nth(double *values, size_t count, size_t at)
{
	size_t low = 0, high = count - 1;

	while (low < high) {
		double pivot = values[low + (high - low) / 2];
		size_t i = low, k = high;

		for (;; i++, k--) {
			double other;

			while (values[i] < pivot)
				i++;
			while (values[k] > pivot)
				k--;
			if (i >= k)
				break;
			other = values[i];
			values[i] = values[k];
			values[k] = other;
		}
		if (at <= k)
			high = k;
		else
			low = k + 1;
	}
	return values[at];
}

double shift__p(double z)
{
	return 2 * gsl_cdf_ugaussian_Q(fabs(z));
}

int shift__of(const double *a, size_t a_count, const double *b, size_t b_count, struct shift *shift)
{
	size_t pairs = a_count * b_count, count = 0, at;
	double *differences, above = 0, deviation, border;

	if (a_count < SHIFT_LEAST || b_count < SHIFT_LEAST)
		return -ENODATA;
	differences = malloc(pairs * sizeof(*differences));
	if (!differences)
		return -ENOMEM;
	for (size_t i = 0; i < a_count; i++) {
		for (size_t k = 0; k < b_count; k++) {
			double difference = b[k] - a[i];

			above += difference > 0 ? 1 : difference < 0 ? 0 : 0.5;
			differences[count++] = difference;
		}
	}
	deviation = sqrt((double)pairs * (double)(a_count + b_count + 1) / 12) * widening(a, a_count, b, b_count);
	border = floor((double)pairs / 2 - SHIFT_Z95 * deviation);
	at = border > 0 ? (size_t)border : 0;
	shift->by = (nth(differences, pairs, (pairs - 1) / 2) + nth(differences, pairs, pairs / 2)) / 2;
	shift->low = nth(differences, pairs, at);
	shift->high = nth(differences, pairs, pairs - 1 - at);
	shift->error = fmax((shift->high - shift->low) / (2 * SHIFT_Z95), SHIFT_LEAST_ERROR);
	shift->p = shift__p((above - (double)pairs / 2) / deviation);
	free(differences);
	return 0;
}

int shift__adjust(double *p, size_t count)
{
	size_t *order = malloc((count + 1) * sizeof(*order));
	double least = 1;

	if (!order)
		return -ENOMEM;
	gsl_sort_index(order, p, 1, count);
	for (size_t i = count; i-- > 0;) {
		least = fmin(least, p[order[i]] * (double)count / (double)(i + 1));
		p[order[i]] = least;
	}
	free(order);
	return 0;
}

double shift__median(double *values, size_t count)
{
	if (!count)
		return 0;
	gsl_sort(values, 1, count);
	return gsl_stats_median_from_sorted_data(values, 1, count);
}

double shift__common(double *values, size_t count, double reach, int *agree)
{
	size_t half = count / 2 + 1, best = 0;

	*agree = 0;
	if (count < 2)
		return 0;
	gsl_sort(values, 1, count);
	for (size_t i = 1; i + half <= count; i++)
		if (values[i + half - 1] - values[i] < values[best + half - 1] - values[best])
			best = i;
	if (values[best + half - 1] - values[best] > reach)
		return 0;
	*agree = 1;
	return gsl_stats_median_from_sorted_data(values + best, 1, half);
}
