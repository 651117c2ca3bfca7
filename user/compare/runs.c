// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "compare/runs_private.h"
#include "compare/shift.h"

/* What a run's rank took for the work of a state, by numbers of the base. */
struct entry {
	uint32_t run, kind; /* run: among the compared ones */
	int32_t number;
	float change, error; /* logarithm of the time over that of the base */
	double base_s;
};

struct place {
	uint32_t run;
	int32_t number;
	const char *host;
};

struct gathered {
	struct entry *entries;
	size_t entry_count, entry_capacity;
	struct place *places;
	size_t place_count, place_capacity;
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The image that the state with most time lies in; "" unknown. */
static void name_program(struct runs_run *run)
{
	const struct vapro_state *main = profile__main(run->profile);
	size_t length = main ? strcspn(main->to, "@") : 0;

	if (main && main->to[length])
		snprintf(run->program, sizeof(run->program), "%.*s", (int)length, main->to);
}

/* The program that most runs are of; the first of several. */
static const char *most_frequent(const struct runs *result)
{
	const char *best = "";
	uint32_t most = 0;

	for (uint32_t i = 0; i < result->count; i++) {
		uint32_t same = 0;

		for (uint32_t k = 0; k < result->count; k++)
			same += !strcmp(result->runs[i].program, result->runs[k].program);
		if (same > most) {
			most = same;
			best = result->runs[i].program;
		}
	}
	return best;
}

/* Chooses the run of the program whose length is in the middle. Returns false where there is none. */
static bool choose_base(struct runs *result, const char *program, double *scratch)
{
	uint32_t count = 0;
	double middle;

	for (uint32_t i = 0; i < result->count; i++)
		if (!strcmp(result->runs[i].program, program))
			scratch[count++] = result->runs[i].seconds;
	if (!count)
		return false;
	qsort(scratch, count, sizeof(*scratch), compare_doubles);
	middle = scratch[(count - 1) / 2];
	for (uint32_t i = result->count; i-- > 0;)
		if (!strcmp(result->runs[i].program, program) && result->runs[i].seconds == middle)
			result->base = i;
	return true;
}

static int add_entry(struct gathered *all, const struct entry *entry)
{
	if (grow(&all->entries, &all->entry_capacity, all->entry_count + 1, sizeof(*all->entries)))
		return -ENOMEM;
	all->entries[all->entry_count++] = *entry;
	return 0;
}

static int add_place(struct gathered *all, uint32_t run, int32_t number, const char *host)
{
	if (grow(&all->places, &all->place_capacity, all->place_count + 1, sizeof(*all->places)))
		return -ENOMEM;
	all->places[all->place_count++] = (struct place){run, number, host};
	return 0;
}

/* Gathers what a comparison with the base says of each rank and state. *calls_ratio: B's calls over the base's. */
static int gather(struct gathered *all, const struct comparison *found, uint32_t run, double *calls_ratio)
{
	double calls[2] = {0};
	int error = 0;

	for (size_t i = 0; !error && i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];
		struct entry entry = {.run = run,
				      .change = (float)log(row->ratio),
				      .error = (float)row->error,
				      .base_s = row->call_a_ns * (double)row->calls_a * 1e-9};

		if (row->what != COMPARE_STATE || row->unit == COMPARE_ALL || row->least)
			continue;
		entry.number = found->units[row->unit].number;
		for (size_t k = 0; k < found->match.count; k++)
			if (found->match.pairs[k].b == row->kind)
				entry.kind = found->match.pairs[k].a;
		calls[0] += (double)row->calls_a;
		calls[1] += (double)row->calls_b;
		error = add_entry(all, &entry);
	}
	for (uint32_t i = 0; !error && i < found->unit_count; i++) {
		error = add_place(all, run, found->units[i].number, found->units[i].host_b);
		if (!error)
			error = add_place(all, 0, found->units[i].number, found->units[i].host_a);
	}
	*calls_ratio = calls[0] > 0 ? calls[1] / calls[0] : NAN;
	return error;
}

static void note_side(struct runs_run *run, const struct compare_side *side, const char *host)
{
	run->ranks = side->units;
	run->hosts = side->hosts;
	run->host = host;
}

/* Compares a run with the base. Returns 0, or -ENOMEM; what cannot be compared is left out. */
static int compare_run(struct runs *result, uint32_t at, struct gathered *all)
{
	const struct compare_options options = {.threshold = result->threshold};
	struct runs_run *run = &result->runs[at], *base = &result->runs[result->base];
	struct comparison found;
	char err[512];
	int error = compare__runs(&found, base->profile, run->profile, &options, err, sizeof(err));

	if (found.side[1].units) {
		note_side(run, &found.side[1], found.unit_count ? found.units[0].host_b : NULL);
		note_side(base, &found.side[0], found.unit_count ? found.units[0].host_a : NULL);
	}
	if (found.other_program || (error == -ENODATA && !found.match.count))
		run->use = RUNS_OTHER_PROGRAM;
	else if (error == -ENODATA)
		run->use = RUNS_INCOMPARABLE;
	else if (!error && found.side[0].units != found.side[1].units)
		run->use = RUNS_OTHER_RANKS;
	result->rebuilt |= !error && found.match.changed_count;
	if (!error && run->use == RUNS_COMPARED) {
		result->unit_kind = found.unit_kind;
		error = gather(all, &found, result->compared++, &run->calls_ratio);
	}
	compare__clear(&found);
	return error == -ENODATA ? 0 : error;
}

static int by_number(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t unique(int32_t *numbers, size_t count)
{
	uint32_t distinct = 0;

	if (count)
		qsort(numbers, count, sizeof(*numbers), by_number);
	for (size_t i = 0; i < count; i++)
		if (!distinct || numbers[distinct - 1] != numbers[i])
			numbers[distinct++] = numbers[i];
	return distinct;
}

static uint32_t index_of(const int32_t *numbers, uint32_t count, int32_t number)
{
	return (uint32_t)((const int32_t *)bsearch(&number, numbers, count, sizeof(*numbers), by_number) - numbers);
}

/* last: a number that the host of the rank before has, which neighbours share. */
static uint32_t host_number(struct runs_cells *cells, const char *host, uint32_t last)
{
	if (last && !strcmp(cells->host_names[last - 1], host))
		return last;
	for (uint32_t i = 0; i < cells->host_count; i++)
		if (!strcmp(cells->host_names[i], host))
			return i + 1;
	cells->host_names[cells->host_count++] = host;
	return cells->host_count;
}

static void clear_cells(struct runs_cells *cells)
{
	free(cells->change);
	free(cells->error);
	free(cells->base_s);
	free(cells->kind);
	free(cells->number);
	free(cells->hosts);
	free(cells->host_names);
	free(cells->run_of);
}

/* Fills the cells from what was gathered. The base is run 0 of them, and has no change. */
static int fill_cells(struct runs_cells *cells, const struct gathered *all)
{
	int32_t *kinds = calloc(all->entry_count + 1, sizeof(*kinds));
	uint32_t last = 0;
	size_t size, pairs;

	cells->number = calloc(all->entry_count + 1, sizeof(*cells->number));
	if (!kinds || !cells->number) {
		free(kinds);
		return -ENOMEM;
	}
	for (size_t i = 0; i < all->entry_count; i++) {
		cells->number[i] = all->entries[i].number;
		kinds[i] = (int32_t)all->entries[i].kind;
	}
	cells->units = unique(cells->number, all->entry_count);
	cells->kinds = unique(kinds, all->entry_count);
	cells->kind = (uint32_t *)kinds;
	pairs = (size_t)cells->units * cells->kinds;
	size = pairs * cells->runs;
	cells->change = malloc((size + 1) * sizeof(*cells->change));
	cells->error = calloc(size + 1, sizeof(*cells->error));
	cells->base_s = calloc(pairs + 1, sizeof(*cells->base_s));
	cells->hosts = calloc((size_t)cells->runs * cells->units + 1, sizeof(*cells->hosts));
	cells->host_names = calloc(all->place_count + 1, sizeof(*cells->host_names));
	if (!cells->change || !cells->error || !cells->base_s || !cells->hosts || !cells->host_names)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++)
		cells->change[i] = NAN;
	for (size_t i = 0; i < all->entry_count; i++) {
		const struct entry *entry = &all->entries[i];
		uint32_t unit = index_of(cells->number, cells->units, entry->number);
		uint32_t kind = index_of(kinds, cells->kinds, (int32_t)entry->kind);

		cells->change[runs__cell(cells, entry->run, unit, kind)] = entry->change;
		cells->error[runs__cell(cells, entry->run, unit, kind)] = entry->error;
		cells->change[runs__cell(cells, 0, unit, kind)] = 0;
		cells->base_s[(size_t)unit * cells->kinds + kind] = entry->base_s;
	}
	for (size_t i = 0; i < all->place_count; i++) {
		const struct place *place = &all->places[i];
		const int32_t *number =
		    bsearch(&place->number, cells->number, cells->units, sizeof(*cells->number), by_number);

		if (number)
			cells->hosts[runs__unit(cells, place->run, (uint32_t)(number - cells->number))] = last =
			    host_number(cells, place->host, last);
	}
	return 0;
}

/* Describes the runs and chooses the one that the others are compared with. */
static int prepare(struct runs *result, const struct runs_input *inputs, uint32_t count, const char *program, char *err,
		   size_t err_size)
{
	double *scratch = calloc(count + 1, sizeof(*scratch));

	result->runs = calloc(count + 1, sizeof(*result->runs));
	if (!scratch || !result->runs) {
		free(scratch);
		return -ENOMEM;
	}
	result->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct runs_run *run = &result->runs[i];

		*run = (struct runs_run){.name = inputs[i].name,
					 .profile = inputs[i].profile,
					 .seconds = profile__length_s(inputs[i].profile),
					 .time_ratio = NAN,
					 .work_ratio = NAN,
					 .calls_ratio = NAN,
					 .time_p = 1,
					 .work_p = 1};
		name_program(run);
	}
	for (uint32_t i = 0; program && i < count; i++)
		if (strcmp(result->runs[i].program, program))
			result->runs[i].use = RUNS_OTHER_PROGRAM;
	if (!choose_base(result, program ? program : most_frequent(result), scratch)) {
		snprintf(err, err_size, "no run is one of %s", program ? program : "any program");
		free(scratch);
		return -ENODATA;
	}
	free(scratch);
	return 0;
}

int runs__compare(struct runs *result, const struct runs_input *inputs, uint32_t count, double threshold,
		  const char *program, char *err, size_t err_size)
{
	struct gathered all = {0};
	struct runs_cells cells = {0};
	int error;

	*result = (struct runs){.threshold = threshold, .compared = 1};
	snprintf(err, err_size, "out of memory");
	error = prepare(result, inputs, count, program, err, err_size);
	if (!error)
		cells.run_of = calloc(count + 1, sizeof(*cells.run_of));
	if (!error && !cells.run_of)
		error = -ENOMEM;
	if (!error)
		cells.run_of[0] = result->base;
	for (uint32_t i = 0; !error && i < count; i++) {
		uint32_t before = result->compared;

		if (i == result->base || result->runs[i].use != RUNS_COMPARED)
			continue;
		error = compare_run(result, i, &all);
		if (result->compared > before)
			cells.run_of[before] = i;
	}
	if (!error && result->compared < 2) {
		snprintf(err, err_size,
			 "no two of the %u runs can be compared: they are of different programs, have "
			 "other numbers of ranks, or are too short",
			 count);
		error = -ENODATA;
	}
	if (!error) {
		result->runs[result->base].calls_ratio = 1;
		result->by_instructions = true;
		for (uint32_t i = 0; i < count; i++)
			if (result->runs[i].use == RUNS_COMPARED)
				result->by_instructions &= result->runs[i].profile->by_instructions;
		cells.runs = result->compared;
		error = fill_cells(&cells, &all);
	}
	if (!error)
		error = runs__judge(result, &cells);
	free(all.entries);
	free(all.places);
	clear_cells(&cells);
	return error;
}

void runs__clear(struct runs *result)
{
	free(result->runs);
	free(result->rows);
	*result = (struct runs){0};
}
