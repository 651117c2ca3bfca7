// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/compare_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LEAST_BUSY 0.1 /* a slice counts where so much of it was computation or IO */

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
			if (slice->busy_ns >= LEAST_BUSY * thread->width * (double)VAPRO_BIN_NS &&
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

int compare__causes(struct comparison *result, uint32_t *const unit_of[2])
{
	int error = 0;

	for (uint32_t unit = 0; !error && unit < result->unit_count; unit++)
		for (unsigned cause = 0; !error && cause < PROFILE_CAUSES; cause++)
			error = compare_cause(result, unit_of, unit, cause);
	return error;
}
