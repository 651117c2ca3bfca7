// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/compare_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "model/batches.h"

struct compare_row *compare__row(struct comparison *result, enum compare_what what, int32_t unit)
{
	struct compare_row *row;

	if (grow(&result->rows, &result->row_capacity, result->row_count + 1, sizeof(*result->rows)))
		return NULL;
	row = &result->rows[result->row_count++];
	*row = (struct compare_row){.what = what, .unit = unit, .work = NAN, .p = 1};
	return row;
}

/* Sums of a run, and the state that most of its time is in. */
static void summarise(struct comparison *result, int side, const uint32_t *unit_of)
{
	const struct profile *profile = result->profile[side];
	struct compare_side *sums = &result->side[side];
	double most = 0;

	sums->length_s = profile__length_s(profile);
	sums->other_jobs = profile->other_jobs;
	sums->fragments = profile->fragments;
	sums->unmeasured = profile->unmeasured;
	for (uint32_t i = 0; i < stg__threads(profile->stg); i++) {
		if (unit_of[i] == COMPARE_NONE)
			continue;
		sums->own_s += profile->threads[i].own_s;
		sums->least_s += profile->threads[i].least_s;
		sums->none_s += profile->threads[i].none_s;
	}
	for (size_t i = 0; i < profile->kind_capacity; i++) {
		if (!profile->kinds[i].used || profile->kinds[i].seconds <= most)
			continue;
		most = profile->kinds[i].seconds;
		sums->main = &stg__state(profile->stg, profile->kinds[i].state)->about;
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct compare_row *x = a, *y = b;
	double x_s = fabs(x->seconds), y_s = fabs(y->seconds);

	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	if (x->named != y->named)
		return x->named ? -1 : 1;
	if ((x->seconds > 0) != (y->seconds > 0))
		return x->seconds > 0 ? -1 : 1;
	if (x_s != y_s)
		return x_s > y_s ? -1 : 1;
	return x->unit != y->unit ? (x->unit > y->unit) - (x->unit < y->unit)
				  : (x->kind > y->kind) - (x->kind < y->kind);
}

/* Says which programs were run, where their names differ. */
static void say_programs(const struct comparison *result, char *err, size_t err_size)
{
	for (size_t i = 0; i < result->match.changed_count; i++) {
		const struct match_image *image = &result->match.changed[i];
		size_t used = strlen(err);

		if (strcmp(image->name_a, image->name_b))
			snprintf(err + used, err_size - used, "; A is a run of %s, B of %s", image->name_a,
				 image->name_b);
	}
}

/* Says what is missing where nothing was compared. */
static void explain(const struct comparison *result, char *err, size_t err_size)
{
	if (!result->match.count)
		snprintf(err, err_size,
			 "the runs have no state in common (%u states in A, %u in B): are both of the same program, "
			 "with debug information or symbols to match its functions by?",
			 result->match.only_a, result->match.only_b);
	else if (result->too_few)
		snprintf(err, err_size,
			 "too short to compare: a state needs %d batches of %d fragments or more on a rank in each "
			 "run, after "
			 "its first 10 fragments, and the most there is are %llu (A lasts %.1f s, B %.1f s)",
			 SHIFT_LEAST, BATCH_MEMBERS, (unsigned long long)result->most_batches, result->side[0].length_s,
			 result->side[1].length_s);
	else if (result->too_short)
		snprintf(err, err_size,
			 "all computations that the runs have in common last under 20 us, which is mostly what the "
			 "probes around them cost");
	else
		snprintf(err, err_size,
			 "the states that the runs have in common were not repeated by the same ranks in both (A lasts "
			 "%.1f s, B %.1f s)",
			 result->side[0].length_s, result->side[1].length_s);
	say_programs(result, err, err_size);
}

int compare__runs(struct comparison *result, const struct profile *a, const struct profile *b,
		  const struct compare_options *options, char *err, size_t err_size)
{
	uint32_t *unit_of[2] = {NULL, NULL};
	int error;

	*result = (struct comparison){.profile = {a, b}};
	snprintf(err, err_size, "out of memory");
	error = match__kinds(&result->match, a, b);
	if (!error)
		error = compare__units(result, unit_of, err, err_size);
	for (int side = 0; !error && side < 2; side++)
		summarise(result, side, unit_of[side]);
	if (!error)
		error = compare__cells(result, unit_of);
	if (!error)
		error = compare__causes(result, unit_of);
	if (!error && !result->compared) {
		explain(result, err, err_size);
		error = -ENODATA;
	}
	if (!error)
		error = compare__judge(result, options);
	if (!error)
		qsort(result->rows, result->row_count, sizeof(*result->rows), by_weight);
	free(unit_of[0]);
	free(unit_of[1]);
	return error;
}

void compare__clear(struct comparison *result)
{
	match__clear(&result->match);
	free(result->units);
	free(result->rows);
	*result = (struct comparison){0};
}
