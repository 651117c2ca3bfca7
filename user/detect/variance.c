/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/variance.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EMITTED_LEAST_S 0.01 /* least change of an emitted loss that is worth another line */

struct overlap {
	size_t draft;
	uint32_t id;
	size_t cells;
};

static void clear(struct variance *variance)
{
	free(variance->rows);
	tally__clear(&variance->history);
	tally__clear(&variance->retiring);
	tally__clear(&variance->staying);
	tally__clear(&variance->total);
}

void variance__free(struct variance_book *book)
{
	for (size_t i = 0; i < book->count; i++)
		clear(&book->variances[i]);
	free(book->variances);
	book->variances = NULL;
	book->count = book->capacity = 0;
}

struct variance *variance__find(const struct variance_book *book, uint32_t id)
{
	size_t low = 0, high = book->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (book->variances[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < book->count && book->variances[low].id == id ? &book->variances[low] : NULL;
}

static int compare_overlaps(const void *a, const void *b)
{
	const struct overlap *left = a, *right = b;

	if (left->cells != right->cells)
		return left->cells > right->cells ? -1 : 1;
	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	return (left->draft > right->draft) - (left->draft < right->draft);
}

/* What a draft owns of a cell. */
static enum vapro_class owned(const struct draft *draft, const struct region_cell *cell)
{
	return draft->transfers ? HEATMAP_TRANSFERS : cell->class;
}

/* Sets what follows from a draft's cells. */
static void span_cells(struct draft *draft)
{
	memset(draft->has, 0, sizeof(draft->has));
	draft->begin = UINT64_MAX;
	draft->end = 0;
	for (size_t c = 0; c < draft->cell_count; c++) {
		const struct region_cell *at = &draft->cells[c];

		draft->has[at->class] = true;
		if (at->bin < draft->begin)
			draft->begin = at->bin;
		if (at->bin >= draft->end)
			draft->end = at->bin + 1;
	}
}

static int find_overlaps(const struct variance_book *book, const struct heatmap *map,
			 const struct region_result *drafts, struct overlap **overlaps, size_t *count)
{
	/* By variance: index of its overlap with the draft, + 1; lower ones are of other drafts. */
	size_t *places = calloc(book->count + 1, sizeof(*places)), capacity = 0;
	int error = places ? 0 : -ENOMEM;

	for (size_t d = 0; d < drafts->count && !error; d++) {
		const struct variance *last = NULL;
		size_t from = *count;

		for (size_t c = 0; c < drafts->drafts[d].cell_count; c++) {
			const struct region_cell *at = &drafts->drafts[d].cells[c];
			uint32_t owner = heatmap__owner(map, at->row, at->bin, owned(&drafts->drafts[d], at));
			size_t *place;

			if (owner && (!last || last->id != owner))
				last = variance__find(book, owner);
			if (!owner || !last)
				continue;
			place = &places[last - book->variances];
			if (*place <= from) {
				error = grow(overlaps, &capacity, *count + 1, sizeof(**overlaps));
				if (error)
					break;
				(*overlaps)[(*count)++] = (struct overlap){.draft = d, .id = owner};
				*place = *count;
			}
			(*overlaps)[*place - 1].cells++;
		}
	}
	if (*count)
		qsort(*overlaps, *count, sizeof(**overlaps), compare_overlaps);
	free(places);
	return error;
}

static int compare_places(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

/* Sets the rows of a draft, with the present rows where `add`, ordered by place. */
static int take_rows(struct variance *variance, const struct draft *draft, const struct stg_job *job, bool add)
{
	size_t count = add ? variance->row_count : 0, live = 0;

	variance->row_count = 0;
	for (size_t i = 0; i < count; i++)
		variance->rows[i] = job->place[variance->rows[i]];
	for (size_t i = 0; i < draft->cell_count; i++) {
		/* Cells of one row come one after the other. */
		if (i && draft->cells[i].row == draft->cells[i - 1].row)
			continue;
		if (grow(&variance->rows, &variance->row_capacity, count + 1, sizeof(*variance->rows)))
			return -ENOMEM;
		variance->rows[count++] = job->place[draft->cells[i].row];
	}
	if (count)
		qsort(variance->rows, count, sizeof(*variance->rows), compare_places);
	for (size_t i = 0; i < count; i++) {
		if (!i || variance->rows[i] != variance->rows[i - 1])
			variance->rows[live++] = variance->rows[i];
	}
	for (size_t i = 0; i < live; i++)
		variance->rows[i] = job->order[variance->rows[i]];
	variance->row_count = live;
	return 0;
}

static int take_over(struct variance *variance, const struct draft *draft, const struct heatmap *map,
		     const struct stg_job *job)
{
	/* Forgotten bins still belong to the variance. */
	bool older = variance->emitted_once && variance->begin < map->begin;

	if (!older)
		variance->begin = draft->begin;
	variance->end = draft->end;
	variance->matched = true;
	variance->waiting = draft->waiting;
	variance->transfers = draft->transfers;
	variance->path = draft->path && !draft->waiting;
	variance->lasting = draft->lasting;
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		variance->has[class] = draft->has[class] || (older && variance->has[class]);
	return take_rows(variance, draft, job, older);
}

static int merge_into(struct variance_book *book, struct variance *from, uint32_t survivor_id)
{
	struct variance *survivor = variance__find(book, survivor_id);

	from->merged_into = survivor_id;
	survivor->proven |= from->proven;
	if (tally__merge(&survivor->history, &from->history))
		return -ENOMEM;
	tally__clear(&from->history);
	if (from->begin < survivor->begin)
		survivor->begin = from->begin;
	return 0;
}

static int write_owners(struct heatmap *map, const struct region_result *drafts, const uint32_t *ids)
{
	heatmap__disown(map);
	for (size_t d = 0; d < drafts->count; d++) {
		for (size_t c = 0; c < drafts->drafts[d].cell_count; c++) {
			const struct region_cell *at = &drafts->drafts[d].cells[c];

			if (heatmap__own(map, at->row, at->bin, owned(&drafts->drafts[d], at), ids[d]))
				return -ENOMEM;
		}
	}
	return 0;
}

/*
 * Separates the cells of a variance that was reported as closed from a draft that continues another one, so that no
 * loss counts twice: these cells become the last draft. Returns 0 or -ENOMEM.
 */
static int part_closed(struct region_result *drafts, size_t from, const struct heatmap *map, uint32_t id)
{
	struct draft *draft, part;
	size_t live = 0;

	if (grow(&drafts->drafts, &drafts->capacity, drafts->count + 1, sizeof(*drafts->drafts)))
		return -ENOMEM;
	draft = &drafts->drafts[from];
	part = *draft;
	part.cell_count = 0;
	part.cell_capacity = draft->cell_count;
	part.cells = malloc(draft->cell_count * sizeof(*part.cells));
	if (!part.cells)
		return -ENOMEM;
	for (size_t c = 0; c < draft->cell_count; c++) {
		const struct region_cell at = draft->cells[c];

		if (heatmap__owner(map, at.row, at.bin, owned(draft, &at)) == id)
			part.cells[part.cell_count++] = at;
		else
			draft->cells[live++] = at;
	}
	draft->cell_count = live;
	span_cells(draft);
	span_cells(&part);
	drafts->drafts[drafts->count++] = part;
	return 0;
}

/* Gives drafts the ids of the variances that they continue. Returns 0 or -ENOMEM. */
static int continue_variances(struct variance_book *book, const struct heatmap *map, struct region_result *drafts,
			      const struct overlap *overlaps, size_t count, uint32_t *ids)
{
	for (size_t i = 0; i < count; i++) {
		struct variance *variance = variance__find(book, overlaps[i].id);

		if (!variance || variance->matched || ids[overlaps[i].draft])
			continue;
		ids[overlaps[i].draft] = variance->id;
		variance->matched = true;
	}
	for (size_t i = 0; i < count; i++) {
		struct variance *variance = variance__find(book, overlaps[i].id);

		if (!variance || variance->matched || !variance->over)
			continue;
		if (part_closed(drafts, overlaps[i].draft, map, variance->id))
			return -ENOMEM;
		ids[drafts->count - 1] = variance->id;
		variance->matched = true;
	}
	return 0;
}

int variance__match(struct variance_book *book, struct heatmap *map, const struct stg_job *job,
		    struct region_result *drafts, uint64_t end, bool last)
{
	struct overlap *overlaps = NULL;
	size_t overlap_count = 0;
	uint32_t *ids = NULL; /* of drafts */
	int error = -ENOMEM;

	for (size_t i = 0; i < book->count; i++) {
		book->variances[i].matched = false;
		book->variances[i].merged_into = 0;
	}
	if (find_overlaps(book, map, drafts, &overlaps, &overlap_count))
		goto cleanup;
	ids = calloc(drafts->count + overlap_count + 1, sizeof(*ids));
	if (!ids || continue_variances(book, map, drafts, overlaps, overlap_count, ids))
		goto cleanup;
	for (size_t d = 0; d < drafts->count; d++) {
		struct variance *variance;

		if (!ids[d]) {
			if (grow(&book->variances, &book->capacity, book->count + 1, sizeof(*book->variances)))
				goto cleanup;
			book->variances[book->count++] = (struct variance){.id = ++*book->last_id};
			ids[d] = *book->last_id;
		}
		variance = variance__find(book, ids[d]);
		if (take_over(variance, &drafts->drafts[d], map, job))
			goto cleanup;
	}
	for (size_t i = 0; i < overlap_count; i++) {
		struct variance *variance = variance__find(book, overlaps[i].id);

		if (variance && !variance->matched && !variance->merged_into &&
		    merge_into(book, variance, ids[overlaps[i].draft]))
			goto cleanup;
	}
	if (write_owners(map, drafts, ids))
		goto cleanup;
	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];
		bool ended = variance->end + region__gap(map) + 1 <= end;

		variance->state = last || ended || !variance->matched ? VAPRO_REGION_CLOSED
				  : variance->emitted_once	      ? VAPRO_REGION_CHANGED
								      : VAPRO_REGION_OPEN;
	}
	error = 0;
cleanup:
	free(ids);
	free(overlaps);
	return error;
}

/* The time of a bin that was in fragments of the variance's rows, summed over these, ns. */
static double seen_in(const struct variance *variance, const struct heatmap *map, uint64_t bin)
{
	double seen = 0;

	for (size_t i = 0; i < variance->row_count; i++) {
		double ns = 0;

		for (int class = 0; class < VAPRO_CLASSES; class ++) {
			struct cell cell = heatmap__cell(map, variance->rows[i], bin, (enum vapro_class) class);

			ns += (double)cell.closed.seen + cell.open.seen;
		}
		seen += fmin(ns, VAPRO_BIN_NS);
	}
	return seen;
}

double variance__observed(const struct variance *variance, const struct heatmap *map)
{
	uint64_t begin = variance->begin < map->begin ? map->begin : variance->begin;
	uint64_t end = variance->end > map->end ? map->end : variance->end;
	double seen = 0;

	for (uint64_t bin = begin; bin < end; bin++)
		seen += seen_in(variance, map, bin);
	return begin < end && variance->row_count
		   ? seen / ((double)(end - begin) * (double)variance->row_count * VAPRO_BIN_NS)
		   : NAN;
}

static bool is_unseen(const struct variance *variance, const struct heatmap *map, uint64_t bin)
{
	return seen_in(variance, map, bin) < SHARE_MEANINGFUL * (double)variance->row_count * VAPRO_BIN_NS;
}

/* The kernel's account goes on while nothing else is seen: its begin and end are known. */
static bool is_accounted(const struct variance *variance)
{
	const struct tally *tally = &variance->total;
	int class = variance->class;

	return tally->cpu[class] + tally->blocked[class] >= SHARE_MOST * tally->lost[class];
}

uint64_t variance__unseen_before(const struct variance *variance, const struct heatmap *map, uint64_t from)
{
	uint64_t first = from < map->begin ? map->begin : from, bin = variance->begin;

	if (is_accounted(variance) || variance->begin > map->end)
		return 0;
	while (bin > first && is_unseen(variance, map, bin - 1))
		bin--;
	return variance->begin - bin;
}

uint64_t variance__unseen_after(const struct variance *variance, const struct heatmap *map, uint64_t to)
{
	uint64_t last = to > map->end ? map->end : to, bin = variance->end;

	if (is_accounted(variance) || variance->end < map->begin)
		return 0;
	while (bin < last && is_unseen(variance, map, bin))
		bin++;
	return bin - variance->end;
}

double variance__whole_loss(const struct variance *variance, double observed)
{
	const struct tally *tally = &variance->total;
	int class = variance->class;
	double lost = variance__lost(variance);
	double work = fmax(0, lost - tally->cpu[class] - tally->blocked[class]);

	if (variance->waiting || variance->path || !(observed < SHARE_NEARLY_ALL))
		return lost;
	return lost - work + work / fmax(observed, SHARE_MEANINGFUL);
}

double variance__lost(const struct variance *variance)
{
	const struct tally *tally = &variance->total;
	double lost = fmax(0, tally->lost[variance->class]); /* that of a withdrawn one may be negative */

	if (variance->waiting || variance->path)
		return lost;
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		if (class == (int)variance->class)
			lost +=
			    fmax(0, fmax(tally->attributed[class], tally->cpu[class]) - fmax(0, tally->lost[class]));
		else
			lost += tally->attributed[class];
	}
	return lost;
}

bool variance__counts(const struct variance *variance, const struct bundle_rec *rec, enum vapro_class class)
{
	return class != VAPRO_COMMUNICATION || variance->class == VAPRO_COMMUNICATION || variance->waiting ||
	       variance->path || tally__is_held_up(rec);
}

double variance__judged(const struct variance *variance)
{
	const struct tally *tally = &variance->total;
	double judged = 0;

	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		if (class == (int)variance->class)
			judged += tally->dur[class];
		else if (!variance->waiting && !variance->path)
			judged += tally->attributed[class];
	}
	return judged;
}

double variance__part(const struct variance *variance, enum tally_part part)
{
	const struct tally *tally = &variance->total;
	double lost = variance__lost(variance), attributed = 0, own = 0;

	if (variance->waiting || variance->path)
		return part == TALLY_OTHER ? lost : 0;
	for (size_t i = 0; i < tally->cause_count; i++) {
		const struct tally_cause *cause = &tally->causes[i];

		attributed += cause->part == TALLY_OTHER ? 0 : cause->lost;
		own += cause->part == (uint32_t)part ? cause->lost : 0;
	}
	if (part == TALLY_OTHER)
		return fmax(0, lost - attributed);
	return attributed > lost ? own * lost / attributed : fmax(0, own);
}

double variance__least_s(const struct vapro_config *config)
{
	return fmin(config->min_lost_s, config->min_share * config->window_s * 2 / 3) / 2;
}

bool variance__emit(struct variance *variance, double least_s)
{
	struct variance_emitted now = {
	    .begin = variance->begin,
	    .end = variance->end,
	    .row_count = (uint32_t)variance->row_count,
	    .lost_seconds = variance__lost(variance) / 1e9,
	    .confirmed = variance->confirmed,
	    .alarm = variance->alarm,
	    .still_open = variance->total.open,
	    .by_place = variance->by_place,
	    .severity = variance->severity,
	    .effect_of = variance->effect_of,
	    .diagnosed = variance->diagnosed,
	};
	const struct variance_emitted *then = &variance->emitted;
	double moved = fabs(now.lost_seconds - then->lost_seconds);
	bool shape = now.begin != then->begin || now.end != then->end || now.row_count != then->row_count;
	bool verdict = now.confirmed != then->confirmed || now.alarm != then->alarm ||
		       now.still_open != then->still_open || now.effect_of != then->effect_of ||
		       now.diagnosed != then->diagnosed || now.by_place != then->by_place ||
		       now.severity != then->severity;
	bool closing = variance->state == VAPRO_REGION_CLOSED && !variance->over;

	if (!variance->emitted_once && (!variance->matched || variance->small || now.lost_seconds < least_s))
		return false;
	if (variance->emitted_once && !closing) {
		/*
		 * A closed variance is emitted again only where late fragments changed it much, or where it is no
		 * alarm any more; references that improve shift every sum a little.
		 */
		if (variance->over &&
		    (!variance->matched ||
		     (!shape && moved <= fmax(EMITTED_LEAST_S, SHARE_MEANINGFUL * then->lost_seconds) &&
		      !(then->alarm && !now.alarm))))
			return false;
		/*
		 * An ongoing variance is known: its end and its loss are emitted when they weigh more, or when it
		 * closes. An open fragment may be a rank that is stuck: it is emitted each time.
		 */
		if (!variance->over && !verdict && now.begin == then->begin && now.row_count == then->row_count &&
		    (now.effect_of || moved <= fmax(EMITTED_LEAST_S, SHARE_MOST * then->lost_seconds)) &&
		    !(now.still_open && shape))
			return false;
	}
	variance->revision += variance->emitted_once;
	variance->emitted_once = true;
	variance->over = variance->state == VAPRO_REGION_CLOSED;
	variance->emitted = now;
	return true;
}

int variance__retire(struct variance_book *book, const struct heatmap *map)
{
	size_t live = 0;

	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];

		/* Bundles that retire in the time of an alarm are not learnt. */
		if (variance->alarm || variance->effect_of)
			tally__unlearn(&variance->retiring);
		if (tally__merge(&variance->history, &variance->retiring))
			return -ENOMEM;
		tally__clear(&variance->retiring);
		tally__clear(&variance->staying);
		tally__clear(&variance->total);
		if (variance->over && (variance->end <= map->begin || !variance->matched)) {
			clear(variance);
			continue;
		}
		book->variances[live++] = *variance;
	}
	book->count = live;
	return 0;
}
