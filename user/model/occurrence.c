/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/occurrence.h"

#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define FEW_RANKS 8	 /* ranks that show a gap; what they show of a scatter is known half as well */
#define LEAST_SIGMA 0.05 /* standard deviation of calls of equal bytes, in the logarithm: a smaller one is chance */
#define GAP_WIDTHS 1.5	 /* times the whole scatter of the ranks below a gap */
#define LEAST_GAP 0.3	 /* between ranks, in the logarithm: a narrower one parts no groups */
#define MAD_SIGMA 1.4826 /* standard deviation of a normal distribution, in median absolute deviations */

/* A call, and its time without waits for a CPU, ns. */
struct call {
	struct bundle_rec *rec;
	double ns;
	uint32_t workload, row;
};

bool occurrence__is_rare_call(const struct series_book *book, const struct bundle_rec *rec)
{
	const struct series *series = &book->series[rec->series];

	return !rec->retained && series->class == VAPRO_IO && series->cpu.n < (double)book->config->certify_fragments &&
	       !(series->supported && series->cpu.n >= (double)book->config->rare_members) &&
	       !stg__state(book->stg, series->state)->peer && !stg__state(book->stg, series->state)->no_return;
}

static int compare_calls(const void *a, const void *b)
{
	const struct call *left = a, *right = b;

	if (left->workload != right->workload)
		return left->workload < right->workload ? -1 : 1;
	if (left->rec->start_ns != right->rec->start_ns)
		return left->rec->start_ns < right->rec->start_ns ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

static int compare_numbers(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* The lower median of numbers, which are brought into order. */
static double median(double *numbers, size_t count)
{
	qsort(numbers, count, sizeof(*numbers), compare_numbers);
	return numbers[(count - 1) / 2];
}

/* Whether a rank is among calls. */
static bool has_row(const struct call *calls, size_t count, uint32_t row)
{
	for (size_t i = 0; i < count; i++) {
		if (calls[i].row == row)
			return true;
	}
	return false;
}

/* Counts ranks that make calls of a workload, however short. */
static size_t rows_of(const struct series_book *book, uint32_t workload)
{
	size_t rows = 0;

	for (uint32_t i = book->workloads[workload].series; i != SERIES_NONE; i = book->series[i].next)
		rows++;
	return rows;
}

/*
 * The calls of one occurrence from the first one on: of equal bytes, begun before the first of them has ended, each of
 * another rank.
 */
static size_t occurrence_of(const struct call *calls, size_t count)
{
	uint64_t end_ns = calls->rec->end_ns;
	size_t found = 1;

	while (found < count && calls[found].workload == calls->workload && calls[found].rec->start_ns < end_ns &&
	       !has_row(calls, found, calls[found].row)) {
		end_ns = calls[found].rec->end_ns < end_ns ? calls[found].rec->end_ns : end_ns;
		found++;
	}
	return found;
}

/*
 * The number from which on ranks are slow: beyond the usual scatter, or beyond a gap that is wider than the scatter of
 * all below it, which are at least half. *middle: the median, of the ranks below the gap where there is one. numbers:
 * in the logarithm; scratch for as many.
 */
static double slow_from(double *numbers, size_t count, double *scratch, double *middle)
{
	*middle = median(numbers, count);
	for (size_t i = (count + 1) / 2; i < count; i++) {
		double gap = numbers[i] - numbers[i - 1], below = numbers[i - 1] - numbers[0];

		if (gap <= fmax(GAP_WIDTHS * below, LEAST_GAP) || i < FEW_RANKS)
			continue;
		*middle = numbers[(i - 1) / 2];
		return numbers[i];
	}
	for (size_t i = 0; i < count; i++)
		scratch[i] = fabs(numbers[i] - *middle);
	return *middle +
	       SIGMAS_CERTAIN * (1 + FEW_RANKS / (double)count) * fmax(LEAST_SIGMA, MAD_SIGMA * median(scratch, count));
}

/*
 * numbers: room for two of each call. Calls that have not ended count only as being slow. Most ranks must be known,
 * since calls of the others may be too short to be here.
 */
static void judge(const struct series_book *book, const struct call *calls, size_t count, double *numbers)
{
	size_t ended = 0;
	double middle, slow;

	for (size_t i = 0; i < count; i++) {
		if (!(calls[i].rec->flags & VAPRO_BUNDLE_OPEN))
			numbers[ended++] = log(fmax(1, calls[i].ns));
	}
	if (ended < LEAST_COMPARED || 2 * ended < rows_of(book, calls->workload))
		return;
	slow = slow_from(numbers, ended, &numbers[count], &middle);
	for (size_t i = 0; i < count; i++) {
		struct bundle_rec *rec = calls[i].rec;
		bool far = log(fmax(1, calls[i].ns)) >= slow;

		rec->reference = (float)(far ? exp(middle) : calls[i].ns);
		rec->no_reference = rec->provisional = rec->attributed_only = 0;
		/* an open call counts only once it lasts too long */
		rec->covered = rec->certified = far || !(rec->flags & VAPRO_BUNDLE_OPEN);
		rec->occurrence = ended >= LEAST_RANKS;
		rec->reason = VAPRO_COVERED;
	}
}

int occurrence__judge(const struct series_book *book, struct bundle_rec **recs, size_t count)
{
	struct call *calls = calloc(count + 1, sizeof(*calls));
	double *numbers = malloc((count + 1) * 2 * sizeof(*numbers));
	int error = calls && numbers ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < count; i++) {
		const struct series *series = &book->series[recs[i]->series];

		calls[i] = (struct call){.rec = recs[i],
					 .ns = fmax(0, recs[i]->sum_ns - bundle_rec__cpu_attributed(recs[i])),
					 .workload = series->workload,
					 .row = series->row};
	}
	if (!error)
		qsort(calls, count, sizeof(*calls), compare_calls);
	for (size_t i = 0; !error && i < count;) {
		size_t found = occurrence_of(&calls[i], count - i);

		judge(book, &calls[i], found, numbers);
		i += found;
	}
	free(calls);
	free(numbers);
	return error;
}
