/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rating of a cause: the greatest share of the time of all ranks that it cost in any hour of the job, in steps of
 * whole minutes; of the whole job while that is shorter. Costs and time are whole nanoseconds by minute, so that they
 * add in any order.
 */
#include "analysis/causes_private.h"

#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_NS 60000000000ULL
#define HOUR 60 /* minutes */

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

/* The part of a time before a moment, of ns that are spread evenly over [begin, end). */
static uint64_t before(uint64_t begin_ns, uint64_t end_ns, uint64_t ns, uint64_t moment_ns)
{
	if (moment_ns <= begin_ns)
		return 0;
	if (moment_ns >= end_ns)
		return ns;
	return (uint64_t)((unsigned __int128)ns * (moment_ns - begin_ns) / (end_ns - begin_ns));
}

int causes_rating__add(struct cause_minutes *minutes, uint64_t begin_ns, uint64_t end_ns, uint64_t ns)
{
	uint64_t first = begin_ns / MINUTE_NS, last = (end_ns > begin_ns ? end_ns - 1 : begin_ns) / MINUTE_NS;

	if (last - first > CAUSE_MINUTES_MOST)
		first = last; /* times of a damaged file */
	for (uint64_t minute = first; minute <= last; minute++) {
		uint64_t to = before(begin_ns, end_ns, ns, (minute + 1) * MINUTE_NS);
		uint64_t from = minute == first ? 0 : before(begin_ns, end_ns, ns, minute * MINUTE_NS);

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

/* The sum of an hour from a minute on; *at moves with it: the hours come in order. */
static double sum_hour(const struct cause_minutes *minutes, uint64_t minute, size_t *at)
{
	double sum = 0;

	while (*at < minutes->count && minutes->items[*at].minute < minute)
		++*at;
	for (size_t i = *at; i < minutes->count && minutes->items[i].minute < minute + HOUR; i++)
		sum += (double)minutes->items[i].ns;
	return sum;
}

void causes_rating__rate(const struct cause_minutes *costs, const struct job_time *time, double *share,
			 double *denominator_ns)
{
	const struct cause_minutes *all = &time->minutes;
	double cost = 0, sum = 0;
	uint64_t first, last;
	size_t at = 0, of = 0;

	*share = NAN;
	*denominator_ns = NAN;
	for (size_t i = 0; i < costs->count; i++)
		cost += (double)costs->items[i].ns;
	for (size_t i = 0; i < all->count; i++)
		sum += (double)all->items[i].ns;
	if (sum <= 0 || !costs->count)
		return;
	*share = fmin(1, cost / sum);
	*denominator_ns = sum;
	if (time->end_ns - time->begin_ns <= HOUR * MINUTE_NS)
		return;
	*share = 0;
	last = all->items[all->count - 1].minute;
	first = all->items[0].minute;
	if (costs->items[0].minute + 1 > first + HOUR)
		first = costs->items[0].minute + 1 - HOUR;
	if (last >= HOUR - 1 && first > last + 1 - HOUR)
		first = last + 1 - HOUR;
	for (uint64_t minute = first; minute <= costs->items[costs->count - 1].minute && minute + HOUR <= last + 1;
	     minute++) {
		double part = sum_hour(costs, minute, &at), hour = sum_hour(all, minute, &of);

		if (hour <= 0 || fmin(1, part / hour) <= *share)
			continue;
		*share = fmin(1, part / hour);
		*denominator_ns = hour;
	}
}
