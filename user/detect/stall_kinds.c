// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/stall_kinds.h"

#include "base/grow.h"
#include "detect/stall_modes.h"
#include "model/histogram.h"
#include "model/judgement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A mode of one row. */
struct row_mode {
	uint32_t row;
	double ns; /* mean excess */
	struct stall_mode mode;
};

struct row_modes {
	struct row_mode *items;
	size_t count, capacity;
};

static double mean(const struct stall_mode *mode)
{
	return (double)mode->ns / (double)mode->n;
}

static bool alike(double a, double b)
{
	return a <= RATIO_ALIKE * b && b <= RATIO_ALIKE * a;
}

static int compare_modes(const void *a, const void *b)
{
	const struct row_mode *left = a, *right = b;

	if (left->ns != right->ns)
		return left->ns < right->ns ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

static bool costs(const struct stall_view *view, uint32_t row, uint64_t ns)
{
	return view->observed_ns[row] > 0 && (double)ns >= view->share * view->observed_ns[row];
}

/* Lists the modes of all rows that cost their row enough, by length. Returns 0 or -ENOMEM. */
static int list_modes(const struct stalls *stalls, const struct stall_view *view, enum vapro_class class,
		      struct row_modes *modes)
{
	struct stall_mode found[STALL_MODES];

	for (uint32_t row = 0; row < view->job->row_count; row++) {
		const struct stall_row *at = stalls__row(stalls, row, class);
		size_t count = at ? stall_modes__find(at->buckets, at->count, found) : 0;

		for (size_t i = 0; i < count; i++) {
			if (!costs(view, row, found[i].ns))
				continue;
			if (grow(&modes->items, &modes->capacity, modes->count + 1, sizeof(*modes->items)))
				return -ENOMEM;
			modes->items[modes->count++] = (struct row_mode){row, mean(&found[i]), found[i]};
		}
	}
	if (modes->count)
		qsort(modes->items, modes->count, sizeof(*modes->items), compare_modes);
	return 0;
}

/* Sums the buckets of all rows in a class. Returns their number; they are to be freed, NULL when out of memory. */
static struct stall_bucket *sum_rows(const struct stalls *stalls, size_t rows, enum vapro_class class, size_t *count)
{
	struct stall_bucket *sums = calloc(HISTOGRAM_BUCKETS, sizeof(*sums));

	*count = 0;
	if (!sums)
		return NULL;
	for (uint32_t row = 0; row < rows; row++) {
		const struct stall_row *at = stalls__row(stalls, row, class);

		for (size_t i = 0; at && i < at->count; i++) {
			struct stall_bucket *into = &sums[at->buckets[i].index];

			into->n += at->buckets[i].n;
			into->ns += at->buckets[i].ns;
			into->edge_ns += at->buckets[i].edge_ns;
		}
	}
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!sums[i].n)
			continue;
		sums[*count] = sums[i];
		sums[(*count)++].index = i;
	}
	return sums;
}

static void add(struct stall_kind *kinds, size_t *count, const struct stall_kind *kind)
{
	if (*count < STALL_KINDS)
		kinds[(*count)++] = *kind;
}

/* Adds the modes of the sum over all rows that cost some row enough. */
static void add_summed(const struct stalls *stalls, const struct stall_view *view, enum vapro_class class,
		       const struct stall_bucket *sums, size_t sum_count, struct stall_kind *kinds, size_t *count)
{
	struct stall_mode modes[STALL_MODES];
	size_t found = stall_modes__find(sums, sum_count, modes);

	for (size_t i = 0; i < found; i++) {
		struct stall_kind kind = {.class = class,
					  .low = modes[i].low,
					  .high = modes[i].high,
					  .n = modes[i].n,
					  .ns = modes[i].ns,
					  .summed = true};
		bool enough = false;

		for (uint32_t row = 0; row < view->job->row_count && !enough; row++) {
			uint64_t n, ns;

			stall_kinds__of_row(stalls, &kind, row, &n, &ns);
			enough = costs(view, row, ns);
		}
		if (enough && (double)kind.ns >= view->least_ns)
			add(kinds, count, &kind);
	}
}

/* Adds the modes [from, to) of rows as one kind, unless the sum over all rows has it. */
static void add_cluster(const struct row_modes *modes, size_t from, size_t to, const struct stall_view *view,
			enum vapro_class class, size_t summed, struct stall_kind *kinds, size_t *count)
{
	struct stall_kind kind = {.class = class, .low = UINT32_MAX};

	for (size_t i = from; i < to; i++) {
		const struct stall_mode *mode = &modes->items[i].mode;

		kind.low = mode->low < kind.low ? mode->low : kind.low;
		kind.high = mode->high > kind.high ? mode->high : kind.high;
		kind.n += mode->n;
		kind.ns += mode->ns;
	}
	for (size_t i = 0; i < summed; i++) {
		if (alike((double)kinds[i].ns / (double)kinds[i].n, (double)kind.ns / (double)kind.n))
			return;
	}
	if ((double)kind.ns >= view->least_ns)
		add(kinds, count, &kind);
}

static int compare_kinds(const void *a, const void *b)
{
	const struct stall_kind *left = a, *right = b;

	return left->low != right->low ? left->low < right->low ? -1 : 1
				       : (left->high > right->high) - (left->high < right->high);
}

int stall_kinds__find(const struct stalls *stalls, const struct stall_view *view, enum vapro_class class,
		      struct stall_kind *kinds, size_t *count)
{
	struct row_modes modes = {0};
	struct stall_bucket *sums;
	size_t sum_count, summed, from = 0;
	int error;

	*count = 0;
	if (!stalls->count)
		return 0;
	sums = sum_rows(stalls, view->job->row_count, class, &sum_count);
	error = sums ? list_modes(stalls, view, class, &modes) : -ENOMEM;
	if (!error)
		add_summed(stalls, view, class, sums, sum_count, kinds, count);
	summed = *count;
	for (size_t i = 1; !error && i <= modes.count; i++) {
		if (i < modes.count && modes.items[i].ns <= RATIO_ALIKE * modes.items[from].ns)
			continue;
		add_cluster(&modes, from, i, view, class, summed, kinds, count);
		from = i;
	}
	if (*count)
		qsort(kinds, *count, sizeof(*kinds), compare_kinds);
	free(modes.items);
	free(sums);
	return error;
}

/* Whether the stalls of a row are a mode of their own that is of a kind. */
static bool is_mode(const struct stall_row *row, const struct stall_kind *kind)
{
	struct stall_mode modes[STALL_MODES];
	size_t count = stall_modes__find(row->buckets, row->count, modes);

	for (size_t i = 0; i < count; i++) {
		if (modes[i].low <= kind->high && modes[i].high >= kind->low)
			return true;
	}
	return false;
}

void stall_kinds__of_row(const struct stalls *stalls, const struct stall_kind *kind, uint32_t row, uint64_t *n,
			 uint64_t *ns)
{
	const struct stall_row *at = stalls__row(stalls, row, kind->class);

	*n = *ns = 0;
	if (at)
		stall_modes__count(at->buckets, at->count, kind->low, kind->high, n, ns);
	if (!kind->summed && *n && (*n < LEAST_FRAGMENTS || !is_mode(at, kind)))
		*n = *ns = 0;
}

void stall_kinds__sum(const struct stalls *stalls, size_t rows, struct stall_kind *kind)
{
	kind->n = kind->ns = 0;
	for (uint32_t row = 0; row < rows; row++) {
		uint64_t n, ns;

		stall_kinds__of_row(stalls, kind, row, &n, &ns);
		kind->n += n;
		kind->ns += ns;
	}
}

bool stall_kinds__has(const struct stall_kind *kind, const struct stall *stall)
{
	uint32_t index = histogram__index((double)stall->ns);

	return index >= kind->low && index <= kind->high;
}

static const struct archive_column emitted_columns[] = {
    ARCHIVE_ONE(struct stall_emitted, kind.low),    ARCHIVE_ONE(struct stall_emitted, kind.high),
    ARCHIVE_ONE(struct stall_emitted, kind.n),	    ARCHIVE_ONE(struct stall_emitted, kind.ns),
    ARCHIVE_ONE(struct stall_emitted, kind.summed), ARCHIVE_ONE(struct stall_emitted, kind.class),
    ARCHIVE_ONE(struct stall_emitted, id),	    ARCHIVE_ONE(struct stall_emitted, revision),
    ARCHIVE_ONE(struct stall_emitted, emitted_n),   ARCHIVE_ONE(struct stall_emitted, emitted_ns),
    ARCHIVE_ONE(struct stall_emitted, final),
};
static const struct archive_table emitted_table =
    ARCHIVE_TABLE("emitted stalls", struct stall_emitted, emitted_columns);

void stall_kinds__archive(struct archive *archive, struct stall_list *list)
{
	uint64_t count = list->count;

	archive__number(archive, &count);
	if (!archive__check(archive, count <= STALLS_EMITTED, "a job has more kinds of stalls than there may be"))
		return;
	list->count = count;
	archive__array(archive, &emitted_table, list->items, list->count);
	for (size_t i = 0; archive__reads(archive) && i < list->count && !archive__error(archive); i++) {
		const struct stall_emitted *at = &list->items[i];

		archive__check(archive,
			       at->kind.class < VAPRO_CLASSES && at->kind.low <= at->kind.high &&
				   at->kind.high < HISTOGRAM_BUCKETS && at->kind.n && at->id && at->revision,
			       "a kind of stalls contradicts itself");
	}
}
