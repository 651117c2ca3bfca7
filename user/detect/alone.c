// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/alone.h"

#include <math.h>
#include <stdlib.h>

#define AT_ONCE 5	  /* bins between two beginnings that may have one cause */
#define MOVED_ROWS 3	  /* so many rows on several places changed at once: that is the program */
#define LIGHTER 0.95	  /* of what it should take, or less: a row has less to do */
#define LIGHTER_SHARE 0.5 /* of a loss that others were spared */
#define REPEATED 1.6	  /* fragments as slow as the slowest: more than one */
#define MANY_FRAGMENTS 20 /* of a state: outliers are few among them */
#define SURE_FRAGMENTS 3  /* so many slow ones may be a smaller part of all */
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

/* What a row was spared in the time of a variance, ns; 0 where it had as much to do as ever. */
static double spared(const struct variance *variance, const struct evidence_input *input, uint32_t row)
{
	double dur = 0, lost = 0;

	for (uint64_t bin = variance->begin; bin < variance->end; bin++) {
		struct cell cell;

		if (!heatmap__has(input->map, bin))
			continue;
		cell = heatmap__cell(input->map, row, bin, VAPRO_COMPUTATION);
		dur += cell__dur(&cell);
		lost += cell__lost(&cell);
	}
	return dur < LIGHTER * (dur - lost) ? -lost : 0;
}

bool alone__moved(const struct variance *variance, const struct variance_book *book, const struct evidence_input *input)
{
	unsigned char *in = calloc(input->job->row_count + 1, 1);
	const char *host = NULL;
	bool several = false;
	double lighter = 0;
	size_t rows = 0;

	/* Out of memory nothing is confirmed. */
	if (!in)
		return true;
	for (size_t i = 0; i < book->count; i++) {
		const struct variance *other = &book->variances[i];

		if (!silent(other, input->config) || !at_once(variance, other))
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
		lighter += in[row] ? 0 : spared(variance, input, row);
	free(in);
	return (rows >= MOVED_ROWS && several) || lighter >= LIGHTER_SHARE * variance->total.lost[VAPRO_COMPUTATION];
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
 * How many fragments of a state were as slow as the slowest, by their loss; 0 where those are few among others that
 * were not.
 */
static double slow_fragments(const struct tally_series *entry)
{
	double greatest = entry->longest - entry->ref / fmax(entry->n, 1);
	double slow = fmin(entry->n, entry->lost / fmax(1, greatest));

	if (entry->n >= MANY_FRAGMENTS)
		return slow;
	return slow >= (slow < SURE_FRAGMENTS ? FEW_SHARE : SURE_SHARE) * entry->n ? slow : fmin(slow, 1);
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
		slow[series->row] = fmax(slow[series->row], slow_fragments(entry));
	}
	for (size_t row = 0; slow && lost && row < input->job->row_count; row++) {
		all += lost[row];
		repeated += slow[row] >= REPEATED ? lost[row] : 0;
	}
	free(slow);
	free(lost);
	return all > 0 ? repeated / all : 0;
}
