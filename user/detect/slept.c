/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/slept.h"

#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define CALM_BINS (HEATMAP_AROUND_LEAST * 2) /* bins without a loss from which usual sleep is known */

/* The sleep of a row in a bin that no fragment covers, ns. */
struct sleep {
	uint32_t row;
	bool calm; /* no row of the job lost anything in the bin */
	uint64_t bin;
	double ns;
};

static int compare(const void *a, const void *b)
{
	const struct sleep *left = a, *right = b;

	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	if (left->calm != right->calm)
		return left->calm ? -1 : 1;
	return (left->ns > right->ns) - (left->ns < right->ns);
}

static bool is_unseen(const struct account_record *record)
{
	return (double)record->seen_ns + (double)record->past_seen_ns < SHARE_MEANINGFUL * (double)VAPRO_BIN_NS;
}

/* Whether any row lost something in the bin of a record, which is the first one of its bin; *next: of the next bin. */
static bool has_loss(const struct account *account, const struct vapro_config *config, size_t first, size_t *next)
{
	double time, lost;
	bool any = false;

	for (*next = first; *next < account->count && account->records[*next].bin == account->records[first].bin;
	     ++*next)
		any |= account__is_loss(&account->records[*next], config, &time, &lost);
	return any;
}

/* Adds the sleeps in one bin, records [first, next): those of the threads of a row are one. Returns their number. */
static size_t add_sleeps(const struct account *account, size_t first, size_t next, bool calm, struct sleep *sleeps)
{
	size_t count = 0;

	for (size_t i = first; i < next; i++) {
		const struct account_record *record = &account->records[i];

		if (record->row == SERIES_NONE || record->slept_ns <= 0 || !is_unseen(record))
			continue;
		if (!count || sleeps[count - 1].row != record->row)
			sleeps[count++] = (struct sleep){.row = record->row, .calm = calm, .bin = record->bin};
		sleeps[count - 1].ns += (double)record->slept_ns;
	}
	return count;
}

/* Finds the sleeps in the view. Returns their number; *calm: bins without a loss. */
static size_t find_sleeps(const struct account *account, const struct vapro_config *config, uint64_t view, uint64_t end,
			  struct sleep *sleeps, uint64_t *calm)
{
	size_t count = 0;

	*calm = end - view;
	for (size_t first = 0, next; first < account->count; first = next) {
		bool loss = has_loss(account, config, first, &next);
		uint64_t bin = account->records[first].bin;

		if (bin < view || bin >= end)
			continue;
		*calm -= loss;
		count += add_sleeps(account, first, next, !loss, &sleeps[count]);
	}
	return count;
}

/* Returns the median sleep of a row in calm bins; sleeps: the row's, calm ones first; in other bins it slept little. */
static double usual_of(const struct sleep *sleeps, size_t count, uint64_t calm)
{
	uint64_t known = 0, middle = calm / 2;

	while (known < count && sleeps[known].calm)
		known++;
	return middle < calm - known ? 0 : sleeps[middle - (calm - known)].ns;
}

/* Enters what a row slept beyond its usual sleep. Returns 0 or -ENOMEM. */
static int enter_row(struct heatmap *map, const struct sleep *sleeps, size_t count, uint64_t calm)
{
	double usual = usual_of(sleeps, count, calm);

	for (size_t i = 0; i < count; i++) {
		double ns = fmin(sleeps[i].ns, (double)VAPRO_BIN_NS) - usual;

		if (ns >= ACCOUNT_LEAST_NS &&
		    heatmap__add_wait(map, HEATMAP_OPEN_LATE, sleeps[i].row, sleeps[i].bin, (float)ns))
			return -ENOMEM;
	}
	return 0;
}

int slept__enter(const struct account *account, const struct vapro_config *config, struct heatmap *map, uint64_t view,
		 uint64_t end)
{
	struct sleep *sleeps;
	size_t count;
	uint64_t calm;
	int error = 0;

	if (!account->count || !account->sleeps)
		return 0;
	sleeps = calloc(account->count, sizeof(*sleeps));
	if (!sleeps)
		return -ENOMEM;
	count = find_sleeps(account, config, view, end, sleeps, &calm);
	if (calm < CALM_BINS)
		count = 0;
	qsort(sleeps, count, sizeof(*sleeps), compare);
	for (size_t first = 0, next; first < count && !error; first = next) {
		for (next = first; next < count && sleeps[next].row == sleeps[first].row;)
			next++;
		error = enter_row(map, &sleeps[first], next - first, calm);
	}
	free(sleeps);
	return error;
}
