/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Culprits hold the others up: least wait and most lost computation, over all rows of the job while a variance
 * lasted. Where no row lost anything, rows that entered operations last are named instead. There may be thousands of
 * variances, but few stretches of time: rows are summed once for all variances that begin in one bin, and looked
 * through once for all that have the same end too.
 */
#include "analysis/result.h"

#include "diagnose/advice.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CULPRITS_MAX 5
#define CANDIDATES 32	 /* candidates of a stretch, for variances of any loss */
#define WORTH_NAMING 0.1 /* share of a variance's loss */
#define LAST_LIKE 0.3	 /* part of the lateness of the row that was late by most: rows that are named, too ... */
#define LAST_MOSTLY 0.7	 /* ... where they have this share of all lateness ... */
#define LAST_FEW 4	 /* ... and are one row in so many at most */

/* Sums of a row over the bins of a stretch, ns. */
struct row_sums {
	double computation, io, wait;
	uint64_t late; /* in operations that it entered last, */
	uint64_t last; /* of which there are so many */
};

struct candidate {
	uint32_t row;
	double lost, wait; /* s */
};

static int compare_emitted(const void *a, const void *b)
{
	const struct variance *left = (*(struct emitted_variance *const *)a)->variance;
	const struct variance *right = (*(struct emitted_variance *const *)b)->variance;

	if (left->begin != right->begin)
		return left->begin < right->begin ? -1 : 1;
	if (left->end != right->end)
		return left->end < right->end ? -1 : 1;
	return (left->id > right->id) - (left->id < right->id);
}

static void add_bin(const struct builder *builder, struct row_sums *sums, uint64_t bin, uint64_t *operations)
{
	const struct heatmap *map = &builder->job->map;
	const struct heatmap_arrivals *arrivals = &heatmap__bin(map, bin)->arrivals;

	*operations += arrivals->operations;
	if (arrivals->last) {
		sums[arrivals->row].late += arrivals->late_ns;
		sums[arrivals->row].last += arrivals->last;
	}
	for (uint32_t row = 0; row < builder->about->row_count; row++) {
		struct cell computation = heatmap__cell(map, row, bin, VAPRO_COMPUTATION);
		struct cell io = heatmap__cell(map, row, bin, VAPRO_IO);

		sums[row].computation += cell__lost(&computation);
		sums[row].io += fmax(0, cell__lost(&io));
		sums[row].wait += heatmap__late(map, row, bin);
	}
}

static bool comes_before(const struct builder *builder, const struct candidate *a, const struct candidate *b)
{
	double left = a->lost - a->wait, right = b->lost - b->wait;

	if (left != right)
		return left > right;
	return builder->about->place[a->row] < builder->about->place[b->row];
}

/* Finds the rows whose loss exceeds their waiting most, most first. */
static uint32_t find_candidates(const struct builder *builder, const struct row_sums *sums, struct candidate *found)
{
	uint32_t count = 0;

	for (uint32_t row = 0; row < builder->about->row_count; row++) {
		struct candidate own = {.row = row,
					/* Time stuck in IO holds others up just as well. */
					.lost = (fmax(0, sums[row].computation) + sums[row].io) / 1e9,
					.wait = sums[row].wait / 1e9};
		uint32_t at;

		if (own.lost <= own.wait || (count == CANDIDATES && !comes_before(builder, &own, &found[count - 1])))
			continue;
		at = count < CANDIDATES ? count++ : count - 1;
		for (; at && comes_before(builder, &own, &found[at - 1]); at--)
			found[at] = found[at - 1];
		found[at] = own;
	}
	return count;
}

static int compare_ranks(const void *a, const void *b)
{
	const int32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Fills the words of the ranks that entered last, each of which may have several rows. Returns 0 or -ENOMEM. */
static int name_ranks(const struct builder *builder, int32_t *ranks, uint32_t count, struct result_entered_last *last)
{
	struct result_variance named = {.ranks = ranks};
	char who[128];

	qsort(ranks, count, sizeof(*ranks), compare_ranks);
	for (uint32_t i = 0; i < count; i++) {
		if (!i || ranks[i] != ranks[named.rank_count - 1])
			ranks[named.rank_count++] = ranks[i];
	}
	advice__who(&named, false, who, sizeof(who));
	last->ranks = ranks;
	last->rank_count = named.rank_count;
	last->who = arena__copy(&builder->context->arena, who);
	return last->who ? 0 : -ENOMEM;
}

/* Names the rows that entered last where they are few, and late by most of what all are. Returns 0 or -ENOMEM. */
static int name_last(const struct builder *builder, const struct row_sums *sums, uint64_t operations,
		     struct result_entered_last *last)
{
	size_t rows = builder->about->row_count;
	uint64_t all = 0, most = 0, late = 0;
	uint32_t count = 0;
	int32_t *ranks;

	*last = (struct result_entered_last){.of = operations};
	for (size_t row = 0; row < rows; row++) {
		all += sums[row].late;
		most = sums[row].late > most ? sums[row].late : most;
	}
	for (size_t row = 0; row < rows; row++) {
		if (!most || (double)sums[row].late < LAST_LIKE * (double)most)
			continue;
		count++;
		late += sums[row].late;
		last->operations += sums[row].last;
	}
	if (!count || (double)late < LAST_MOSTLY * (double)all || (count > 1 && count > rows / LAST_FEW))
		return 0;
	ranks = result__take(builder, count, sizeof(*ranks));
	if (!ranks)
		return -ENOMEM;
	last->late_seconds = (double)late / (double)last->operations / 1e9;
	count = 0;
	for (size_t row = 0; row < rows; row++) {
		if ((double)sums[row].late >= LAST_LIKE * (double)most)
			ranks[count++] = builder->about->rows[row].rank;
	}
	return name_ranks(builder, ranks, count, last);
}

/* Whether a variance is waiting for late ranks that no loss explains. */
static bool waits_for_unknown(const struct emitted_variance *emitted)
{
	const struct variance *variance = emitted->variance;

	return variance->waiting && variance->late >= variance->transfer && !variance->effect_of &&
	       !emitted->culprit_count;
}

static int name_culprits(const struct builder *builder, const struct candidate *found, uint32_t count,
			 struct emitted_variance *emitted)
{
	emitted->culprits = result__take(builder, CULPRITS_MAX, sizeof(*emitted->culprits));
	if (!emitted->culprits)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && emitted->culprit_count < CULPRITS_MAX; i++) {
		const struct stg_row *row = &builder->about->rows[found[i].row];

		if (found[i].lost <= WORTH_NAMING * emitted->lost_seconds)
			continue;
		emitted->culprits[emitted->culprit_count++] = (struct result_culprit){
		    .rank = row->rank,
		    .thread = result__several_rows(builder->about, row) ? row->thread : -1,
		    .lost_seconds = found[i].lost,
		    .wait_seconds = found[i].wait,
		};
	}
	return 0;
}

/* Names the culprits of all variances that begin in the bin of the first one. */
static int name_all(const struct builder *builder, struct emitted_variance *const *emitted, size_t count,
		    struct row_sums *sums)
{
	struct candidate found[CANDIDATES];
	uint64_t bin = emitted[0]->variance->begin, operations = 0;
	uint32_t found_count = 0;

	memset(sums, 0, builder->about->row_count * sizeof(*sums));
	if (bin < builder->job->map.begin)
		bin = builder->job->map.begin;
	for (size_t i = 0; i < count; i++) {
		uint64_t end = emitted[i]->variance->end;

		for (; bin < end && bin < builder->job->map.end; bin++)
			add_bin(builder, sums, bin, &operations);
		if (!i || emitted[i - 1]->variance->end != end)
			found_count = find_candidates(builder, sums, found);
		if (name_culprits(builder, found, found_count, emitted[i]))
			return -ENOMEM;
		if (waits_for_unknown(emitted[i]) && name_last(builder, sums, operations, &emitted[i]->entered_last))
			return -ENOMEM;
	}
	return 0;
}

int result__culprits(const struct builder *builder, struct emitted_variance *emitted, size_t count)
{
	struct row_sums *sums = calloc(builder->about->row_count + 1, sizeof(*sums));
	struct emitted_variance **sorted = calloc(count + 1, sizeof(*sorted));
	int error = -ENOMEM;

	if (!sums || !sorted)
		goto cleanup;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &emitted[i];
	if (count)
		qsort(sorted, count, sizeof(*sorted), compare_emitted);
	error = 0;
	for (size_t i = 0, next; i < count && !error; i = next) {
		for (next = i + 1; next < count && sorted[next]->variance->begin == sorted[i]->variance->begin;)
			next++;
		error = name_all(builder, &sorted[i], next - i, sums);
	}
cleanup:
	free(sums);
	free(sorted);
	return error;
}
