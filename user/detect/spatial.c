/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/spatial.h"

#include "model/grow.h"

#include <math.h>

#define IMBALANCE_SHARE 0.02 /* of wall: below it nobody would balance anything */
#define DRIFT_WINDOWS 3
#define DRIFT_STEP 1.01 /* window to window, above the jitter of a window's mean */
#define DRIFT_TOTAL 1.05
#define DRIFT_STEADY 0.7 /* of the whole rise within one window's time: that is a step */
#define DRIFT_FRAGMENTS 10

void spatial__clear(struct spatial *spatial)
{
	free(spatial->imbalances);
	free(spatial->drifts);
	free(spatial->rares);
	*spatial = (struct spatial){0};
}

void spatial__window(struct series_book *book, uint32_t job)
{
	for (size_t i = 0; i < book->count; i++) {
		struct series *series = &book->series[i];

		if (series->job != job || series->half_n[0] < DRIFT_FRAGMENTS || series->half_n[1] < DRIFT_FRAGMENTS)
			continue;
		if (series->mean_count == SERIES_WINDOWS) {
			memmove(series->halves, series->halves + 2, 2 * (SERIES_WINDOWS - 1) * sizeof(*series->halves));
			series->mean_count--;
		}
		for (int half = 0; half < 2; half++)
			series->halves[2 * series->mean_count + half] =
			    series->half_net_ns[half] / series->half_n[half];
		series->mean_count++;
	}
}

static double window_mean(const struct series *series, unsigned window)
{
	return (series->halves[2 * window] + series->halves[2 * window + 1]) / 2;
}

static int imbalance(struct spatial *spatial, const struct series_book *book, const struct stg *stg,
		     const struct workload *workload, double wall_ns)
{
	const struct series *fast = NULL, *slow = NULL;
	const struct stg_job *job = stg__job(stg, workload->job);
	double ns = 0;

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];

		ns += series->window_ns;
		if (!series->compared)
			continue;
		if (!fast || series->own_ns < fast->own_ns)
			fast = series;
		if (!slow || series->own_ns > slow->own_ns)
			slow = series;
	}
	if (!fast || fast->row == slow->row || slow->own_ns <= fast->own_ns * (1 + book->config->rank_agreement) ||
	    ns < IMBALANCE_SHARE * wall_ns)
		return 0;
	if (grow(&spatial->imbalances, &spatial->imbalance_capacity, spatial->imbalance_count + 1,
		 sizeof(*spatial->imbalances)))
		return -ENOMEM;
	spatial->imbalances[spatial->imbalance_count++] = (struct result_imbalance){
	    .state = &stg__state(stg, slow->state)->about,
	    .fast_rank = job->rows[fast->row].rank,
	    .slow_rank = job->rows[slow->row].rank,
	    .fast_ns = fast->own_ns,
	    .slow_ns = slow->own_ns,
	    .share = ns / wall_ns,
	};
	return 0;
}

/* Windows that the mean has risen without a break, up to now. */
static unsigned rising(const struct series *series)
{
	unsigned windows = series->mean_count ? 1 : 0;

	while (windows && windows < series->mean_count &&
	       window_mean(series, series->mean_count - windows) >=
		   DRIFT_STEP * window_mean(series, series->mean_count - windows - 1))
		windows++;
	return windows;
}

/* A step from one level to another, which at most two neighbouring pairs of halves share, is no drift. */
static bool is_step(const struct series *series, unsigned windows)
{
	const double *first = &series->halves[2 * (series->mean_count - windows)];
	double total = first[2 * windows - 1] - first[0];

	for (unsigned i = 0; i + 2 < 2 * windows; i++) {
		if (first[i + 2] - first[i] > DRIFT_STEADY * total)
			return true;
	}
	return false;
}

static int drift(struct spatial *spatial, const struct series_book *book, const struct stg *stg,
		 const struct workload *workload)
{
	const struct series *any = NULL;
	unsigned windows = SERIES_WINDOWS;
	double ratio = 0;
	size_t count = 0;

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];
		unsigned here = rising(series);

		if (series->window_n < DRIFT_FRAGMENTS)
			continue;
		/* One rank that does not share it, and it is not drift. */
		if (here < DRIFT_WINDOWS || !series->certified || is_step(series, here))
			return 0;
		windows = here < windows ? here : windows;
		any = series;
		count++;
	}
	if (!any || (count < 2 && stg__job(stg, workload->job)->row_count > 1))
		return 0;
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];

		if (series->window_n >= DRIFT_FRAGMENTS)
			ratio += window_mean(series, series->mean_count - 1) /
				 window_mean(series, series->mean_count - windows) / (double)count;
	}
	if (ratio < DRIFT_TOTAL)
		return 0;
	if (grow(&spatial->drifts, &spatial->drift_capacity, spatial->drift_count + 1, sizeof(*spatial->drifts)))
		return -ENOMEM;
	spatial->drifts[spatial->drift_count++] =
	    (struct result_drift){.state = &stg__state(stg, any->state)->about, .ratio = ratio, .windows = windows};
	return 0;
}

static int rare(struct spatial *spatial, const struct series_book *book, const struct stg *stg,
		const struct series *series)
{
	const struct clusters *clusters = book->workloads[book->workloads[series->workload].head].clusters;
	double members = series->cpu.n, ns = series->cpu.sum_ns;

	if (series->window_ns <= 0)
		return 0;
	if (clusters) {
		const struct cluster *cluster = clusters__find(clusters, book->workloads[series->workload].seed);

		/* Clusters are of all ranks; a rank is named when it met the rare one in this window. */
		if (series->window_uncovered_ns[VAPRO_RARE] <= 0 || !cluster)
			return 0;
		members = (double)cluster->members;
		ns = fmin(ns, cluster->sum_ns);
	} else if (members <= 0 || members >= (double)book->config->rare_members) {
		return 0;
	}
	if (ns < book->config->min_lost_s * 1e9)
		return 0;
	if (grow(&spatial->rares, &spatial->rare_capacity, spatial->rare_count + 1, sizeof(*spatial->rares)))
		return -ENOMEM;
	spatial->rares[spatial->rare_count++] = (struct result_rare){
	    .state = &stg__state(stg, series->state)->about,
	    .rank = stg__job(stg, series->job)->rows[series->row].rank,
	    .members = (uint32_t)members,
	    .seconds = ns / 1e9,
	};
	return 0;
}

static int compare_rares(const void *a, const void *b)
{
	const struct result_rare *left = a, *right = b;

	if (left->seconds != right->seconds)
		return left->seconds > right->seconds ? -1 : 1;
	return (left->rank > right->rank) - (left->rank < right->rank);
}

int spatial__find(struct spatial *spatial, const struct series_book *book, const struct stg *stg, uint32_t job,
		  double wall_ns)
{
	spatial__clear(spatial);
	for (size_t i = 0; i < book->workload_count; i++) {
		const struct workload *workload = &book->workloads[i];

		if (workload->job != job || workload->class != VAPRO_COMPUTATION ||
		    book->source == VAPRO_BY_INSTRUCTIONS)
			continue;
		if (imbalance(spatial, book, stg, workload, wall_ns) || drift(spatial, book, stg, workload))
			return -ENOMEM;
	}
	for (size_t i = 0; i < book->count; i++) {
		if (book->series[i].job == job && rare(spatial, book, stg, &book->series[i]))
			return -ENOMEM;
	}
	if (spatial->rare_count)
		qsort(spatial->rares, spatial->rare_count, sizeof(*spatial->rares), compare_rares);
	return 0;
}
