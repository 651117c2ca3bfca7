// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/scatter.h"

#include "model/judgement.h"

#include <math.h>

#define HIGH_SIGMAS 2.054 /* where the tail of a normal distribution of the share SHARE_TAIL begins */

/* The duration that all but `above` of the calls do not exceed. */
static double quantile(const struct histogram *histogram, double above)
{
	double seen = 0;

	for (size_t i = histogram->count; i-- > 0;) {
		seen += histogram->buckets[i].n;
		if (seen > above || !i)
			return histogram->buckets[i].sum_ns / histogram->buckets[i].n;
	}
	return 0;
}

/*
 * Whether most batches agree with the reference, or are faster. A level state stays level: a fault that lasts is no
 * scatter.
 */
static bool is_level(const struct series *series, const struct vapro_config *config)
{
	const struct batches *both[] = {&series->batches, &series->batches_live};
	double all = 0, near = 0;

	if (series->level)
		return true;
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < both[k]->count; i++) {
			const struct batch_bucket *bucket = &both[k]->items[i];

			all += bucket->n;
			near += config->threshold * bucket->sum_ns <= series->reference_ns * bucket->n ? bucket->n : 0;
		}
	}
	return near >= SHARE_STEADY * all && (all >= LEAST_MEMBERS || series->certified);
}

void scatter__refresh(struct series_book *book, const struct workload *workload)
{
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		struct series *series = &book->series[i];
		const struct histogram *cpu = &series->cpu;
		double high, few, tail;

		series->level = series->slower || is_level(series, book->config);
		if (series->level || !(cpu->n > 0))
			continue;
		series->middle_ns = (float)quantile(cpu, cpu->n / 2);
		high = quantile(cpu, SHARE_TAIL * cpu->n);
		tail = series->middle_ns * pow(high / series->middle_ns, SIGMAS_CERTAIN / HIGH_SIGMAS);
		few = quantile(cpu, fmax(LEAST_REPEATED - 1, SHARE_STALLS * cpu->n));
		tail = fmax(fmin(tail, RATIO_STALL * few), RATIO_WIDE * few);
		series->tail_ns = (float)fmax(tail, RATIO_STALL * series->middle_ns);
		series->high_ns = (float)high;
	}
}

bool scatter__judges(const struct series *series)
{
	return series->class == VAPRO_IO && !series->level && series->tail_ns > 0;
}

double scatter__reference(const struct series *series, const struct bundle_rec *rec)
{
	double own = fmax(0, rec->sum_ns - bundle_rec__cpu_attributed(rec)) / rec->n, limit = series->tail_ns;

	/* The mean of several calls varies less. */
	if (rec->n > 1)
		limit = fmin(limit, series->high_ns * (1 + SIGMAS_AGREE / sqrt(rec->n)));
	return own <= limit ? own : series->middle_ns;
}
