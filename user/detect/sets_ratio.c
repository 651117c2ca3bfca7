// SPDX-License-Identifier: GPL-2.0-or-later
/* Times of rows in the view, over their expected times: see sets.h. */
#include "detect/sets_private.h"
#include "model/job_series.h"
#include "model/judgement.h"

#include <math.h>
#include <stdlib.h>

#define STEADY 0.6 /* share of the whole excess, in each third of the view */

static int compare_doubles(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

double sets__median(double *values, size_t count)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), compare_doubles);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

bool sets__compared(const struct finder *finder, const struct series *series)
{
	return series__view_n(series) > 0 &&
	       (finder->book->source == VAPRO_BY_INSTRUCTIONS ? series->supported && series->reference_ns > 0
							      : series->certified);
}

/* Finds the time that a fragment of a workload takes on the median rank. */
static void find_base(struct finder *finder, uint32_t at)
{
	const struct series_book *book = finder->book;
	const struct workload *workload = &book->workloads[at];
	size_t count = 0;

	finder->base[at] = 0;
	if (workload->job != finder->id || workload->class != VAPRO_COMPUTATION)
		return;
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];

		if (count < finder->job->row_count && sets__compared(finder, series))
			finder->scratch[count++] = series__view_ns(series) / series__view_n(series);
	}
	if (count < 2)
		return;
	finder->base[at] =
	    count == 2 ? fmin(finder->scratch[0], finder->scratch[1]) : sets__median(finder->scratch, count);
}

double sets__base(const struct finder *finder, const struct series *series)
{
	if (!(finder->base[series->workload] > 0))
		return 0;
	return finder->book->source == VAPRO_BY_INSTRUCTIONS ? series->reference_ns : finder->base[series->workload];
}

static void add_rows(struct finder *finder)
{
	const struct series_book *book = finder->book;

	struct series_ids ids = job_series__ids(book, finder->id);

	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &book->series[ids.ids[i]];
		double base;

		if (series->class != VAPRO_COMPUTATION || !sets__compared(finder, series))
			continue;
		base = sets__base(finder, series);
		for (int k = 0; base > 0 && k < THIRDS; k++) {
			finder->rows[series->row].ns[k] += series->third_ns[k];
			finder->rows[series->row].base_ns[k] += base * series->third_n[k];
		}
		/* without instructions fragments may be of different work */
		if (base > 0 && book->source == VAPRO_BY_INSTRUCTIONS)
			finder->rows[series->row].chance += series__view_chance(series, base);
	}
}

/*
 * Finds how much rows' ratios scatter between thirds of the view, without what all rows have in common: the speed of a
 * CPU may vary over seconds, so that fragments that follow each other are no independent witnesses. Few rows whose
 * speed changes for good do not matter to a median.
 */
static void find_wander(struct finder *finder)
{
	double common[THIRDS];
	size_t count = 0;

	for (int k = 0; k < THIRDS; k++) {
		count = 0;
		for (size_t row = 0; row < finder->job->row_count; row++) {
			const struct row_time *time = &finder->rows[row];

			if (time->ratio > 0)
				finder->scratch[count++] = time->ns[k] / time->base_ns[k] - time->ratio;
		}
		common[k] = sets__median(finder->scratch, count);
	}
	count = 0;
	for (size_t row = 0; row < finder->job->row_count; row++) {
		const struct row_time *time = &finder->rows[row];

		for (int k = 0; time->ratio > 0 && k < THIRDS; k++)
			finder->scratch[count++] = fabs(time->ns[k] / time->base_ns[k] - time->ratio - common[k]);
	}
	/* deviations from a mean of three, of which half are below .6745 of a standard deviation */
	finder->wander = sets__median(finder->scratch, count) / QUARTILE_SIGMAS * sqrt(THIRDS / (THIRDS - 1.0));
}

/* The typical ratio is the lowest quartile, since slow ranks are above it. */
void sets__find_ratios(struct finder *finder)
{
	size_t count = 0;

	for (uint32_t at = 0; at < finder->book->workload_count; at++)
		find_base(finder, at);
	add_rows(finder);
	for (size_t row = 0; row < finder->job->row_count; row++) {
		struct row_time *time = &finder->rows[row];
		double ns = 0, base = 0;
		bool all = true;

		for (int k = 0; k < THIRDS; k++) {
			ns += time->ns[k];
			base += time->base_ns[k];
			all &= time->base_ns[k] > 0;
		}
		time->ratio = all ? ns / base : 0;
		if (all)
			finder->scratch[count++] = time->ratio;
	}
	finder->known = count;
	/* a host may be half of the job */
	sets__median(finder->scratch, count);
	finder->median = count ? finder->scratch[count / 4] : 0;
	if (finder->book->source == VAPRO_BY_INSTRUCTIONS)
		find_wander(finder);
}

/*
 * Whether rows are slower than the others by a ratio in every third of the view, and by more than their own fragments
 * scatter: k outliers among many are sqrt(k) standard errors of the mean that they are part of, however long they are;
 * nor by less than speed wanders.
 */
bool sets__steady(const struct finder *finder, const uint32_t *rows, size_t count, double ratio)
{
	double excess = 0, chance = 0, all = 0;

	for (int k = 0; k < THIRDS; k++) {
		double ns = 0, base = 0;

		for (size_t i = 0; i < count; i++) {
			ns += finder->rows[rows[i]].ns[k];
			base += finder->rows[rows[i]].base_ns[k];
		}
		if (!(base > 0) || ns / base / finder->median < 1 + STEADY * (ratio - 1))
			return false;
		excess += ns - finder->median * base;
		all += base;
	}
	for (size_t i = 0; i < count; i++)
		chance += finder->rows[rows[i]].chance;
	chance = fmax(sqrt(chance), all * finder->wander / sqrt((double)(THIRDS * count)));
	return excess >= SIGMAS_CERTAIN * chance;
}
