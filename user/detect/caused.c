/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/caused.h"

#include "base/exact.h"
#include "detect/effect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 4 };  /* of a division: in each, parts reach their bound and leave waiting to others */
#define CALM_LEAST 10 /* bins without a loss from which usual waiting is known */

/* One part of what a variance lost in a bin: the waiting that it may explain, ns. */
struct part_loss {
	double lost;   /* of all rows */
	double weight; /* the same beyond what the rows waited themselves */
	double used;   /* waiting that it explains already */
};

/* What a variance lost in a bin. */
struct bin_loss {
	struct bin_loss *next; /* of the same bin */
	struct variance *variance;
	struct part_loss parts[TALLY_PARTS];
};

/* A variance that may delay other rows; losses: by bin from `begin` on, NULL where it lost nothing. */
struct delayer {
	struct variance *variance;
	uint64_t begin, end;
	struct bin_loss **losses;
};

struct division {
	struct delayer *delayers; /* ascending by the variance's id */
	size_t count;
	uint64_t begin, end;
	struct bin_loss **bins; /* list of the losses in each bin of [begin, end), which own them */
	double others;		/* rows that can wait for a row */
	double usual;		/* waiting of all rows in a bin while none is delayed, ns */
	const struct parts *window;
};

static struct bin_loss *losses_in(const struct division *division, uint64_t bin)
{
	return division->bins[bin - division->begin];
}

static double left_of(const struct division *division, const struct part_loss *at)
{
	return fmax(0, division->others * at->lost - at->used);
}

/* others: rows that can wait for a row. */
static bool can_delay(const struct variance *variance, const struct heatmap *map, double others)
{
	return effect__may_delay(variance, (size_t)others + 1) && variance->matched && variance->begin < map->end &&
	       variance->end > map->begin && variance->begin < variance->end;
}

/* Makes room for the losses of all variances that may delay other rows. */
static int begin(struct division *division, struct variance_book *book, const struct heatmap *map)
{
	division->begin = map->begin;
	division->end = map->end;
	division->bins = calloc(map->end - map->begin + 1, sizeof(struct bin_loss *));
	division->delayers = calloc(book->count + 1, sizeof(*division->delayers));
	if (!division->delayers || !division->bins)
		return -ENOMEM;
	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];
		struct delayer *delayer = &division->delayers[division->count];

		if (!can_delay(variance, map, division->others))
			continue;
		variance->others = division->others;
		delayer->variance = variance;
		delayer->begin = variance->begin < map->begin ? map->begin : variance->begin;
		delayer->end = variance->end > map->end ? map->end : variance->end;
		delayer->losses = calloc(delayer->end - delayer->begin, sizeof(struct bin_loss *));
		if (!delayer->losses)
			return -ENOMEM;
		division->count++;
	}
	return 0;
}

static void clear(struct division *division)
{
	for (size_t i = 0; i < division->count; i++)
		free(division->delayers[i].losses);
	for (uint64_t bin = division->begin; division->bins && bin < division->end; bin++) {
		for (struct bin_loss *loss = losses_in(division, bin), *next; loss; loss = next) {
			next = loss->next;
			free(loss);
		}
	}
	free(division->delayers);
	free(division->bins);
}

static struct delayer *delayer_of(const struct division *division, uint32_t id)
{
	size_t low = 0, high = division->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (division->delayers[middle].variance->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < division->count && division->delayers[low].variance->id == id ? &division->delayers[low] : NULL;
}

/* Returns the loss of a variance in a bin of its time, NULL without memory. */
static struct bin_loss *loss_in(const struct division *division, struct delayer *delayer, uint64_t bin)
{
	struct bin_loss **own = &delayer->losses[bin - delayer->begin],
			**first = &division->bins[bin - division->begin];

	if (!*own) {
		*own = calloc(1, sizeof(**own));
		if (!*own)
			return NULL;
		(*own)->variance = delayer->variance;
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

/* Adds what a bundle lost to the losses in its bins, and moves `from` to the first of these. Returns 0 or -ENOMEM. */
static int add_part(const struct division *division, const struct heatmap *map, const struct series *series,
		    const struct part *part, uint64_t *from)
{
	struct delayer *delayer = part->guest ? NULL : delayer_of(division, part->variance);
	uint64_t bin = first_bin(division->window, part), end = part->end;
	double lost[TALLY_PARTS];

	if (!delayer)
		return 0;
	tally__parts(part->rec, series->class, lost);
	end = end < delayer->end ? end : delayer->end;
	for (bin = bin < delayer->begin ? delayer->begin : bin; bin < end; bin++) {
		double share = bundle_rec__share(part->rec, bin), net;
		struct bin_loss *loss = share > 0 ? loss_in(division, delayer, bin) : NULL;

		if (share <= 0)
			continue;
		if (!loss)
			return -ENOMEM;
		*from = bin < *from ? bin : *from;
		net = net_share(map, series->row, bin);
		for (int i = 0; i < TALLY_PARTS; i++) {
			loss->parts[i].lost += exact__ns(lost[i] * share);
			loss->parts[i].weight += exact__ns(lost[i] * share * net);
		}
	}
	return 0;
}

/* Attributes waiting to a part of a loss, up to the part's bound. Returns what was attributed, ns. */
static double attribute(const struct division *division, struct bin_loss *loss, int part, double ns, uint64_t waited_in)
{
	struct part_loss *at = &loss->parts[part];
	struct variance *variance = loss->variance;
	struct tally *tally = waited_in < division->window->retire ? &variance->retiring : &variance->staying;

	ns = exact__ns(fmin(ns, left_of(division, at)));
	at->used += ns;
	tally->caused[part] += ns;
	return ns;
}

/* The share of a part in a division is proportional to its weight, or to the waiting that it may still explain. */
static double count_of(const struct division *division, const struct part_loss *at, bool by_weight)
{
	double left = left_of(division, at);

	return left <= 0 ? 0 : by_weight ? fmax(0, at->weight) : left;
}

static double count_all(const struct division *division, const struct bin_loss *loss, bool by_weight)
{
	double all = 0;

	for (; loss; loss = loss->next) {
		for (int part = 0; part < TALLY_PARTS; part++)
			all += count_of(division, &loss->parts[part], by_weight);
	}
	return all;
}

/* Divides waiting among the losses in a bin. Returns the waiting that is left, ns. */
static double divide(const struct division *division, uint64_t bin, bool by_weight, double waited, uint64_t waited_in)
{
	for (int round = 0; round < ROUNDS && waited >= 1; round++) {
		double all = count_all(division, losses_in(division, bin), by_weight), rest = waited;

		for (struct bin_loss *loss = all > 0 ? losses_in(division, bin) : NULL; loss; loss = loss->next) {
			for (int part = 0; part < TALLY_PARTS; part++) {
				double count = count_of(division, &loss->parts[part], by_weight);

				if (count > 0)
					rest -= attribute(division, loss, part, waited * count / all, waited_in);
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
	return waited;
}

/* Whether a variance may have delayed rows in a bin, or so shortly before that they are waited for there. */
static bool is_calm(const struct division *division, uint64_t bin, uint32_t reach)
{
	for (size_t i = 0; i < division->count; i++) {
		if (bin >= division->delayers[i].begin && bin < division->delayers[i].end + reach)
			return false;
	}
	return true;
}

static int compare_waits(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Ranks of uneven work wait for each other all the time: finds the median of the bins in which none is delayed. */
static int find_usual(struct division *division, const struct heatmap *map, uint32_t reach)
{
	uint64_t from = division->window->view < map->begin ? map->begin : division->window->view;
	double *waits = from < map->end ? calloc(map->end - from, sizeof(*waits)) : NULL;
	size_t count = 0;

	if (from >= map->end)
		return 0;
	if (!waits)
		return -ENOMEM;
	for (uint64_t bin = from; bin < map->end; bin++) {
		if (is_calm(division, bin, reach))
			waits[count++] = waited_in(map, bin);
	}
	if (count >= CALM_LEAST) {
		qsort(waits, count, sizeof(*waits), compare_waits);
		division->usual = waits[count / 2];
	}
	free(waits);
	return 0;
}

/* The part of a bin in which the row that lost most did its work, 0..1: so much of the usual waiting goes on. */
static double working_share(const struct heatmap *map, uint64_t bin)
{
	double most = 0;

	for (size_t row = 0; row < map->row_count; row++) {
		struct cell computation = heatmap__cell(map, (uint32_t)row, bin, VAPRO_COMPUTATION);
		struct cell io = heatmap__cell(map, (uint32_t)row, bin, VAPRO_IO);

		most = fmax(most, cell__lost(&computation) + cell__lost(&io));
	}
	return fmax(0, 1 - most / (double)VAPRO_BIN_NS);
}

static void divide_bin(const struct division *division, struct heatmap *map, uint64_t bin, uint32_t reach)
{
	double waited = waited_in(map, bin) - heatmap__bin(map, bin)->divided, left;

	if (waited >= 1 && division->usual > 0)
		waited -= division->usual * working_share(map, bin);
	waited = exact__ns(waited);

	if (waited < 1)
		return;
	left = divide(division, bin, true, waited, bin);
	left = divide(division, bin, false, left, bin);
	for (uint64_t back = 1; back <= reach && bin >= map->begin + back && left >= 1; back++)
		left = divide(division, bin - back, false, left, bin);
	if (bin < division->window->retire)
		heatmap__bin(map, bin)->divided += waited - left;
}

static bool waits(const struct heatmap *map, uint32_t row)
{
	for (uint64_t bin = map->begin; bin < map->end; bin++) {
		if (heatmap__late(map, row, bin) > 0)
			return true;
	}
	return false;
}

static bool lived(const struct stg_row *row, const struct parts *window)
{
	return row->from_ns && row->from_ns < window->end * VAPRO_BIN_NS &&
	       (!row->to_ns || row->to_ns > window->view * VAPRO_BIN_NS);
}

/*
 * Counts the rows that lived in the view and may wait for one: ranks, and threads that wait for others of their team.
 * In one process any thread may be waited for.
 */
static double alive(const struct stg_job *job, const struct heatmap *map, const struct parts *window)
{
	double ranks = 0, waiting = 0, all = 0;

	for (size_t row = 0; row < job->row_count; row++) {
		const struct stg_row *at = &job->rows[row];

		if (!lived(at, window))
			continue;
		all++;
		ranks += !at->thread;
		waiting += at->thread && row < map->row_count && waits(map, (uint32_t)row);
	}
	return ranks > 1 ? ranks + waiting : all;
}

int caused__divide(struct variance_book *book, struct heatmap *map, const struct stg_job *job,
		   const struct series_book *series, const struct parts *parts, uint32_t reach)
{
	struct division division = {.window = parts, .others = fmax(0, alive(job, map, parts) - 1)};
	uint64_t from = parts->view;
	int error = begin(&division, book, map);

	for (size_t i = 0; !error && i < parts->count; i++)
		error = add_part(&division, map, &series->series[parts->items[i].rec->series], &parts->items[i], &from);
	from = from < map->begin ? map->begin : from;
	if (!error && division.count)
		error = find_usual(&division, map, reach);
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
