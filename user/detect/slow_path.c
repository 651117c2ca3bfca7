// SPDX-License-Identifier: GPL-2.0-or-later
/* The part of waiting in calls that is a few ranks' own: see waiting.h. */
#include "detect/waiting_private.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LEAST_RATIO 0.15 /* least excess of calls that counts, as part of their reference */
#define FEW 4		 /* one member in so many may be on a slow path; more are normal */
enum { SAMPLES = 64 };	 /* calls of a call-site that show whether its rows meet in them */
#define LONG_RATIO 2	 /* excess of a long call, as part of its reference */
#define APART_SHARE 0.25 /* share of the excess of long calls in which rows did not meet */

static double lost_beside(const struct waiting *waiting, uint32_t row, uint64_t bin)
{
	struct cell computation, io;

	if (!heatmap__has(waiting->map, bin))
		return 0;
	computation = heatmap__cell(waiting->map, row, bin, VAPRO_COMPUTATION);
	io = heatmap__cell(waiting->map, row, bin, VAPRO_IO);
	return fmax(0, cell__lost(&computation)) + fmax(0, cell__lost(&io));
}

int waiting__begin_slow_paths(struct waiting *waiting)
{
	if (grow(&waiting->paths, &waiting->path_capacity, waiting->rows, sizeof(*waiting->paths)) ||
	    grow(&waiting->last, &waiting->last_capacity, waiting->rows, sizeof(*waiting->last)) ||
	    grow(&waiting->least, &waiting->least_capacity, waiting->rows, sizeof(*waiting->least)) ||
	    grow(&waiting->sums, &waiting->sum_capacity, waiting->rows, sizeof(*waiting->sums)) ||
	    grow(&waiting->late, &waiting->late_capacity, waiting->bins + 1, sizeof(*waiting->late)))
		return -ENOMEM;
	return 0;
}

/*
 * Finds, by bin, the most that a row lost in computation and IO in the bin and those before. Bins are contiguous for
 * all rows, so bins are the outer loop; the rows' sums are in waiting->paths.
 */
static void find_late(struct waiting *waiting)
{
	double *sums = waiting->paths;

	waiting->late_known = true;
	memset(sums, 0, waiting->rows * sizeof(*sums));
	for (uint64_t bin = waiting->begin - waiting->reach; bin < waiting->begin; bin++) {
		for (uint32_t row = 0; row < waiting->rows; row++)
			sums[row] += lost_beside(waiting, row, bin);
	}
	for (size_t b = 0; b < waiting->bins; b++) {
		uint64_t bin = waiting->begin + b;
		double most = 0;

		for (uint32_t row = 0; row < waiting->rows; row++) {
			sums[row] += lost_beside(waiting, row, bin);
			most = sums[row] > most ? sums[row] : most;
			sums[row] -= lost_beside(waiting, row, bin - waiting->reach);
		}
		waiting->late[b] = most;
	}
}

/* Counts rows of a workload: a row in several of its states has several series. */
static size_t users_of(struct waiting *waiting, const struct series_book *book, uint32_t workload)
{
	size_t count = 0;

	waiting->operation++;
	for (uint32_t i = book->workloads[workload].series; i != SERIES_NONE; i = book->series[i].next) {
		uint32_t row = book->series[i].row;

		count += waiting->last[row] != waiting->operation;
		waiting->last[row] = waiting->operation;
	}
	return count;
}

static double open_excess(const struct excess *item)
{
	return item->ns - item->transfer_ns;
}

/* Counts a workload's calls in the view, by row, in waiting->sums. Returns the most that a row computed per call. */
static double count_calls(struct waiting *waiting, const struct stg_job *job, const struct series_book *book,
			  uint32_t workload)
{
	const uint32_t first = book->workloads[workload].series;
	double most = 0;

	for (uint32_t i = first; i != SERIES_NONE; i = book->series[i].next)
		waiting->sums[book->series[i].row] = 0;
	for (uint32_t i = first; i != SERIES_NONE; i = book->series[i].next)
		waiting->sums[book->series[i].row] += book->series[i].view_n;
	for (uint32_t i = first; i != SERIES_NONE; i = book->series[i].next) {
		uint32_t row = book->series[i].row;

		if (waiting->sums[row] > 0)
			most = fmax(most, job->rows[row].computing_ns / waiting->sums[row]);
	}
	return most;
}

/*
 * How much less a row computed than the one with most, ns, where it goes its own way neither by its calls of all kinds
 * (stg__computes_less) nor by those of one kind: programs that are coupled make as many calls where they meet, however
 * many they make among themselves. like_others: what it had computed with as much per call as the one with most, ns.
 */
static double computes_less(const struct stg_job *job, uint32_t row, double like_others)
{
	double own = job->rows[row].computing_ns;

	return fmax(stg__computes_less(job, row, true), fmin(job->most_computing_ns, like_others) - own);
}

static bool has_path(const struct waiting *waiting, const struct call_site *site)
{
	for (size_t i = site->begin; i < site->begin + site->count; i++) {
		if (waiting__item(waiting, i)->path_ns > 0)
			return true;
	}
	return false;
}

void waiting__drop_slow_paths(struct waiting *waiting, const struct stg_job *job, const struct series_book *book)
{
	memset(waiting->paths, 0, waiting->rows * sizeof(*waiting->paths));
	for (size_t i = 0; i < waiting->item_count; i++)
		waiting->paths[waiting->items[i].row] += waiting->items[i].path_ns;
	for (size_t s = 0; s < waiting->site_count; s++) {
		const struct call_site *site = &waiting->sites[s];
		double most;

		if (!has_path(waiting, site))
			continue;
		most = count_calls(waiting, job, book, site->workload);
		for (size_t i = site->begin; i < site->begin + site->count; i++) {
			struct excess *item = waiting__item(waiting, i);
			double like_others = most * waiting->sums[item->row];

			if (computes_less(job, item->row, like_others) >= SHARE_MOST * waiting->paths[item->row])
				item->path_ns = 0;
		}
	}
}

/*
 * Subtracts the slow paths of a bin from the transfers of the items [from, to) of a call-site, which end in that bin.
 * The paths of the call-site itself are no reason for its members to wait.
 */
static void clear_in(struct waiting *waiting, size_t from, size_t to, double paths)
{
	for (size_t i = from; i < to; i++)
		paths -= waiting__item(waiting, i)->path_ns;
	for (size_t i = from; i < to; i++) {
		struct excess *item = waiting__item(waiting, i);

		if (item->n > 1)
			item->transfer_ns = fmax(0, item->transfer_ns - fmax(0, paths));
	}
}

int waiting__clear_transfers(struct waiting *waiting)
{
	double *paths = calloc(waiting->bins + 1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	for (size_t i = 0; i < waiting->item_count; i++)
		paths[waiting->items[i].bin] += waiting->items[i].path_ns;
	for (size_t s = 0; s < waiting->site_count; s++) {
		size_t end = waiting->sites[s].begin + waiting->sites[s].count;

		for (size_t from = waiting->sites[s].begin, to; from < end; from = to) {
			to = waiting__bin_end(waiting, from, end);
			clear_in(waiting, from, to, paths[waiting__item(waiting, from)->bin]);
		}
	}
	free(paths);
	return 0;
}

static bool counts(const struct excess *item)
{
	return open_excess(item) >= LEAST_RATIO * item->reference_ns;
}

/* Sums the excess of each row in items [from, to) to waiting->sums. Returns the most; *slow: rows with an excess. */
static double sum_rows(struct waiting *waiting, size_t from, size_t to, size_t *slow)
{
	double most = 0, worth = SHARE_NEGLIGIBLE * (double)VAPRO_BIN_NS, all = 0;

	*slow = 0;
	for (size_t i = from; i < to; i++) {
		const struct excess *item = waiting__item(waiting, i);

		all += counts(item) ? open_excess(item) : 0;
		waiting->paths[item->row] = 0;
	}
	/* Mostly the sum is too small: no row has more. */
	if (all < worth / 2)
		return 0;
	for (size_t i = from; i < to; i++) {
		const struct excess *item = waiting__item(waiting, i);

		if (counts(item))
			waiting->paths[item->row] += open_excess(item);
	}
	for (size_t i = from; i < to; i++) {
		uint32_t row = waiting__item(waiting, i)->row;
		double *excess = &waiting->paths[row];

		/* each row once */
		if (*excess >= worth && *excess < INFINITY) {
			most = fmax(most, *excess);
			++*slow;
			waiting->sums[row] = *excess;
			*excess = INFINITY;
		} else if (*excess < worth) {
			waiting->sums[row] = 0;
		}
	}
	return most;
}

/* Counts rows that are nearly as slow as the slowest. */
static size_t main_rows(struct waiting *waiting, size_t from, size_t to, double most)
{
	size_t count = 0;

	waiting->operation++;
	for (size_t i = from; i < to; i++) {
		uint32_t row = waiting__item(waiting, i)->row;

		count += waiting->last[row] != waiting->operation && waiting->sums[row] >= SHARE_OF_SLOWEST * most;
		waiting->last[row] = waiting->operation;
	}
	return count;
}

static int compare_arrivals(const void *a, const void *b)
{
	const struct arrival *left = a, *right = b;

	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

/* The beginnings of a call-site's single calls, in order. Returns 0 or -ENOMEM. */
static int find_arrivals(struct waiting *waiting, struct call_site *site)
{
	if (site->arrivals_known)
		return 0;
	if (grow_untouched(&waiting->arrivals, &waiting->arrival_capacity, site->count, sizeof(*waiting->arrivals)))
		return -ENOMEM;
	waiting->arrival_count = 0;
	for (size_t i = site->begin; i < site->begin + site->count; i++) {
		const struct excess *item = waiting__item(waiting, i);

		if (item->n <= 1)
			waiting->arrivals[waiting->arrival_count++] = (struct arrival){item->start_ns, item->row};
	}
	qsort(waiting->arrivals, waiting->arrival_count, sizeof(*waiting->arrivals), compare_arrivals);
	site->arrivals_known = true;
	return 0;
}

/* The first arrival from a time on. */
static size_t first_arrival(const struct waiting *waiting, uint64_t from_ns)
{
	size_t low = 0;

	for (size_t high = waiting->arrival_count; low < high;) {
		size_t middle = (low + high) / 2;

		if (waiting->arrivals[middle].start_ns < from_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Whether another rank's call of the same operation began when most of a single call's excess was over. A call waits
 * for a late rank first, and the transfer follows, so the excess counts from the beginning. The late rank's own call
 * may take much longer than this one, where it is on a slow path, and end in a later bin. A rank that began such a call
 * before, and now the next one, did not wait for this one, nor this one for it. *others: rows that began several such
 * calls while this one went on.
 */
static bool arrived_late(struct waiting *waiting, struct call_site *site, const struct excess *item, size_t *others)
{
	uint64_t late = item->start_ns + (uint64_t)(SHARE_MOST * open_excess(item));
	const struct arrival *arrivals;
	size_t low;
	uint32_t once, again;
	bool is = false;

	*others = 0;
	if (item->n != 1)
		return false;
	/* Where memory runs out, no rank is named. */
	if (find_arrivals(waiting, site))
		return true;
	arrivals = waiting->arrivals;
	low = first_arrival(waiting, item->start_ns);
	once = ++waiting->operation;
	again = ++waiting->operation;
	waiting->last[item->row] = again;
	for (; low < waiting->arrival_count && arrivals[low].start_ns <= item->end_ns; low++) {
		uint32_t *last = &waiting->last[arrivals[low].row];

		is |= arrivals[low].start_ns >= late && *last != once && *last != again;
		*others += *last == once;
		*last = *last == once || *last == again ? again : once;
	}
	return is;
}

/*
 * Finds slow paths in the items [from, to) of a call-site, which end in one bin. unknown: further rows that may have
 * been slow in that bin.
 */
static bool find_in(struct waiting *waiting, const struct series_book *book, struct call_site *site, size_t from,
		    size_t to, size_t unknown)
{
	size_t slow, own, others;
	double most = sum_rows(waiting, from, to, &slow);
	bool any = false;

	if (!slow)
		return false;
	if (!site->users)
		site->users = users_of(waiting, book, site->workload);
	own = main_rows(waiting, from, to, most) + unknown;
	slow += unknown;
	if (site->users < LEAST_COMPARED || 2 * slow > site->users || (own > 1 && own > site->users / FEW))
		return false;
	if (!waiting->late_known)
		find_late(waiting);
	for (size_t i = from; i < to; i++) {
		struct excess *item = waiting__item(waiting, i);
		double sum = waiting->sums[item->row];

		/* All others wait for the slowest rows. */
		if (sum > 0 && sum >= SHARE_OF_SLOWEST * most && waiting->late[item->bin] <= SHARE_MOST * sum &&
		    counts(item) && !arrived_late(waiting, site, item, &others)) {
			item->path_ns = open_excess(item);
			any = true;
		}
	}
	return any;
}

/*
 * Counts rows of a call-site that have no known call before the view: a state becomes known rank by rank, and these
 * rows may have been slow there, too. 0 where all known calls lie in the view.
 */
static size_t unknown_rows(struct waiting *waiting, const struct series_book *book, struct call_site *site)
{
	size_t rows = 0;

	waiting->operation++;
	for (size_t i = site->begin;
	     i < site->begin + site->count && waiting__item(waiting, i)->bin < waiting->before_view; i++) {
		uint32_t row = waiting__item(waiting, i)->row;

		rows += waiting->last[row] != waiting->operation;
		waiting->last[row] = waiting->operation;
	}
	if (!rows)
		return 0;
	if (!site->users)
		site->users = users_of(waiting, book, site->workload);
	return site->users - rows;
}

static bool is_long(const struct excess *item)
{
	return item->n == 1 && open_excess(item) >= LONG_RATIO * item->reference_ns;
}

static int compare_long(const void *a, const void *b)
{
	const struct long_calls *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

/* Lists the long calls of all call-sites. Returns 0 or -ENOMEM. */
static int find_long_calls(struct waiting *waiting)
{
	struct long_calls *calls, last = {0};

	if (waiting->long_known)
		return 0;
	waiting->long_count = 0;
	for (size_t i = 0; i < waiting->item_count; i++) {
		const struct excess *item = &waiting->items[i];

		if (!is_long(item))
			continue;
		if (grow_untouched(&waiting->long_calls, &waiting->long_capacity, waiting->long_count + 1,
				   sizeof(*waiting->long_calls)))
			return -ENOMEM;
		waiting->long_calls[waiting->long_count++] =
		    (struct long_calls){.start_ns = item->start_ns, .end_ns = item->end_ns, .row = item->row};
	}
	calls = waiting->long_calls;
	if (waiting->long_count)
		qsort(calls, waiting->long_count, sizeof(*calls), compare_long);
	for (size_t i = 0; i < waiting->long_count; i++) {
		struct long_calls call = calls[i];

		if (call.end_ns > last.end_ns) {
			last.other_ns = call.row == last.row ? last.other_ns : last.end_ns;
			last.end_ns = call.end_ns;
			last.row = call.row;
		} else if (call.row != last.row && call.end_ns > last.other_ns) {
			last.other_ns = call.end_ns;
		}
		last.start_ns = call.start_ns;
		calls[i] = last;
	}
	waiting->long_known = true;
	return 0;
}

/* Whether no rank can be late for a call: in its middle no other rank is in a long call, for which others would wait.
 */
static bool has_no_late_peer(struct waiting *waiting, const struct excess *item)
{
	uint64_t middle = item->start_ns + (item->end_ns - item->start_ns) / 2;
	const struct long_calls *last;
	size_t low = 0;

	if (waiting->longest_ns <= 0 || open_excess(item) <= waiting->longest_ns || find_long_calls(waiting))
		return false;
	for (size_t high = waiting->long_count; low < high;) {
		size_t at = (low + high) / 2;

		if (waiting->long_calls[at].start_ns <= middle)
			low = at + 1;
		else
			high = at;
	}
	if (!low)
		return true;
	last = &waiting->long_calls[low - 1];
	return (last->row == item->row ? last->other_ns : last->end_ns) <= middle;
}

/*
 * Whether the rows of a call-site do not meet in its calls: while many of its long calls last, at least half of the
 * other rows begin such calls, and none begins its first one late, or no rank can be late for them. A few of the long
 * calls show it.
 */
static bool is_uncoupled(struct waiting *waiting, const struct series_book *book, struct call_site *site)
{
	size_t end = site->begin + site->count, count = 0, at = 0;
	double apart = 0, all = 0;

	for (size_t i = site->begin; site->singles >= LEAST_COMPARED && i < end; i++)
		count += is_long(waiting__item(waiting, i));
	if (count && !site->users)
		site->users = users_of(waiting, book, site->workload);
	for (size_t i = site->begin; count && site->users >= LEAST_COMPARED && i < end; i++) {
		const struct excess *item = waiting__item(waiting, i);
		size_t others;

		if (!is_long(item) || at++ % (count / SAMPLES + 1))
			continue;
		all += open_excess(item);
		if ((!arrived_late(waiting, site, item, &others) && 2 * others >= site->users - 1) ||
		    has_no_late_peer(waiting, item))
			apart += open_excess(item);
	}
	return all > 0 && apart >= APART_SHARE * all;
}

/* In such calls all the excess is the rows' own, however many of them have one. */
static bool find_uncoupled(struct waiting *waiting, const struct series_book *book, struct call_site *site)
{
	bool any = false;

	if (!is_uncoupled(waiting, book, site))
		return false;
	for (size_t i = site->begin; i < site->begin + site->count; i++) {
		struct excess *item = waiting__item(waiting, i);

		if (item->n == 1 && counts(item)) {
			item->path_ns = open_excess(item);
			item->may_wait = !has_no_late_peer(waiting, item);
			any = true;
		}
	}
	return any;
}

bool waiting__find_slow_path(struct waiting *waiting, const struct series_book *book, struct call_site *site)
{
	size_t end = site->begin + site->count;
	size_t unknown;
	bool any = false;

	if (waiting->groups[site->group].id == STG_PROCESS)
		return false;
	if (find_uncoupled(waiting, book, site))
		return true;
	unknown = unknown_rows(waiting, book, site);
	for (size_t from = site->begin, to; from < end; from = to) {
		to = waiting__bin_end(waiting, from, end);
		any |= find_in(waiting, book, site, from, to,
			       waiting__item(waiting, from)->bin < waiting->before_view ? unknown : 0);
	}
	return any;
}
