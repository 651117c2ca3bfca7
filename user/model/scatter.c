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

/* Batches, and those of them that agree with the reference, or are faster. */
struct agreement {
	double all, near;
};

static void count_batches(const struct series *series, const struct vapro_config *config, struct agreement *sum)
{
	const struct batches *both[] = {&series->batches, &series->batches_live};

	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < both[k]->count; i++) {
			const struct batch_bucket *bucket = &both[k]->items[i];

			sum->all += bucket->n;
			sum->near +=
			    config->threshold * bucket->sum_ns <= series->reference_ns * bucket->n ? bucket->n : 0;
		}
	}
}

/*
 * Whether most batches agree with the reference; where a rank has few, whether those of all ranks do, since a rank that
 * is slow alone is no scatter of the calls. A level state stays level: a fault that lasts is no scatter.
 */
static bool is_level(const struct series *series, const struct vapro_config *config, const struct agreement *ranks)
{
	struct agreement own = {0};

	if (series->level)
		return true;
	count_batches(series, config, &own);
	if (own.all < LEAST_MEMBERS && series->supported && ranks->all >= LEAST_MEMBERS &&
	    ranks->near >= SHARE_OF_RANKS * ranks->all)
		return true;
	return own.near >= SHARE_STEADY * own.all && (own.all >= LEAST_MEMBERS || series->certified);
}

void scatter__refresh(struct series_book *book, const struct workload *workload)
{
	struct agreement ranks = {0};

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next)
		count_batches(&book->series[i], book->config, &ranks);
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		struct series *series = &book->series[i];
		const struct histogram *cpu = &series->cpu;
		double high, few, tail;

		series->level = series->slower || is_level(series, book->config, &ranks);
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
