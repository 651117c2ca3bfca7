// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "compare/compare_private.h"
#include "model/batches.h"
#include "model/judgement.h"

/* Adds the shares of a cause in the slices of all threads of a unit; sums are seconds. */
static int add_shares(const struct profile *profile, const uint32_t *unit_of, uint32_t unit, unsigned cause,
		      struct values *values, double *cause_s, double *busy_s)
{
	for (uint32_t i = 0; i < stg__threads(profile->stg); i++) {
		const struct profile_thread *thread = &profile->threads[i];

		for (size_t k = 0; unit_of[i] == unit && k < PROFILE_SLICES; k++) {
			const struct profile_slice *slice = &thread->slices[k];

			*cause_s += slice->cause_ns[cause] * 1e-9;
			*busy_s += slice->busy_ns * 1e-9;
			if (slice->busy_ns >= SHARE_MEANINGFUL * thread->width * (double)VAPRO_BIN_NS &&
			    compare__add_value(values, slice->cause_ns[cause] / slice->busy_ns))
				return -ENOMEM;
		}
	}
	compare__thin_values(values);
	return 0;
}

static int compare_cause(struct comparison *result, uint32_t *const unit_of[2], uint32_t unit, unsigned cause)
{
	struct values values[2] = {0};
	double cause_s[2] = {0}, busy_s[2] = {0}, share[2];
	struct compare_row *row;
	struct shift shift;
	int error = 0;

	for (int side = 0; !error && side < 2; side++)
		error = add_shares(result->profile[side], unit_of[side], unit, cause, &values[side], &cause_s[side],
				   &busy_s[side]);
	result->units[unit].busy_a_s = busy_s[0];
	result->units[unit].busy_b_s = busy_s[1];
	if (error || !(cause_s[0] + cause_s[1] > 0))
		goto cleanup;
	error = shift__of(values[0].items, values[0].count, values[1].items, values[1].count, &shift);
	if (error) {
		error = error == -ENODATA ? 0 : error;
		goto cleanup;
	}
	row = compare__row(result, COMPARE_CAUSE, (int32_t)unit);
	if (!row) {
		error = -ENOMEM;
		goto cleanup;
	}
	for (int side = 0; side < 2; side++)
		share[side] = busy_s[side] > 0 ? cause_s[side] / busy_s[side] : 0;
	row->cause = cause;
	row->share_a = share[0];
	row->share_b = share[1];
	row->ratio = share[1] - share[0];
	row->low = shift.low;
	row->high = shift.high;
	row->p = shift.p;
	row->base_s = busy_s[1];
	row->seconds = cause_s[1] - share[0] * busy_s[1];
cleanup:
	free(values[0].items);
	free(values[1].items);
	return error;
}

/* compare.c: adds a row per unit and cause. */
static int compare__causes(struct comparison *result, uint32_t *const unit_of[2])
{
	int error = 0;

	for (uint32_t unit = 0; !error && unit < result->unit_count; unit++)
		for (unsigned cause = 0; !error && cause < PROFILE_CAUSES; cause++)
			error = compare_cause(result, unit_of, unit, cause);
	return error;
}

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
	sums->main = profile__main(profile);
}

/* Whether an image differs, and most of either run's time is of states that the other lacks. */
static bool other_program(const struct comparison *result)
{
	const struct match *match = &result->match;
	double all_s[2] = {0};

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < result->profile[side]->kind_capacity; i++)
			all_s[side] += result->profile[side]->kinds[i].seconds;
	return match->changed_count && match->only_a_s > SHARE_MOST * all_s[0] &&
	       match->only_b_s > SHARE_MOST * all_s[1];
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
	else if (result->other_program)
		snprintf(err, err_size,
			 "the runs are of different programs, or of builds that differ in most states: only %u states "
			 "are in "
			 "both, %u (%.2f s) in A only, %u (%.2f s) in B only",
			 (unsigned)result->match.count, result->match.only_a, result->match.only_a_s,
			 result->match.only_b, result->match.only_b_s);
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
	result->other_program = !error && other_program(result);
	if (!error && !result->other_program)
		error = compare__cells(result, unit_of);
	if (!error && !result->other_program)
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
