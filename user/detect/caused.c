/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/caused.h"

#include "base/exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ROUNDS 4 /* of a division among losses of which some have reached their bound */

/* What a part of a variance's loss may explain in a bin, ns. */
struct due {
	double lost;   /* of all rows */
	double weight; /* the same beyond what the rows waited themselves */
	double used;   /* waiting that it explains already */
};

/* What a variance lost in a bin. */
struct dues {
	struct dues *next; /* of the same bin */
	struct variance *variance;
	struct due parts[TALLY_PARTS];
};

/* A variance that may hold others up; dues: by bin from `begin` on, NULL where it lost nothing. */
struct debtor {
	struct variance *variance;
	uint64_t begin, end;
	struct dues **dues;
};

struct division {
	struct debtor *debtors; /* ascending by the variance's id */
	size_t count;
	uint64_t begin, end;
	struct dues **bins; /* first dues of each bin in [begin, end); they own them */
	double others;	    /* rows that can wait for a row */
	const struct parts *window;
};

static struct dues *dues_in(const struct division *division, uint64_t bin)
{
	return division->bins[bin - division->begin];
}

static double left_of(const struct division *division, const struct due *due)
{
	return fmax(0, division->others * due->lost - due->used);
}

static bool can_hold_up(const struct variance *variance, const struct heatmap *map)
{
	return !variance->waiting && variance->matched && variance->begin < map->end && variance->end > map->begin &&
	       variance->begin < variance->end;
}

/* Makes room for the dues of all variances that may hold others up. */
static int begin(struct division *division, struct variance_book *book, const struct heatmap *map)
{
	division->begin = map->begin;
	division->end = map->end;
	division->bins = calloc(map->end - map->begin + 1, sizeof(struct dues *));
	division->debtors = calloc(book->count + 1, sizeof(*division->debtors));
	if (!division->debtors || !division->bins)
		return -ENOMEM;
	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];
		struct debtor *debtor = &division->debtors[division->count];

		if (!can_hold_up(variance, map))
			continue;
		variance->others = division->others;
		debtor->variance = variance;
		debtor->begin = variance->begin < map->begin ? map->begin : variance->begin;
		debtor->end = variance->end > map->end ? map->end : variance->end;
		debtor->dues = calloc(debtor->end - debtor->begin, sizeof(struct dues *));
		if (!debtor->dues)
			return -ENOMEM;
		division->count++;
	}
	return 0;
}

static void clear(struct division *division)
{
	for (size_t i = 0; i < division->count; i++)
		free(division->debtors[i].dues);
	for (uint64_t bin = division->begin; division->bins && bin < division->end; bin++) {
		for (struct dues *dues = dues_in(division, bin), *next; dues; dues = next) {
			next = dues->next;
			free(dues);
		}
	}
	free(division->debtors);
	free(division->bins);
}

static struct debtor *debtor_of(const struct division *division, uint32_t id)
{
	size_t low = 0, high = division->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (division->debtors[middle].variance->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < division->count && division->debtors[low].variance->id == id ? &division->debtors[low] : NULL;
}

/* The dues of a debtor in a bin of its own. Returns NULL without memory. */
static struct dues *dues_of(const struct division *division, struct debtor *debtor, uint64_t bin)
{
	struct dues **own = &debtor->dues[bin - debtor->begin], **first = &division->bins[bin - division->begin];

	if (!*own) {
		*own = calloc(1, sizeof(**own));
		if (!*own)
			return NULL;
		(*own)->variance = debtor->variance;
		(*own)->next = *first;
		*first = *own;
	}
	return *own;
}

/* The part of a row's loss in a bin by which it came later than it waited for others, 0..1. */
static double net_share(const struct heatmap *map, uint32_t row, uint64_t bin)
{
	struct cell computation = heatmap__cell(map, row, bin, VAPRO_COMPUTATION);
	struct cell io = heatmap__cell(map, row, bin, VAPRO_IO);
	double lost = fmax(0, cell__lost(&computation)) + fmax(0, cell__lost(&io));

	return lost > 0 ? fmax(0, 1 - heatmap__late(map, row, bin) / lost) : 0;
}

/* The first bin whose waiting a part of a bundle may explain. */
static uint64_t first_bin(const struct parts *window, const struct part *part)
{
	const struct bundle_rec *rec = part->rec;
	/* waiting before the view was divided, but for what arrives this late */
	bool late = rec->is_new && rec->n == 1 && !rec->account && !(rec->flags & VAPRO_BUNDLE_OPEN);

	return late || part->begin >= window->view ? part->begin : window->view;
}

/* Adds what a bundle lost to the dues of its bins, and moves `from` to the first of these. Returns 0 or -ENOMEM. */
static int add_part(const struct division *division, const struct heatmap *map, const struct series *series,
		    const struct part *part, uint64_t *from)
{
	struct debtor *debtor = part->guest ? NULL : debtor_of(division, part->variance);
	uint64_t bin = first_bin(division->window, part), end = part->end;
	double lost[TALLY_PARTS];

	if (!debtor)
		return 0;
	tally__parts(part->rec, series->class, lost);
	end = end < debtor->end ? end : debtor->end;
	for (bin = bin < debtor->begin ? debtor->begin : bin; bin < end; bin++) {
		double share = bundle_rec__share(part->rec, bin), net;
		struct dues *dues = share > 0 ? dues_of(division, debtor, bin) : NULL;

		if (share <= 0)
			continue;
		if (!dues)
			return -ENOMEM;
		*from = bin < *from ? bin : *from;
		net = net_share(map, series->row, bin);
		for (int i = 0; i < TALLY_PARTS; i++) {
			dues->parts[i].lost += exact__ns(lost[i] * share);
			dues->parts[i].weight += exact__ns(lost[i] * share * net);
		}
	}
	return 0;
}

/* Gives waiting to a part of dues. Returns what it takes of it. */
static double give(const struct division *division, struct dues *dues, int part, double ns, uint64_t waited_in)
{
	struct due *due = &dues->parts[part];
	struct variance *variance = dues->variance;
	struct tally *tally = waited_in < division->window->retire ? &variance->retiring : &variance->staying;

	ns = exact__ns(fmin(ns, left_of(division, due)));
	due->used += ns;
	tally->caused[part] += ns;
	return ns;
}

/* What a due counts in a division: by its weight, or by what it may still explain. */
static double count_of(const struct division *division, const struct due *due, bool by_weight)
{
	double left = left_of(division, due);

	return left <= 0 ? 0 : by_weight ? fmax(0, due->weight) : left;
}

static double count_all(const struct division *division, const struct dues *dues, bool by_weight)
{
	double all = 0;

	for (; dues; dues = dues->next) {
		for (int part = 0; part < TALLY_PARTS; part++)
			all += count_of(division, &dues->parts[part], by_weight);
	}
	return all;
}

/* Divides waiting among the dues of a bin. Returns what is left. */
static double divide(const struct division *division, uint64_t bin, bool by_weight, double waited, uint64_t waited_in)
{
	for (int round = 0; round < ROUNDS && waited >= 1; round++) {
		double all = count_all(division, dues_in(division, bin), by_weight), rest = waited;

		for (struct dues *dues = all > 0 ? dues_in(division, bin) : NULL; dues; dues = dues->next) {
			for (int part = 0; part < TALLY_PARTS; part++) {
				double count = count_of(division, &dues->parts[part], by_weight);

				if (count > 0)
					rest -= give(division, dues, part, waited * count / all, waited_in);
			}
		}
		if (rest >= waited)
			break;
		waited = rest;
	}
	return waited;
}

static double waited_in(const struct heatmap *map, uint64_t bin)
{
	double waited = 0;

	for (size_t row = 0; row < map->row_count; row++)
		waited += heatmap__late(map, (uint32_t)row, bin);
	return waited - heatmap__bin(map, bin)->divided;
}

static void divide_bin(const struct division *division, struct heatmap *map, uint64_t bin, uint32_t reach)
{
	double waited = exact__ns(waited_in(map, bin)), left;

	if (waited < 1)
		return;
	left = divide(division, bin, true, waited, bin);
	left = divide(division, bin, false, left, bin);
	for (uint64_t back = 1; back <= reach && bin >= map->begin + back && left >= 1; back++)
		left = divide(division, bin - back, false, left, bin);
	if (bin < division->window->retire)
		heatmap__bin(map, bin)->divided += waited - left;
}

/* Counts the rows that lived in the view. */
static double alive(const struct stg_job *job, const struct parts *window)
{
	double count = 0;

	for (size_t row = 0; row < job->row_count; row++) {
		const struct stg_row *at = &job->rows[row];

		count += at->from_ns && at->from_ns < window->end * VAPRO_BIN_NS &&
			 (!at->to_ns || at->to_ns > window->view * VAPRO_BIN_NS);
	}
	return count;
}

int caused__divide(struct variance_book *book, struct heatmap *map, const struct stg_job *job,
		   const struct series_book *series, const struct parts *parts, uint32_t reach)
{
	struct division division = {.window = parts, .others = fmax(0, alive(job, parts) - 1)};
	uint64_t from = parts->view;
	int error = begin(&division, book, map);

	for (size_t i = 0; !error && i < parts->count; i++)
		error = add_part(&division, map, &series->series[parts->items[i].rec->series], &parts->items[i], &from);
	from = from < map->begin ? map->begin : from;
	for (uint64_t bin = from; !error && division.count && bin < map->end; bin++)
		divide_bin(&division, map, bin, reach);
	clear(&division);
	return error;
}

double caused__by_part(const struct variance *variance, enum tally_part part)
{
	return fmin(variance->total.caused[part], variance->others * fmax(0, variance__part(variance, part)));
}

double caused__by(const struct variance *variance)
{
	double sum = 0;

	for (int part = 0; part < TALLY_PARTS; part++)
		sum += caused__by_part(variance, (enum tally_part)part);
	return sum;
}
