// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sets of ranks whose median fragment takes longer than that of the others, in work that the view does not show: what
 * a rank does a few times in the run, where nothing is counted, and what sleeps, whose time on the CPU says nothing. It
 * is more work, or less speed. A median does not see what lasts for less than half of the run: regions do.
 */
#include "detect/sets_private.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <math.h>
#include <stdlib.h>

/* What a fragment of a series takes, by the median one. */
struct middle {
	double ns;
	uint32_t series;
};

static int compare_middles(const void *a, const void *b)
{
	const struct middle *left = a, *right = b;

	if (left->ns != right->ns)
		return left->ns < right->ns ? -1 : 1;
	return (left->series > right->series) - (left->series < right->series);
}

static bool sleeps(const struct series *series)
{
	return series->net.n > 0 && series->cpu.sum_ns < SHARE_MOST * series->net.sum_ns;
}

static double median_of(const struct histogram *durations)
{
	double seen = 0;

	for (size_t b = 0; b < durations->count; b++) {
		seen += durations->buckets[b].n;
		if (2 * seen >= durations->n)
			return durations->buckets[b].sum_ns / durations->buckets[b].n;
	}
	return 0;
}

/* Whether the median rank may decide about a series: it sleeps, or is rare and not counted. */
static bool applies(const struct finder *finder, const struct series *series)
{
	if (sleeps(series))
		return true;
	return finder->book->source != VAPRO_BY_INSTRUCTIONS && series->cpu.n > 0 &&
	       series->cpu.n < (double)finder->book->config->certify_fragments;
}

/*
 * Lists the medians of a workload's ranks, in order. Returns how many, or 0 where they are no case for the median: of
 * ranks that are rare some are certified before others, which need more of their own where few agree with them.
 */
static size_t list(const struct finder *finder, const struct workload *workload, struct middle *middles)
{
	const struct series_book *book = finder->book;
	size_t count = 0;
	bool seen = false, open = false;

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];
		double ns;

		if (!applies(finder, series) || count == finder->job->row_count)
			return 0;
		seen |= series->window_n > 0;
		open |= sleeps(series) || !series->certified;
		ns = median_of(sleeps(series) ? &series->net : &series->cpu);
		if (ns > 0)
			middles[count++] = (struct middle){ns, i};
	}
	if (count)
		qsort(middles, count, sizeof(*middles), compare_middles);
	return seen && open && count >= LEAST_RANKS ? count : 0;
}

static int compare_places(const void *a, const void *b, void *job)
{
	const uint32_t *left = a, *right = b, *place = ((const struct stg_job *)job)->place;

	return (place[*left] > place[*right]) - (place[*left] < place[*right]);
}

/* Adds the ranks from `slow` on, in the order of medians, that no other set has. Returns 0 or -ENOMEM. */
static int add(struct sets *sets, struct finder *finder, const struct sets_span *span, const struct middle *middles,
	       size_t count, size_t slow)
{
	const struct series *series = finder->book->series;
	double median = middles[count / 2].ns, n = 0, ns = 0;
	struct rank_set set = {.rows = malloc(count * sizeof(*set.rows)),
			       .since = span->view,
			       .until = span->end,
			       .states = 1,
			       .fast = middles[count / 2].series,
			       .fast_ns = median,
			       .slow = middles[count - 1].series,
			       .slow_ns = middles[count - 1].ns};

	if (!set.rows || grow(&sets->items, &sets->capacity, sets->count + 1, sizeof(*sets->items))) {
		free(set.rows);
		return -ENOMEM;
	}
	for (size_t i = slow; i < count; i++) {
		const struct series *at = &series[middles[i].series];

		if (finder->rows[at->row].in_set)
			continue;
		finder->rows[at->row].in_set = true;
		set.rows[set.count++] = at->row;
		n += at->window_n;
		ns += at->window_n * middles[i].ns;
	}
	set.share = span->wall_ns > 0 ? ns / span->wall_ns : 0;
	if (!(n > 0) || set.share < SET_SHARE) {
		for (size_t i = 0; i < set.count; i++)
			finder->rows[set.rows[i]].in_set = false;
		free(set.rows);
		return 0;
	}
	qsort_r(set.rows, set.count, sizeof(*set.rows), compare_places, (void *)finder->job);
	set.lost_ns = ns - n * median;
	set.ratio = set.ratio_least = set.ratio_most = set.ratio_slow = ns / n / median;
	sets->items[sets->count++] = set;
	return 0;
}

int sets__find_by_median(struct sets *sets, struct finder *finder, const struct sets_span *span)
{
	const struct series_book *book = finder->book;
	struct middle *middles = malloc((finder->job->row_count + 1) * sizeof(*middles));
	int error = middles ? 0 : -ENOMEM;

	for (size_t at = 0; !error && at < book->workload_count; at++) {
		const struct workload *workload = &book->workloads[at];
		size_t count, near = 0, slow;
		double median;

		if (workload->job != finder->id || workload->class != VAPRO_COMPUTATION || workload->mixed)
			continue;
		count = list(finder, workload, middles);
		if (!count)
			continue;
		median = middles[count / 2].ns;
		for (size_t i = 0; i < count; i++)
			near += fabs(middles[i].ns - median) <= book->config->rank_agreement * median;
		for (slow = count; slow && median < book->config->threshold * middles[slow - 1].ns;)
			slow--;
		if (slow < count && (double)near >= SHARE_OF_RANKS * (double)count)
			error = add(sets, finder, span, middles, count, slow);
	}
	free(middles);
	return error;
}
