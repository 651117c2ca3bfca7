// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/alone.h"

#include <math.h>
#include <stdlib.h>

#define AT_ONCE 5	  /* bins between two beginnings that may have one cause */
#define MOVED_ROWS 3	  /* so many rows on several places changed at once: that is the program */
#define LIGHTER 0.95	  /* of what it computed before, or less: a row has less to do */
#define RATE_BINS 50	  /* before and since a change, in which rows are compared */
#define ALL_SHARE 0.9	  /* of the rows: the program, or the whole machine */
#define LIGHTER_SHARE 0.5 /* of a loss that others were spared */
#define REPEATED 1.6	  /* fragments as slow as the slowest: more than one */
#define MANY_FRAGMENTS 20 /* of a state: outliers are few among them */
#define SURE_FRAGMENTS 3  /* so many slow ones may be a smaller part of all */
#define CHANCE 0.01	  /* coincidences of outliers in a run that are too many */
#define FEW_SHARE 0.6
#define SURE_SHARE 0.35
#define PLACE_SHARE 0.75 /* of the rows of a place, in a variance that is the place's */

static bool silent(const struct variance *variance, const struct vapro_config *config)
{
	const struct tally *tally = &variance->total;

	return variance->matched && variance->has[VAPRO_COMPUTATION] && !variance->waiting && !variance->path &&
	       tally->cpu[VAPRO_COMPUTATION] + tally->frequency <
		   config->evidence_share * tally->lost[VAPRO_COMPUTATION];
}

static bool at_once(const struct variance *a, const struct variance *b)
{
	uint64_t apart = a->begin > b->begin ? a->begin - b->begin : b->begin - a->begin;

	return apart <= AT_ONCE;
}

/* Time of computation of a row in bins [from, to) of the map, per bin. */
static double computed(const struct heatmap *map, uint32_t row, uint64_t from, uint64_t to)
{
	double seen = 0;

	for (uint64_t bin = from; bin < to; bin++) {
		struct cell cell = heatmap__cell(map, row, bin, VAPRO_COMPUTATION);

		seen += (double)cell.closed.seen + cell.open.seen;
	}
	return to > from ? seen / (double)(to - from) : 0;
}

static int compare_doubles(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Whether the map still has enough of the time before a variance to compare with. */
static bool has_before(const struct variance *variance, const struct heatmap *map)
{
	return variance->begin >= map->begin + RATE_BINS / 5;
}

/*
 * What rows that are not marked were spared since a variance began, ns: how much less they compute than before, beside
 * the median of them, since all of a job get on as fast as the slowest.
 */
static double spared(const struct variance *variance, const struct evidence_input *input, const unsigned char *marked)
{
	const struct heatmap *map = input->map;
	uint64_t begin = variance->begin;
	uint64_t end = variance->end < begin + RATE_BINS ? variance->end : begin + RATE_BINS;
	uint64_t from = begin > map->begin + RATE_BINS ? begin - RATE_BINS : map->begin;
	size_t rows = input->job->row_count, known = 0;
	double *before = calloc(rows + 1, sizeof(*before)), *during = calloc(rows + 1, sizeof(*during));
	double *change = calloc(rows + 1, sizeof(*change));
	double sum = 0, usual;

	if (!before || !during || !change || end <= begin)
		goto cleanup;
	for (uint32_t row = 0; row < rows; row++) {
		before[row] = computed(map, row, from, begin);
		during[row] = computed(map, row, begin, end);
		if (before[row] > 0 && !marked[row])
			change[known++] = during[row] / before[row];
	}
	if (known)
		qsort(change, known, sizeof(*change), compare_doubles);
	usual = known ? change[known / 2] : 0;
	for (uint32_t row = 0; row < rows; row++) {
		if (!marked[row] && during[row] < LIGHTER * usual * before[row])
			sum += (usual * before[row] - during[row]) * (double)(variance->end - variance->begin);
	}
cleanup:
	free(before);
	free(during);
	free(change);
	return sum;
}

enum alone alone__moved(struct variance *variance, const struct variance_book *book, const struct evidence_input *input)
{
	unsigned char *in = calloc(input->job->row_count + 1, 1);
	const char *host = NULL;
	bool several = false;
	enum alone is = ALONE_NOT_MOVED;
	size_t rows = 0, alive = 0;

	/* Out of memory nothing is confirmed. */
	if (!in)
		return ALONE_MOVED;
	for (size_t i = 0; i < book->count; i++) {
		const struct variance *other = &book->variances[i];

		if (!at_once(variance, other) || !silent(other, input->config))
			continue;
		for (size_t k = 0; k < other->row_count; k++) {
			const struct stg_row *row = &input->job->rows[other->rows[k]];

			rows += !in[other->rows[k]];
			in[other->rows[k]] = 1;
			several |= host && host != row->host;
			host = row->host;
		}
	}
	for (uint32_t row = 0; row < input->job->row_count; row++)
		alive += input->job->rows[row].from_ns &&
			 (!input->job->rows[row].to_ns || input->job->rows[row].to_ns > variance->begin * VAPRO_BIN_NS);
	/* What others were spared is asked last: it takes a walk through the map. */
	if (rows > 1 && (double)rows >= ALL_SHARE * (double)alive)
		is = ALONE_ALL;
	else if (rows >= MOVED_ROWS && several)
		is = ALONE_MOVED;
	else if (has_before(variance, input->map))
		variance->moved =
		    spared(variance, input, in) >= LIGHTER_SHARE * variance->total.lost[VAPRO_COMPUTATION];
	if (is == ALONE_NOT_MOVED && variance->moved)
		is = ALONE_MOVED;
	free(in);
	return is;
}

static bool is_place(const struct variance *variance, const struct evidence_input *input, bool by_socket)
{
	const struct stg_row *first = &input->job->rows[variance->rows[0]];
	size_t in = 0, others = 0;

	for (size_t i = 0; i < variance->row_count; i++) {
		const struct stg_row *row = &input->job->rows[variance->rows[i]];

		if (row->host != first->host || (by_socket && row->socket != first->socket))
			return false;
	}
	for (size_t i = 0; i < input->job->row_count; i++) {
		const struct stg_row *row = &input->job->rows[i];
		bool same = row->host == first->host && (!by_socket || row->socket == first->socket);

		in += same;
		others += !same;
	}
	return others >= in && (double)variance->row_count >= PLACE_SHARE * (double)in;
}

bool alone__place(const struct variance *variance, const struct evidence_input *input)
{
	return variance->row_count > 1 && (is_place(variance, input, false) || is_place(variance, input, true));
}

/*
 * Whether so many slow fragments among those of an entry are no wonder: with the share of fragments of the workload
 * that are as slow on any rank, one such coincidence would be seen in the run by chance alone.
 */
static bool by_chance(const struct evidence_input *input, const struct tally_series *entry, double slow)
{
	const struct series_book *book = input->series;
	double limit = entry->ref / fmax(entry->n, 1) + 0.5 * (entry->longest - entry->ref / fmax(entry->n, 1));
	double all = 0, above = -slow, ways = 1;

	for (uint32_t i = book->workloads[book->series[entry->series].workload].series; i != SERIES_NONE;
	     i = book->series[i].next) {
		const struct histogram *cpu = &book->series[i].cpu;

		all += cpu->n;
		for (size_t b = 0; b < cpu->count; b++)
			above += cpu->buckets[b].sum_ns / cpu->buckets[b].n >= limit ? cpu->buckets[b].n : 0;
	}
	if (!(all > 0) || above <= 0)
		return false;
	for (int i = 0; i < (int)slow; i++)
		ways *= fmax(1, entry->n - i) / (i + 1);
	return all * ways * pow(above / all, slow) > CHANCE;
}

/*
 * How many fragments of a state were as slow as the slowest, by their loss; 0 where those are few among others that
 * were not.
 */
static double slow_fragments(const struct evidence_input *input, const struct tally_series *entry)
{
	double greatest = entry->longest - entry->ref / fmax(entry->n, 1);
	double slow = fmin(entry->n, entry->lost / fmax(1, greatest));

	if (entry->n >= MANY_FRAGMENTS)
		return slow;
	if (slow < (slow < SURE_FRAGMENTS ? FEW_SHARE : SURE_SHARE) * entry->n || by_chance(input, entry, slow))
		return fmin(slow, 1);
	return slow;
}

double alone__repeated(const struct variance *variance, const struct evidence_input *input)
{
	const struct tally *tally = &variance->total;
	double *slow = calloc(input->job->row_count + 1, sizeof(*slow));
	double *lost = calloc(input->job->row_count + 1, sizeof(*lost));
	double repeated = 0, all = 0;

	for (size_t i = 0; slow && lost && i < tally->series_count; i++) {
		const struct tally_series *entry = &tally->series[i];
		const struct series *series = &input->series->series[entry->series];

		if (series->class != VAPRO_COMPUTATION || entry->lost <= 0)
			continue;
		lost[series->row] += entry->lost;
		slow[series->row] = fmax(slow[series->row], slow_fragments(input, entry));
	}
	for (size_t row = 0; slow && lost && row < input->job->row_count; row++) {
		all += lost[row];
		repeated += slow[row] >= REPEATED ? lost[row] : 0;
	}
	free(slow);
	free(lost);
	return all > 0 ? repeated / all : 0;
}
