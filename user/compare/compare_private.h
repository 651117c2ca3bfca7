/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps of a comparison; only its own files include it. */
#ifndef VAPRO_COMPARE_PRIVATE_H
#define VAPRO_COMPARE_PRIVATE_H

#include "compare/compare.h"
#include "compare/shift.h"

#define COMPARE_NONE UINT32_MAX
enum { COMPARE_VALUES = 256 }; /* most values on either side of a test */

/* Values of one side in the order of time, at most COMPARE_VALUES of them. */
struct values {
	double *items;
	size_t count, capacity;
};

int compare__add_value(struct values *values, double value);
void compare__thin_values(struct values *values); /* every n-th, so that at most COMPARE_VALUES remain */

/* Middle half of the values, which are logarithms, as a ratio; reorders them. *centre: their median. */
double compare__spread(struct values *values, double *centre);

/* compare_units.c: finds the units of both runs; unit_of[side]: unit of each thread, or COMPARE_NONE. */
int compare__units(struct comparison *result, uint32_t *unit_of[2], char *err, size_t err_size);

/* compare_cells.c: adds a row per kind and unit, and one per collective. */
int compare__cells(struct comparison *result, uint32_t *const unit_of[2]);

/* compare_judge.c: rows of units, hosts, the job and job-wide states; names what changed. */
int compare__judge(struct comparison *result, const struct compare_options *options);

struct compare_row *compare__row(struct comparison *result, enum compare_what what, int32_t unit);

#endif
