// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/earlier.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of values, which are sorted; NAN where there are none. */
static double median(double *values, uint32_t count)
{
	if (!count)
		return NAN;
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Fills the comparison of run `own` with the other compared ones. values: room for two of each run. */
static void fill(struct earlier *earlier, const struct runs *found, uint32_t own, double *values)
{
	const struct runs_run *run = &found->runs[own];
	double *times = values, *works = values + found->count;
	uint32_t timed = 0, worked = 0;

	for (uint32_t i = 0; i < found->count; i++) {
		if (i == own || found->runs[i].use != RUNS_COMPARED)
			continue;
		times[timed++] = found->runs[i].seconds;
		if (found->runs[i].work_ratio > 0)
			works[worked++] = found->runs[i].work_ratio;
	}
	*earlier = (struct earlier){.runs = timed,
				    .seconds = run->seconds,
				    .time_ratio = run->seconds / median(times, timed),
				    .work_ratio = worked ? run->work_ratio / median(works, worked) : NAN,
				    .time_outlying = run->time_outlying,
				    .work_outlying = run->work_outlying};
	snprintf(earlier->program, sizeof(earlier->program), "%s", run->program);
}

/* Whether there are enough runs that the run is compared with. */
static bool suffice(const struct runs *found, uint32_t own)
{
	return found->runs[own].use == RUNS_COMPARED && found->compared >= RUNS_LEAST;
}

/* Compares the runs of a list, of which the last one is asked about. Returns as earlier__compare(). */
static int compare_last(struct earlier *earlier, const struct runs_input *inputs, uint32_t count, char *err,
			size_t err_size)
{
	double *values = calloc(count, 2 * sizeof(*values));
	struct runs found = {.count = 0};
	int error = -ENOMEM;

	snprintf(err, err_size, "out of memory");
	if (values)
		error = runs__compare(&found, inputs, count, EARLIER_THRESHOLD, NULL, err, err_size);
	if (!error && !suffice(&found, count - 1)) {
		snprintf(err, err_size, "fewer than %d runs of the program with as many ranks can be compared",
			 (int)RUNS_LEAST);
		error = -ENODATA;
	}
	if (!error)
		fill(earlier, &found, count - 1, values);
	runs__clear(&found);
	free(values);
	return error;
}

int earlier__compare(struct earlier *earlier, const struct profile *run, const struct profile *const *former,
		     uint32_t count, char *err, size_t err_size)
{
	struct runs_input *inputs = calloc((size_t)count + 1, sizeof(*inputs));
	int error;

	if (!inputs) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		inputs[i] = (struct runs_input){.name = "earlier", .profile = former[i]};
	inputs[count] = (struct runs_input){.name = "run", .profile = run};
	error = compare_last(earlier, inputs, count + 1, err, err_size);
	free(inputs);
	return error;
}

char *earlier__text(const struct earlier *earlier, char *text, size_t size)
{
	snprintf(text, size, "%s%sthe run lasted %.1f s, %.2f times the median of %u earlier runs%s", earlier->program,
		 *earlier->program ? ": " : "", earlier->seconds, earlier->time_ratio, earlier->runs,
		 earlier->time_outlying ? ", more than these differ" : "");
	if (!isnan(earlier->work_ratio))
		text__append(text, size, "; equal work took %.2f times as long as in their median%s",
			     earlier->work_ratio, earlier->work_outlying ? ", more than these differ" : "");
	return text;
}
