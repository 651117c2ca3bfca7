// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/alone.h"

#include "model/judgement.h"

#include <math.h>
#include <stdlib.h>

#define REPEATED 1.6	/* fragments as slow as the slowest: more than one */
#define SURE_IN_SIZES 5 /* so many slow ones of several sizes are as sure as several of one */
#define FEW_SHARE 0.6	/* of few fragments of a state: so many slow ones are no outliers ... */
#define SURE_SHARE 0.35 /* ... and of three slow ones or more */

static bool silent(const struct variance *variance, const struct vapro_config *config)
{
	const struct tally *tally = &variance->total;

	return variance->matched && variance->has[VAPRO_COMPUTATION] && !variance->waiting && !variance->path &&
	       tally->cpu[VAPRO_COMPUTATION] + tally->frequency <
		   config->evidence_share * tally->lost[VAPRO_COMPUTATION];
}

static bool at_once(const struct onset *onset, const struct variance *other)
{
	uint64_t apart = onset->bin > other->begin ? onset->bin - other->begin : other->begin - onset->bin;

	return apart <= HEATMAP_AT_ONCE;
}

static int compare_doubles(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* The share of a row's computation time that is lost while a variance lasts, as far as the map reaches; NAN: none. */
static double lost_share(const struct variance *variance, const struct heatmap *map, uint32_t row)
{
	double lost = 0, dur = 0;

	for (uint64_t bin = variance->begin; bin < variance->end; bin++) {
		struct cell cell;

		if (!heatmap__has(map, bin))
			continue;
		cell = heatmap__cell(map, row, bin, VAPRO_COMPUTATION);
		lost += cell__lost(&cell);
		dur += cell__dur(&cell);
	}
	return dur > 0 ? lost / dur : NAN;
}

/*
 * Whether the median of the other rows lost half as much of its time: where all get slower together, one of them is
 * the first below the threshold, and is not slow alone.
 */
static bool common(const struct variance *variance, const struct evidence_input *input)
{
	size_t rows = input->job->row_count, known = 0, own = 0;
	unsigned char *in = calloc(rows + 1, 1);
	double *shares = calloc(rows + 1, sizeof(*shares));
	bool is = false;
	double sum = 0;

	if (!in || !shares)
		goto cleanup;
	for (size_t k = 0; k < variance->row_count; k++)
		in[variance->rows[k]] = 1;
	for (uint32_t row = 0; row < rows; row++) {
		double share = lost_share(variance, input->map, row);

		if (isnan(share))
			continue;
		if (!in[row])
			shares[known++] = share;
		sum += in[row] ? share : 0;
		own += in[row];
	}
	if (known && own) {
		qsort(shares, known, sizeof(*shares), compare_doubles);
		is = shares[known / 2] >= SHARE_MOST * sum / (double)own;
	}
cleanup:
	free(in);
	free(shares);
	return is;
}

enum alone alone__moved(struct variance *variance, const struct onset *onset, const struct variance_book *book,
			const struct evidence_input *input)
{
	unsigned char *in = calloc(input->job->row_count + 1, 1);
	const char *host = NULL;
	bool several = false;
	enum alone is = ALONE_NOT_MOVED;
	size_t rows = 0, alive = 0;

	if (variance->lone) {
		free(in);
		return ALONE_NOT_MOVED;
	}
	/* Out of memory nothing is confirmed. */
	if (!in)
		return ALONE_MOVED;
	for (size_t i = 0; i < book->count; i++) {
		const struct variance *other = &book->variances[i];

		if ((other != variance && !at_once(onset, other)) || !silent(other, input->config))
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
	if (rows > 1 && (double)rows >= SHARE_NEARLY_ALL * (double)alive)
		is = ALONE_ALL;
	else if (rows >= LEAST_REPEATED && several)
		is = ALONE_MOVED;
	else if (onset->known)
		variance->moved = onset->sharp;
	if (is == ALONE_NOT_MOVED && variance->moved)
		is = ALONE_MOVED;
	if (is == ALONE_NOT_MOVED && common(variance, input))
		is = ALONE_ALL;
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
	return others >= in && (double)variance->row_count >= SHARE_OF_PLACE * (double)in;
}

bool alone__place(const struct variance *variance, const struct evidence_input *input)
{
	return variance->row_count > 1 && (is_place(variance, input, false) || is_place(variance, input, true));
}

/*
 * Whether so many slow fragments of an entry are chance: with the share of fragments of the workload that are as slow
 * on any rank, one such coincidence is expected in the run.
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
	return all * ways * pow(above / all, slow) > CHANCE_MOST;
}

/*
 * The number of fragments of a state that were as slow as the slowest, by their loss; at most 1 where these are few
 * among others.
 */
static double slow_fragments(const struct evidence_input *input, const struct tally_series *entry, bool place)
{
	double greatest = entry->longest - entry->ref / fmax(entry->n, 1);
	double slow = fmin(entry->n, entry->lost / fmax(1, greatest));

	if (entry->n >= LEAST_FRAGMENTS)
		return slow;
	/* what takes seconds is the mean of much: a stall does not make it slow by a fifth */
	if (entry->ref >= LONG_NS * entry->n && (place || !by_chance(input, entry, slow)))
		return fmax(slow, REPEATED);
	if (slow < (slow < LEAST_REPEATED ? FEW_SHARE : SURE_SHARE) * entry->n || by_chance(input, entry, slow))
		return fmin(slow, 1);
	return slow;
}

/* The slow fragments of a row in one size of a state. */
struct slow_part {
	uint32_t row, state;
	double slow, lost;
};

static int compare_parts(const void *a, const void *b)
{
	const struct slow_part *left = a, *right = b;

	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->state > right->state) - (left->state < right->state);
}

/*
 * Sums the loss of parts, sorted: of all rows, and of rows with several slow fragments of one size, or with so many in
 * the sizes of one state. Returns the share of the second.
 */
static double repeated_share(const struct slow_part *parts, size_t count, double in_sizes)
{
	double repeated = 0, all = 0, lost = 0, slow = 0, most = 0;

	for (size_t i = 0; i < count; i++) {
		lost += parts[i].lost;
		slow += parts[i].slow;
		most = fmax(most, fmax(parts[i].slow, slow * REPEATED / in_sizes));
		if (i + 1 < count && parts[i + 1].row == parts[i].row) {
			slow = parts[i + 1].state == parts[i].state ? slow : 0;
			continue;
		}
		all += lost;
		repeated += most >= REPEATED ? lost : 0;
		lost = slow = most = 0;
	}
	return all > 0 ? repeated / all : 0;
}

double alone__repeated(const struct variance *variance, const struct evidence_input *input)
{
	const struct tally *tally = &variance->total;
	struct slow_part *parts = calloc(tally->series_count + 1, sizeof(*parts));
	bool place = alone__place(variance, input);
	size_t count = 0;
	double share;

	for (size_t i = 0; parts && i < tally->series_count; i++) {
		const struct tally_series *entry = &tally->series[i];
		const struct series *series = &input->series->series[entry->series];

		if (series->class == VAPRO_COMPUTATION && entry->lost > 0)
			parts[count++] = (struct slow_part){series->row, series->state,
							    slow_fragments(input, entry, place), entry->lost};
	}
	if (count)
		qsort(parts, count, sizeof(*parts), compare_parts);
	/* outliers in several sizes are independent on one row, and hardly on all rows of a place */
	share = repeated_share(parts, count, place ? REPEATED : SURE_IN_SIZES);
	free(parts);
	return share;
}

/* Whether the rows of one variance, in the order of their places, are rows of another one as well. */
static bool within(const struct variance *inner, const struct variance *outer, const struct stg_job *job)
{
	size_t at = 0;

	for (size_t i = 0; i < inner->row_count; i++) {
		while (at < outer->row_count && job->place[outer->rows[at]] < job->place[inner->rows[i]])
			at++;
		if (at == outer->row_count || outer->rows[at] != inner->rows[i])
			return false;
	}
	return inner->row_count > 0;
}

static uint64_t common_time(const struct variance *a, const struct variance *b)
{
	uint64_t begin = a->begin > b->begin ? a->begin : b->begin, end = a->end < b->end ? a->end : b->end;

	return end > begin ? end - begin : 0;
}

bool alone__fixed_work(const struct variance *variance, const struct variance_book *book, const struct stg_job *job)
{
	for (size_t i = 0; i < book->count; i++) {
		const struct variance *other = &book->variances[i];

		if (other->matched && other->confirmed && !other->waiting &&
		    (other->path || other->class == VAPRO_IO) &&
		    (double)other->row_count >= SHARE_MOST * (double)variance->row_count &&
		    (double)common_time(variance, other) >= SHARE_MOST * (double)(variance->end - variance->begin) &&
		    within(other, variance, job))
			return true;
	}
	return false;
}
