// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/sensing.h"

#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sensing__clear(struct sensing *sensing)
{
	free(sensing->rows);
	free(sensing->ends);
	*sensing = (struct sensing){0};
}

size_t sensing__bytes(const struct sensing *sensing)
{
	return sensing->row_capacity * sizeof(*sensing->rows);
}

int sensing__begin(struct sensing *sensing, size_t rows, uint64_t begin, uint64_t end)
{
	size_t cells = rows * (size_t)(end - begin);

	free(sensing->ends);
	sensing->ends = calloc(cells ? cells : 1, sizeof(*sensing->ends));
	if (!sensing->ends || grow(&sensing->rows, &sensing->row_capacity, rows, sizeof(*sensing->rows)))
		return -ENOMEM;
	while (sensing->row_count < rows)
		sensing->rows[sensing->row_count++] = (struct sensing_row){0};
	sensing->begin = begin;
	sensing->end = end;
	return 0;
}

/* Counts intervals between ends of judged fragments, each so long. */
static void count(struct result_sensing *sum, uint64_t n, double ns)
{
	static const double most_ns[SENSING_INTERVALS - 1] = {1e5, 1e7, 1e9};
	int class = 0;

	while (class < SENSING_INTERVALS - 1 && ns >= most_ns[class])
		class ++;
	sum->intervals[class] += n;
}

/* Notes that no judged fragment of a rank ended for so many bins. */
static void note_unseen(struct result_sensing *sum, uint64_t bins, int32_t rank)
{
	double seconds = (double)bins * VAPRO_BIN_NS / 1e9;

	if (seconds <= sum->unseen_s)
		return;
	sum->unseen_s = seconds;
	sum->rank = rank;
}

/* Adds a rank that was there in bins [from, to). */
static void add_rank(struct sensing *sensing, uint32_t row, int32_t rank, uint64_t from, uint64_t to,
		     struct result_sensing *sum)
{
	const uint32_t *ends = sensing->ends + row * (sensing->end - sensing->begin);
	struct sensing_row *own = &sensing->rows[row];
	uint64_t last = own->last ? own->last - 1 : from;

	/* between two ends in bins a and b lie b - a bins, give or take one */
	for (uint64_t bin = from < sensing->begin ? sensing->begin : from; bin < to; bin++) {
		uint64_t n = ends[bin - sensing->begin];

		if (!n)
			continue;
		if (own->last && bin > last + 1) {
			count(sum, 1, (double)(bin - last) * VAPRO_BIN_NS);
			count(sum, n - 1, VAPRO_BIN_NS / (double)n);
		} else {
			count(sum, n, VAPRO_BIN_NS / (double)n);
		}
		note_unseen(sum, bin > last ? bin - last : 1, rank);
		last = bin;
		own->last = bin + 1;
		sum->fragments += (double)n;
	}
	if (to > last + 1)
		note_unseen(sum, to - last - (own->last != 0), rank);
}

void sensing__end(struct sensing *sensing, const struct stg_job *job, uint64_t begin_ns, uint64_t end_ns)
{
	struct result_sensing sum = {.rank = -1};

	for (uint32_t row = 0; row < job->row_count && row < sensing->row_count; row++) {
		const struct stg_row *at = &job->rows[row];
		uint64_t from = at->from_ns, to = at->to_ns && at->to_ns < end_ns ? at->to_ns : end_ns;
		uint64_t to_bin = (to + VAPRO_BIN_NS - 1) / VAPRO_BIN_NS;

		if (at->leader != row || !from || to <= from || to <= begin_ns)
			continue;
		add_rank(sensing, row, at->rank, from / VAPRO_BIN_NS, to_bin < sensing->end ? to_bin : sensing->end,
			 &sum);
		sum.seconds += (double)(to - (from > begin_ns ? from : begin_ns)) / 1e9;
	}
	free(sensing->ends);
	sensing->ends = NULL;
	sensing->sum = sum;
}

static const struct archive_column row_columns[] = {
    ARCHIVE_ONE(struct sensing_row, last),
};
static const struct archive_table row_table = ARCHIVE_TABLE("sensing rows", struct sensing_row, row_columns);

void sensing__archive(struct archive *archive, struct sensing *sensing, size_t rows)
{
	archive__rows(archive, &row_table, &sensing->rows, &sensing->row_count, &sensing->row_capacity);
	if (!archive__reads(archive) || archive__error(archive))
		return;
	archive__check(archive, sensing->row_count <= rows, "ranks that a job does not have were judged");
	for (size_t i = 0; i < sensing->row_count && !archive__error(archive); i++)
		archive__check(archive, sensing->rows[i].last <= UINT64_MAX / VAPRO_BIN_NS,
			       "a rank was judged at an impossible time");
}
