/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/onset.h"

#include <math.h>
#include <stdlib.h>

#include "model/judgement.h"

#define WIDTH_LEAST 2	   /* bins on either side of a step, or some computations, are compared */
#define BETTER_BINS 1	   /* between two slow times: in more, the first one ended */
#define SHARP 1.15	   /* ratio of a sharp step */
#define RAISED 1.08	   /* by which steps have to raise the rows in all */
#define CHANGED_SHARE 0.25 /* so many of the other rows changed beside the median row: the program did */
enum { STEPS_MOST = 16 };  /* of a variance that are looked at */
enum { STATES_MOST = 16 }; /* series of the rows that are looked at */

/* Sums over rows and bins, ns: of computations that are judged, and of all. */
struct sums {
	double dur, ref, attributed; /* attributed: the part of dur that others took */
	double seen;
};

/* How a row changed. */
struct change {
	double ratio;
	struct sums before, after;
};

static void add_cell(struct sums *sums, const struct heatmap *map, uint32_t row, uint64_t bin)
{
	struct cell cell = heatmap__cell(map, row, bin, VAPRO_COMPUTATION);

	sums->dur += cell__dur(&cell);
	sums->attributed += cell__attributed(&cell, VAPRO_COMPUTATION);
	sums->ref += (double)cell.closed.ref + cell.open.ref;
	sums->seen += (double)cell.closed.seen + cell.open.seen;
}

static struct sums sum_row(const struct heatmap *map, uint32_t row, uint64_t from, uint64_t to)
{
	struct sums sums = {0};

	for (uint64_t bin = from; bin < to && bin < map->end; bin++)
		add_cell(&sums, map, row, bin);
	return sums;
}

static bool is_enough(const struct sums *sums, const struct evidence_input *input)
{
	/* what others took has causes, and begins of its own */
	return sums->ref > 0 && sums->dur >= input->config->valid_bin * (double)VAPRO_BIN_NS &&
	       sums->attributed <= SHARE_MEANINGFUL * sums->dur;
}

static double pace(const struct sums *sums)
{
	return sums->dur / sums->ref;
}

/* The time that a row took after a step beyond what it would have taken by its pace before, times usual. */
static double excess(const struct change *change, double usual)
{
	return change->after.dur - change->after.ref * pace(&change->before) * usual;
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *left = a, *right = b;

	return (left->ratio > right->ratio) - (left->ratio < right->ratio);
}

/*
 * Fills how a row changed from the bins before `bin` to those after it. Returns whether it is known. Work that is not
 * judged any more, as far shorter or longer computations are, was done `rate` times as often as before.
 */
static bool change_of(const struct evidence_input *input, uint32_t row, uint64_t bin, uint64_t width, double rate,
		      struct change *change)
{
	change->before = sum_row(input->map, row, bin - width, bin);
	change->after = sum_row(input->map, row, bin + 1, bin + 1 + width);
	if (!is_enough(&change->before, input) || !(change->after.seen > 0))
		return false;
	if (!is_enough(&change->after, input))
		change->after = (struct sums){.dur = change->after.seen, .ref = change->before.ref * rate};
	change->ratio = pace(&change->after) / pace(&change->before);
	return true;
}

/*
 * How often the median row did its work after `bin`, as a multiple of before: the ranks of a job proceed as fast as the
 * slowest one. changes: room for all rows.
 */
static double rate_of(const struct evidence_input *input, uint64_t bin, uint64_t width, struct change *changes)
{
	size_t count = 0;

	for (uint32_t row = 0; row < input->job->row_count; row++) {
		struct change *change = &changes[count];

		change->before = sum_row(input->map, row, bin - width, bin);
		change->after = sum_row(input->map, row, bin + 1, bin + 1 + width);
		if (!is_enough(&change->before, input) || !is_enough(&change->after, input))
			continue;
		change->ratio = change->after.ref / change->before.ref;
		count++;
	}
	if (count)
		qsort(changes, count, sizeof(*changes), compare_changes);
	return count ? changes[count / 2].ratio : 1;
}

/*
 * Whether other rows changed with those of a variance: a quarter of them, in either direction, beside the median row;
 * or some are spared half of what the variance's rows got more. Fills the median row's change.
 */
static bool others_changed(const struct variance *variance, const struct evidence_input *input, uint64_t bin,
			   uint64_t width, double *usual)
{
	unsigned char *own = calloc(input->job->row_count + 1, 1);
	struct change *changes = calloc(input->job->row_count + 1, sizeof(*changes)), change;
	size_t count = 0, changed = 0;
	double more = 0, spared = 0, rate;
	bool is = true; /* out of memory, too */

	*usual = 1;
	if (!own || !changes)
		goto cleanup;
	rate = rate_of(input, bin, width, changes);
	for (size_t i = 0; i < variance->row_count; i++)
		own[variance->rows[i]] = 1;
	for (uint32_t row = 0; row < input->job->row_count; row++)
		count += !own[row] && change_of(input, row, bin, width, rate, &changes[count]);
	if (count)
		qsort(changes, count, sizeof(*changes), compare_changes);
	*usual = count ? changes[count / 2].ratio : 1;
	for (size_t i = 0; i < variance->row_count; i++) {
		if (change_of(input, variance->rows[i], bin, width, rate, &change))
			more += excess(&change, *usual);
	}
	for (size_t i = 0; i < count; i++) {
		bool lighter = changes[i].ratio < (1 - SHARE_MEANINGFUL / 2) * *usual;

		changed += fabs(changes[i].ratio / *usual - 1) >= SHARE_MEANINGFUL;
		spared -= lighter ? excess(&changes[i], *usual) : 0;
	}
	is = (double)changed >= CHANGED_SHARE * (double)count + !count || (more > 0 && spared >= SHARE_MOST * more);
cleanup:
	free(own);
	free(changes);
	return is;
}

/* The pace of a variance's rows before and after a bin; 0 where one of them is not known. */
struct paces {
	double before, after;
};

struct steps {
	uint64_t first, count, width;
	struct paces *paces; /* by bin, from the first one */
};

static double ratio_at(const struct steps *steps, uint64_t i)
{
	return steps->paces[i].before > 0 ? steps->paces[i].after / steps->paces[i].before : 0;
}

static struct sums between(const struct sums *from, const struct sums *to)
{
	return (struct sums){to->dur - from->dur, to->ref - from->ref, to->attributed - from->attributed,
			     to->seen - from->seen};
}

static void find_paces(struct steps *steps, const struct variance *variance, const struct evidence_input *input)
{
	struct sums *until = calloc(steps->count + 1, sizeof(*until));

	for (uint64_t i = 0; until && i < steps->count; i++) {
		until[i + 1] = until[i];
		for (size_t k = 0; k < variance->row_count; k++)
			add_cell(&until[i + 1], input->map, variance->rows[k], steps->first + i);
	}
	/* the bin of the step itself may be half slow */
	for (uint64_t i = steps->width; until && i + 1 < steps->count; i++) {
		uint64_t from = i - steps->width,
			 to = i + 1 + steps->width < steps->count ? i + 1 + steps->width : steps->count;
		struct sums before = between(&until[from], &until[i]), after = between(&until[i + 1], &until[to]);

		if (is_enough(&before, input) && is_enough(&after, input))
			steps->paces[i] = (struct paces){pace(&before), pace(&after)};
	}
	free(until);
}

/* How large the step at a bin is, upwards or downwards; 0 where it is not known. */
static double height(const struct steps *steps, uint64_t i, bool up)
{
	double ratio = ratio_at(steps, i);

	return up || !(ratio > 0) ? ratio : 1 / ratio;
}

/* Whether the step at a bin is at least as large as all beside it, upwards or downwards. */
static bool is_step(const struct steps *steps, uint64_t i, bool up)
{
	double own = height(steps, i, up);

	if (own < SHARP * (1 - SHARE_MEANINGFUL / 2))
		return false;
	for (uint64_t k = i > steps->width ? i - steps->width : 0; k < steps->count && k <= i + steps->width; k++) {
		double other = height(steps, k, up);

		if (other > own || (other == own && k < i))
			return false;
	}
	return true;
}

/* The bin from which on the rows of a variance were slow without being better in between, where they were judged. */
static uint64_t slow_since(const struct variance *variance, const struct evidence_input *input, uint64_t first)
{
	uint64_t since = variance->begin, better = 0;

	for (uint64_t bin = since; bin-- > first && better <= BETTER_BINS;) {
		struct sums sums = {0};

		for (size_t i = 0; i < variance->row_count; i++)
			add_cell(&sums, input->map, variance->rows[i], bin);
		if (sums.attributed > SHARE_MEANINGFUL * sums.dur)
			break;
		if (!is_enough(&sums, input))
			continue;
		if (input->config->threshold * pace(&sums) >= 1) {
			since = bin;
			better = 0;
		} else {
			better++;
		}
	}
	return since;
}

struct onset onset__of(const struct variance *variance, const struct evidence_input *input)
{
	const struct heatmap *map = input->map;
	uint64_t width = 1 + (uint64_t)(HEATMAP_AROUND_FRAGMENTS * map->fragment_ns / VAPRO_BIN_NS);
	struct onset onset = {.bin = variance->begin, .width = width < WIDTH_LEAST ? WIDTH_LEAST : width};
	uint64_t reach = HEATMAP_AROUND_MOST + onset.width, end = variance->end < map->end ? variance->end : map->end;
	struct steps steps = {.first = variance->begin > map->begin + reach ? variance->begin - reach : map->begin,
			      .width = onset.width};
	uint64_t since = slow_since(variance, input, steps.first);
	unsigned looked_at = 0;
	double usual_pace = 0; /* of the rows before the lone step */

	steps.count = end > steps.first ? end - steps.first : 0;
	steps.paces = calloc(steps.count + 1, sizeof(*steps.paces));
	if (!steps.paces)
		return onset;
	find_paces(&steps, variance, input);
	for (uint64_t i = 0; i < steps.count && looked_at < STEPS_MOST; i++) {
		uint64_t bin = steps.first + i;
		bool before = bin + 1 < variance->begin, up = is_step(&steps, i, true);
		double usual;

		onset.known |= ratio_at(&steps, i) > 0 && variance->begin >= map->begin + onset.width;
		if (bin + 1 + onset.width < since || (!up && !(onset.lone && is_step(&steps, i, false))))
			continue;
		looked_at++;
		onset.sharp |= up && !before;
		if (others_changed(variance, input, bin, onset.width, &usual) ||
		    (up && ratio_at(&steps, i) < SHARP * usual))
			continue;
		/* the region began before: what it lost until then is something else */
		if (up && !onset.lone && bin > variance->begin + onset.width)
			continue;
		if (up && !onset.lone) {
			onset.bin = bin;
			usual_pace = steps.paces[i].before;
		}
		/* a step back ends what a step began */
		usual_pace *= usual;
		onset.ratio = steps.paces[i].after / usual_pace;
		onset.lone = onset.ratio >= RAISED;
	}
	free(steps.paces);
	return onset;
}

/* Time of a series on either side of a step, and its fragments. */
struct state_sums {
	uint32_t series;
	double n[2], net[2];
};

static struct state_sums *sums_of(struct state_sums *sums, size_t *count, uint32_t series)
{
	for (size_t i = 0; i < *count; i++) {
		if (sums[i].series == series)
			return &sums[i];
	}
	if (*count == STATES_MOST)
		return NULL;
	sums[*count] = (struct state_sums){.series = series};
	return &sums[(*count)++];
}

bool onset__two_states(const struct onset *onset, const struct variance *variance, const struct evidence_input *input)
{
	struct state_sums sums[STATES_MOST];
	double least = 1 + SHARE_MOST * (onset->ratio - 1), all = 0;
	uint32_t workload = SERIES_NONE;
	size_t count = 0;

	for (size_t i = 0; i < input->rec_count; i++) {
		const struct bundle_rec *rec = &input->recs[i];
		const struct series *series = &input->series->series[rec->series];
		uint64_t bin = bundle_rec__bin(rec);
		bool after = bundle_rec__first_bin(rec) > onset->bin;
		struct state_sums *at;

		if (series->row != variance->rows[0] || series->class != VAPRO_COMPUTATION || !rec->covered ||
		    bin + onset->width < onset->bin || bin > onset->bin + onset->width || (!after && bin >= onset->bin))
			continue;
		at = sums_of(sums, &count, rec->series);
		if (!at)
			continue;
		at->n[after] += bundle_rec__units(rec);
		at->net[after] += rec->sum_ns - bundle_rec__cpu_attributed(rec);
		all += after ? rec->sum_ns : 0;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t own = input->series->series[sums[i].series].workload;

		if (!(sums[i].n[0] > 0) || sums[i].net[1] < SHARE_MEANINGFUL * all ||
		    sums[i].net[1] * sums[i].n[0] < least * sums[i].net[0] * sums[i].n[1])
			continue;
		if (workload != SERIES_NONE && workload != own)
			return true;
		workload = own;
	}
	return false;
}

bool onset__from_start(const struct variance *variance, const struct evidence_input *input)
{
	uint64_t around = (uint64_t)(HEATMAP_AROUND_FRAGMENTS * input->map->fragment_ns / VAPRO_BIN_NS);

	around = around > HEATMAP_AROUND_LEAST ? around : HEATMAP_AROUND_LEAST;
	for (size_t i = 0; i < variance->row_count; i++) {
		uint64_t from = input->job->rows[variance->rows[i]].from_ns / VAPRO_BIN_NS;

		if (variance->begin >= from + around)
			return false;
	}
	return true;
}
