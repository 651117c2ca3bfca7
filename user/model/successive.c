// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/successive.h"

#include "model/batches.h"

#include <math.h>

static void end_moment(struct successive *successive)
{
	successive->n += successive->open_n;
	successive->sum += (double)successive->open_n * successive->open_squares / (successive->open_n - 1);
	successive->open_n = successive->open_mean = successive->open_squares = 0;
}

void successive__add(struct successive *successive, uint64_t bin, double mean_ns, double n)
{
	double value = log(fmax(mean_ns, 1)), before = successive->open_n, differs;

	if (successive->open_n >= BATCH_MEMBERS && (uint32_t)bin != successive->bin) {
		end_moment(successive);
		before = 0;
	}
	if (before <= 0)
		successive->bin = (uint32_t)bin;
	differs = value - successive->open_mean;
	successive->open_n = (float)(before + n);
	successive->open_mean += (float)(differs * n / (before + n));
	successive->open_squares += (float)(differs * differs * n * before / (before + n));
}

/* Variance of the logarithm of durations. */
static double scatter_of(const struct histogram *histogram)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < histogram->count; i++) {
		const struct histogram_bucket *bucket = &histogram->buckets[i];
		double value = log(fmax(bucket->sum_ns / bucket->n, 1));

		sum += bucket->n * value;
		squares += bucket->n * value * value;
	}
	if (histogram->n <= 0)
		return 0;
	return squares / histogram->n - sum * sum / (histogram->n * histogram->n);
}

double successive__share(const struct successive *successive, const struct histogram *all)
{
	double scatter = scatter_of(all);

	if (successive->n <= 0 || scatter <= 0)
		return 1;
	return fmin(1, successive->sum / successive->n / scatter);
}
