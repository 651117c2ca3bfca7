// SPDX-License-Identifier: GPL-2.0-or-later
/* The part of waiting in calls that is a few ranks' own: see waiting.h. */
#include "detect/waiting_private.h"

#include "model/grow.h"

#include <math.h>

/* Of a call's excess in a bin: what is worth a look, of the bin and of what the calls should have taken. */
#define LEAST_EXCESS 0.01
#define LEAST_RATIO 0.15
#define FEW 4		/* one member in so many may be on a slow path; more are the rule */
#define LEAST_MEMBERS 3 /* of a call-site, for a few of them to be told from the others */
#define PATH_SHARE 0.7	/* of the most in a bin, from there on a slow path is one's own */
#define LATE_SHARE 0.5	/* of an excess, lost by another member: that one was late */

static double lost_beside(const struct waiting *waiting, uint32_t row, uint64_t bin)
{
	struct cell computation, io;

	if (!heatmap__has(waiting->map, bin))
		return 0;
	computation = heatmap__cell(waiting->map, row, bin, VAPRO_COMPUTATION);
	io = heatmap__cell(waiting->map, row, bin, VAPRO_IO);
	return fmax(0, cell__lost(&computation)) + fmax(0, cell__lost(&io));
}

/* What any row lost in computation and IO in a bin and those before it, the most by bin. */
int slow_path__begin(struct waiting *waiting)
{
	if (grow(&waiting->paths, &waiting->path_capacity, waiting->rows, sizeof(*waiting->paths)) ||
	    grow(&waiting->last, &waiting->last_capacity, waiting->rows, sizeof(*waiting->last)) ||
	    grow(&waiting->least, &waiting->least_capacity, waiting->rows, sizeof(*waiting->least)) ||
	    grow(&waiting->sums, &waiting->sum_capacity, waiting->rows, sizeof(*waiting->sums)) ||
	    grow(&waiting->late, &waiting->late_capacity, waiting->bins + 1, sizeof(*waiting->late)))
		return -ENOMEM;
	memset(waiting->late, 0, (waiting->bins + 1) * sizeof(*waiting->late));
	for (uint32_t row = 0; row < waiting->rows; row++) {
		double sum = 0;

		for (uint64_t bin = waiting->view - waiting->reach; bin < waiting->view; bin++)
			sum += lost_beside(waiting, row, bin);
		for (size_t b = 0; b < waiting->bins; b++) {
			uint64_t bin = waiting->view + b;

			sum += lost_beside(waiting, row, bin);
			waiting->late[b] = fmax(waiting->late[b], sum);
			sum -= lost_beside(waiting, row, bin - waiting->reach);
		}
	}
	return 0;
}

static size_t users_of(const struct series_book *book, uint32_t workload)
{
	uint32_t row = UINT32_MAX;
	size_t count = 0;

	for (uint32_t i = book->workloads[workload].series; i != SERIES_NONE; i = book->series[i].next) {
		count += book->series[i].row != row;
		row = book->series[i].row;
	}
	return count;
}

static double open_excess(const struct excess *item)
{
	return item->ns - item->transfer_ns;
}

void slow_path__drop(struct waiting *waiting, const struct stg_job *job)
{
	memset(waiting->paths, 0, waiting->rows * sizeof(*waiting->paths));
	for (size_t i = 0; i < waiting->item_count; i++)
		waiting->paths[waiting->items[i].row] += waiting->items[i].path_ns;
	for (size_t i = 0; i < waiting->item_count; i++) {
		struct excess *item = &waiting->items[i];
		double less = job->most_computing_ns - job->rows[item->row].computing_ns;

		if (less >= LATE_SHARE * waiting->paths[item->row])
			item->path_ns = 0;
	}
}

/* The excess of each row in items [from, to) goes to waiting->paths. Returns the most, and how many rows have some. */
static double sum_rows(struct waiting *waiting, size_t from, size_t to, size_t *slow)
{
	double most = 0, worth = LEAST_EXCESS * (double)VAPRO_BIN_NS;

	for (size_t i = from; i < to; i++)
		waiting->paths[waiting->items[i].row] = 0;
	for (size_t i = from; i < to; i++) {
		const struct excess *item = &waiting->items[i];

		if (open_excess(item) >= LEAST_RATIO * item->reference_ns)
			waiting->paths[item->row] += open_excess(item);
	}
	*slow = 0;
	for (size_t i = from; i < to; i++) {
		double *excess = &waiting->paths[waiting->items[i].row];

		/* each row once */
		if (*excess >= worth && *excess < INFINITY) {
			most = fmax(most, *excess);
			++*slow;
			waiting->sums[waiting->items[i].row] = *excess;
			*excess = INFINITY;
		} else if (*excess < worth) {
			waiting->sums[waiting->items[i].row] = 0;
		}
	}
	return most;
}

/* Rows that are slow by nearly as much as the slowest. */
static size_t main_rows(struct waiting *waiting, size_t from, size_t to, double most)
{
	size_t count = 0;

	waiting->operation++;
	for (size_t i = from; i < to; i++) {
		uint32_t row = waiting->items[i].row;

		count += waiting->last[row] != waiting->operation && waiting->sums[row] >= PATH_SHARE * most;
		waiting->last[row] = waiting->operation;
	}
	return count;
}

/*
 * Whether another rank came to the same operation when most of a single call's excess was over: its call began then,
 * and it ends with this one or after it. Items from `at` on are in the order of their ends.
 */
static bool arrived_late(const struct waiting *waiting, size_t at, size_t to)
{
	const struct excess *item = &waiting->items[at];
	uint64_t late = item->end_ns - (uint64_t)(LATE_SHARE * open_excess(item));

	if (item->n != 1)
		return false;
	for (size_t i = at + 1; i < to && waiting->items[i].start_ns <= item->end_ns; i++) {
		if (waiting->items[i].n == 1 && waiting->items[i].row != item->row &&
		    waiting->items[i].start_ns >= late)
			return true;
		if (waiting->items[i].end_ns > item->end_ns + VAPRO_BIN_NS)
			break;
	}
	/* ends are as far apart as a transfer takes */
	for (size_t i = at; i-- > 0 && waiting->items[i].end_ns >= late;) {
		if (waiting->items[i].workload != item->workload || waiting->items[i].group != item->group)
			break;
		if (waiting->items[i].n == 1 && waiting->items[i].row != item->row &&
		    waiting->items[i].start_ns >= late)
			return true;
	}
	return false;
}

void slow_path__find(struct waiting *waiting, const struct series_book *book, size_t from, size_t to)
{
	size_t users = users_of(book, waiting->items[from].workload);

	if (users < LEAST_MEMBERS || waiting->groups[waiting->items[from].group].id == STG_PROCESS)
		return;
	for (size_t i = from, next; i < to; i = next) {
		size_t b = waiting__end_bin(waiting, &waiting->items[i]), slow, own;
		double most;

		for (next = i; next < to && waiting__end_bin(waiting, &waiting->items[next]) == b; next++)
			;
		most = sum_rows(waiting, i, next, &slow);
		own = main_rows(waiting, i, next, most);
		if (!slow || 2 * slow > users || (own > 1 && own > users / FEW))
			continue;
		for (size_t k = i; k < next; k++) {
			struct excess *item = &waiting->items[k];
			double sum = waiting->sums[item->row];

			/* The others wait for the slowest of them. */
			if (sum > 0 && !arrived_late(waiting, k, to) && sum >= PATH_SHARE * most &&
			    waiting->late[b] <= LATE_SHARE * sum &&
			    open_excess(item) >= LEAST_RATIO * item->reference_ns)
				item->path_ns = open_excess(item);
		}
	}
}
