// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/sets_private.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <math.h>

#define LEAST_GAP 1.02	  /* least ratio between neighbouring ranks that parts two sets */
#define FEW_ROWS 4	  /* rows below which a median of the others is none */
#define LEAST_WEIGHT 0.05 /* share of a set's time from which a workload's ratio counts */
#define DIFFERS 0.03	  /* difference of workloads' ratios that speed makes, and work does not */

void sets__clear(struct sets *sets)
{
	for (size_t i = 0; i < sets->count; i++)
		free(sets->items[i].rows);
	free(sets->items);
	*sets = (struct sets){0};
}

/* Sums the set's time and expected time in a workload. */
static void sum_workload(const struct finder *finder, uint32_t at, double *ns, double *base)
{
	const struct series_book *book = finder->book;

	*ns = *base = 0;
	for (uint32_t i = book->workloads[at].series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];

		if (!sets__compared(finder, series) || !finder->rows[series->row].in_set ||
		    !(sets__base(finder, series) > 0))
			continue;
		*ns += series__view_ns(series);
		*base += sets__base(finder, series) * series__view_n(series);
	}
}

/* Finds the slowest rank of the set in a workload, and the other rank that is nearest to the typical time. */
static void find_pair(const struct finder *finder, struct rank_set *set, uint32_t at)
{
	const struct series_book *book = finder->book;
	double least = INFINITY;

	set->slow_ns = 0;
	for (uint32_t i = book->workloads[at].series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];
		double mean, apart;

		if (!sets__compared(finder, series))
			continue;
		mean = series__view_ns(series) / series__view_n(series);
		apart = fabs(mean - finder->median * sets__base(finder, series));
		if (finder->rows[series->row].in_set && mean > set->slow_ns) {
			set->slow = i;
			set->slow_ns = mean;
		} else if (!finder->rows[series->row].in_set && apart < least) {
			least = apart;
			set->fast = i;
			set->fast_ns = mean;
		}
	}
}

/* Fills the sums over a set's workloads. Returns whether the set lost time. */
static bool weigh(const struct finder *finder, struct rank_set *set, const struct sets_span *span)
{
	double all = 0, most = 0, slow_ns = 0, slow_base = 0;
	double new_part = (double)(span->end - span->begin) / (double)(span->end - span->view);
	uint32_t worst = SERIES_NONE;

	for (size_t i = 0; i < set->count; i++)
		for (int k = 0; k < THIRDS; k++)
			all += finder->rows[set->rows[i]].ns[k];
	set->ratio_least = INFINITY;
	for (uint32_t at = 0; at < finder->book->workload_count; at++) {
		double ns, base, ratio;

		if (!(finder->base[at] > 0))
			continue;
		sum_workload(finder, at, &ns, &base);
		if (ns < LEAST_WEIGHT * all || base <= 0)
			continue;
		ratio = ns / base / finder->median;
		set->ratio_least = fmin(set->ratio_least, ratio);
		set->ratio_most = fmax(set->ratio_most, ratio);
		if (ratio >= SET_RATIO) {
			set->states++;
			slow_ns += ns;
			slow_base += base;
		}
		if (ns - base * finder->median > most) {
			most = ns - base * finder->median;
			worst = at;
			set->share = span->wall_ns > 0 ? ns * new_part / span->wall_ns : 0;
		}
	}
	/* a fault in only one kind of work is as strong as in that work, however much other work there is */
	set->ratio_slow = slow_base > 0 ? slow_ns / slow_base / finder->median : set->ratio;
	if (worst == SERIES_NONE)
		return false;
	find_pair(finder, set, worst);
	for (size_t i = 0; i < set->count; i++)
		for (int k = 0; k < THIRDS; k++)
			set->lost_ns += (finder->rows[set->rows[i]].ns[k] -
					 finder->median * finder->rows[set->rows[i]].base_ns[k]) *
					new_part;
	return true;
}

static double mean_ratio(const struct finder *finder, const uint32_t *rows, size_t count)
{
	double ns = 0, base = 0;

	for (size_t i = 0; i < count; i++) {
		for (int k = 0; k < THIRDS; k++) {
			ns += finder->rows[rows[i]].ns[k];
			base += finder->rows[rows[i]].base_ns[k];
		}
	}
	return base > 0 ? ns / base / finder->median : 0;
}

/* Adds a set of rows, which is copied. Returns 0 or -ENOMEM. */
static int add_set(struct sets *sets, struct finder *finder, const uint32_t *rows, size_t count, bool place,
		   const struct sets_span *span)
{
	struct rank_set set = {.count = count, .place = place, .ratio = mean_ratio(finder, rows, count)};

	set.rows = malloc(count * sizeof(*set.rows));
	if (!set.rows || grow(&sets->items, &sets->capacity, sets->count + 1, sizeof(*sets->items))) {
		free(set.rows);
		return -ENOMEM;
	}
	memcpy(set.rows, rows, count * sizeof(*set.rows));
	for (size_t i = 0; i < count; i++)
		finder->rows[rows[i]].in_set = true;
	set.certain = finder->book->source == VAPRO_BY_INSTRUCTIONS;
	set.since = span->view;
	set.until = span->end;
	if (!weigh(finder, &set, span) || (!set.certain && set.share < SET_SHARE)) {
		free(set.rows);
		return 0;
	}
	set.variance = set.certain || (place && count > 1 && set.ratio_most - set.ratio_least > DIFFERS * set.ratio);
	sets->items[sets->count++] = set;
	return 0;
}

/* Finds the typical ratio and the scatter of rows that are in no set, nor marked. Returns their number. */
static size_t find_rest(struct finder *finder, const unsigned char *marked, double *typical, double *sigma)
{
	size_t count = 0;

	for (size_t row = 0; row < finder->job->row_count; row++) {
		if (finder->rows[row].ratio > 0 && !finder->rows[row].in_set && !marked[row])
			finder->scratch[count++] = finder->rows[row].ratio;
	}
	*typical = sets__median(finder->scratch, count);
	/* the quarter of a normal distribution lies 0.67 sigma below the median; slow rows are above it */
	*sigma = count ? fmax(1e-4, (*typical - finder->scratch[count / 4]) / QUARTILE_SIGMAS) : 0;
	return count;
}

/* Adds the rows of a host or socket, where they are slow as a place. */
static int try_place(struct sets *sets, struct finder *finder, const uint32_t *rows, size_t count,
		     const struct sets_span *span)
{
	double before = finder->median, ratio, sigma;
	unsigned char *marked;
	size_t slow = 0, rest;
	int error = 0;

	if (count < 2 || 2 * count > finder->known || mean_ratio(finder, rows, count) < SET_RATIO)
		return 0;
	marked = calloc(finder->job->row_count, 1);
	if (!marked)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		marked[rows[i]] = 1;
	rest = find_rest(finder, marked, &finder->median, &sigma);
	free(marked);
	ratio = rest ? mean_ratio(finder, rows, count) : 0;
	for (size_t i = 0; i < count; i++)
		slow += finder->rows[rows[i]].ratio > finder->median * (1 + (ratio - 1) / 2);
	sigma *= sqrt(1.0 / (double)count + 1.0 / fmax(1, (double)rest)) / fmax(1e-9, finder->median);
	if (ratio >= SET_RATIO && ratio - 1 >= SIGMAS_CERTAIN * sigma &&
	    (double)slow >= SHARE_OF_PLACE * (double)count && sets__steady(finder, rows, count, ratio))
		error = add_set(sets, finder, rows, count, true, span);
	finder->median = before;
	return error;
}

static int find_places(struct sets *sets, struct finder *finder, const struct sets_span *span)
{
	const struct stg_job *job = finder->job;
	uint32_t *rows = malloc((job->row_count + 1) * sizeof(*rows));
	unsigned char *seen = calloc(job->row_count + 1, 1);
	int error = rows && seen ? 0 : -ENOMEM;

	/* Hosts first: of a slow host both sockets are slow. */
	for (int by_socket = 0; !error && by_socket < 2; by_socket++) {
		memset(seen, 0, job->row_count);
		for (size_t place = 0; !error && place < job->row_count; place++) {
			const struct stg_row *first = &job->rows[job->order[place]];
			size_t count = 0;

			if (seen[job->order[place]])
				continue;
			for (size_t other = place; other < job->row_count; other++) {
				uint32_t row = job->order[other];

				if (job->rows[row].host != first->host ||
				    (by_socket && job->rows[row].socket != first->socket))
					continue;
				seen[row] = 1;
				if (finder->rows[row].ratio > 0 && !finder->rows[row].in_set)
					rows[count++] = row;
			}
			error = try_place(sets, finder, rows, count, span);
		}
	}
	free(rows);
	free(seen);
	return error;
}

struct ranked {
	double ratio;
	uint32_t row;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	if (left->ratio != right->ratio)
		return left->ratio < right->ratio ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

static int compare_rows(const void *a, const void *b, void *job)
{
	const uint32_t *left = a, *right = b, *place = ((const struct stg_job *)job)->place;

	return (place[*left] > place[*right]) - (place[*left] < place[*right]);
}

/* The scatter of rows between thirds of the view: the scatter between few rows says nothing. */
static double third_sigma(const struct finder *finder)
{
	double squares = 0;
	size_t count = 0;

	for (size_t row = 0; row < finder->job->row_count; row++) {
		const struct row_time *time = &finder->rows[row];

		for (int k = 0; time->ratio > 0 && k < THIRDS; k++) {
			double apart = time->ns[k] / time->base_ns[k] - time->ratio;

			squares += apart * apart;
			count++;
		}
	}
	return count ? sqrt(squares / (double)count) : 0;
}

/* Adds rows that no place explains, beyond the widest gap above the median. */
static int find_gap(struct sets *sets, struct finder *finder, const struct sets_span *span)
{
	struct ranked *order = malloc((finder->job->row_count + 1) * sizeof(*order));
	uint32_t *rows = malloc((finder->job->row_count + 1) * sizeof(*rows));
	unsigned char *marked = calloc(finder->job->row_count + 1, 1);
	size_t count = 0, cut = 0, slow = 0;
	double widest = LEAST_GAP, ratio, sigma = 0;
	int error = order && rows && marked ? 0 : -ENOMEM;

	if (!error && find_rest(finder, marked, &finder->median, &sigma) < FEW_ROWS)
		sigma = third_sigma(finder);

	for (size_t row = 0; !error && row < finder->job->row_count; row++) {
		if (finder->rows[row].ratio > 0 && !finder->rows[row].in_set)
			order[count++] = (struct ranked){finder->rows[row].ratio, (uint32_t)row};
	}
	if (count)
		qsort(order, count, sizeof(*order), compare_ranked);
	for (size_t i = (count + 1) / 2; i < count; i++) {
		if (order[i].ratio / order[i - 1].ratio > widest &&
		    order[i].ratio - order[i - 1].ratio > SIGMAS_CERTAIN * sigma) {
			widest = order[i].ratio / order[i - 1].ratio;
			cut = i;
		}
	}
	for (size_t i = cut; cut && i < count; i++) {
		uint32_t row = order[i].row;

		/* an outlier is in one third only */
		if (sets__steady(finder, &row, 1, order[i].ratio / finder->median))
			rows[slow++] = row;
	}
	if (slow) {
		qsort_r(rows, slow, sizeof(*rows), compare_rows, (void *)finder->job);
		ratio = mean_ratio(finder, rows, slow);
		if (ratio >= SET_RATIO && sets__steady(finder, rows, slow, ratio))
			error = add_set(sets, finder, rows, slow, false, span);
	}
	free(order);
	free(rows);
	free(marked);
	return error;
}

int sets__find(struct sets *sets, const struct series_book *book, const struct stg *stg, uint32_t job,
	       const struct heatmap *map, const struct sets_span *span)
{
	struct finder finder = {.book = book, .stg = stg, .job = stg__job(stg, job), .id = job};
	struct sets before = *sets;
	int error = -ENOMEM;

	*sets = (struct sets){0};
	finder.rows = calloc(finder.job->row_count + 1, sizeof(*finder.rows));
	finder.base = calloc(book->workload_count + 1, sizeof(*finder.base));
	finder.scratch = malloc((THIRDS * finder.job->row_count + 1) * sizeof(*finder.scratch));
	if (!finder.rows || !finder.base || !finder.scratch)
		goto cleanup;
	sets__find_ratios(&finder);
	error = 0;
	if (finder.known >= 2)
		error = find_places(sets, &finder, span);
	if (!error && finder.known >= 2)
		error = find_gap(sets, &finder, span);
	if (!error)
		error = sets__find_by_median(sets, &finder, span);
	if (!error)
		error = sets__continue(sets, &before, finder.job, map);
cleanup:
	sets__clear(&before);
	free(finder.rows);
	free(finder.base);
	free(finder.scratch);
	return error;
}
