/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Costs and the ranks' time by minute, by which a cause is rated (detect/rating.h): whole nanoseconds, so that they add
 * in any order.
 */
#include "analysis/causes_private.h"

#include "base/grow.h"
#include "detect/rating.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the place of a minute, or where it belongs. */
static size_t place_of(const struct cause_minutes *minutes, uint64_t minute)
{
	size_t low = 0, high = minutes->count;

	/* most come in order */
	if (high && minutes->items[high - 1].minute < minute)
		return high;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (minutes->items[middle].minute < minute)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add(struct cause_minutes *minutes, uint64_t minute, uint64_t ns)
{
	size_t at = place_of(minutes, minute);

	if (at < minutes->count && minutes->items[at].minute == minute) {
		minutes->items[at].ns += ns;
		return 0;
	}
	if (grow(&minutes->items, &minutes->capacity, minutes->count + 1, sizeof(*minutes->items)))
		return -ENOMEM;
	memmove(&minutes->items[at + 1], &minutes->items[at], (minutes->count - at) * sizeof(*minutes->items));
	minutes->items[at] = (struct cause_minute){minute, ns};
	minutes->count++;
	return 0;
}

int causes_rating__add(struct cause_minutes *minutes, uint64_t begin_ns, uint64_t end_ns, uint64_t ns)
{
	uint64_t first = begin_ns / RATING_MINUTE_NS,
		 last = (end_ns > begin_ns ? end_ns - 1 : begin_ns) / RATING_MINUTE_NS;

	if (last - first > CAUSE_MINUTES_MOST)
		first = last; /* times of a damaged file */
	for (uint64_t minute = first; minute <= last; minute++) {
		uint64_t to = rating__before(begin_ns, end_ns, ns, (minute + 1) * RATING_MINUTE_NS);
		uint64_t from = minute == first ? 0 : rating__before(begin_ns, end_ns, ns, minute * RATING_MINUTE_NS);

		if (add(minutes, minute, (minute == last ? ns : to) - from))
			return -ENOMEM;
	}
	return 0;
}

int causes_rating__merge(struct cause_minutes *into, const struct cause_minutes *from)
{
	for (size_t i = 0; i < from->count; i++) {
		if (add(into, from->items[i].minute, from->items[i].ns))
			return -ENOMEM;
	}
	return 0;
}

/* Sums by minute of a job that has these borders. */
struct minutes_of_job {
	const struct cause_minutes *minutes;
	uint64_t begin_ns, end_ns;
};

/* Returns the part of a minute, as far as it is the job's, that lies in [from_ns, to_ns). */
static double part_of(const struct minutes_of_job *of, uint64_t minute, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t begin = minute * RATING_MINUTE_NS, end = begin + RATING_MINUTE_NS;

	begin = of->begin_ns > begin && of->begin_ns < end ? of->begin_ns : begin;
	end = of->end_ns < end && of->end_ns > begin ? of->end_ns : end;
	from_ns = from_ns > begin ? from_ns : begin;
	to_ns = to_ns < end ? to_ns : end;
	return to_ns > from_ns ? (double)(to_ns - from_ns) / (double)(end - begin) : 0;
}

static double sum(const void *arg, uint64_t from_ns, uint64_t to_ns)
{
	const struct minutes_of_job *of = arg;
	const struct cause_minute *items = of->minutes->items;
	double ns = 0;

	for (size_t at = place_of(of->minutes, from_ns / RATING_MINUTE_NS);
	     at < of->minutes->count && items[at].minute <= to_ns / RATING_MINUTE_NS; at++)
		ns += part_of(of, items[at].minute, from_ns, to_ns) * (double)items[at].ns;
	return ns;
}

void causes_rating__rate(const struct cause_minutes *costs, const struct job_time *time, double *share,
			 double *denominator_ns)
{
	const struct minutes_of_job cost = {costs, time->begin_ns, time->end_ns};
	const struct minutes_of_job all = {&time->minutes, time->begin_ns, time->end_ns};
	struct rating rating = {NAN, NAN};

	if (costs->count)
		rating = rating__of(&(struct rating_input){
		    .job_begin_ns = time->begin_ns,
		    .job_end_ns = time->end_ns,
		    .begin_ns = costs->items[0].minute * RATING_MINUTE_NS,
		    .end_ns = costs->items[costs->count - 1].minute * RATING_MINUTE_NS + RATING_MINUTE_NS - 1,
		    .cost = sum,
		    .cost_arg = &cost,
		    .time = sum,
		    .time_arg = &all,
		});
	*share = rating.share;
	*denominator_ns = rating.denominator_ns;
}
