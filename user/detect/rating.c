// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/rating.h"

#include <math.h>

uint64_t rating__before(uint64_t begin_ns, uint64_t end_ns, uint64_t ns, uint64_t moment_ns)
{
	if (moment_ns <= begin_ns)
		return 0;
	if (moment_ns >= end_ns)
		return ns;
	return (uint64_t)((unsigned __int128)ns * (moment_ns - begin_ns) / (end_ns - begin_ns));
}

/* Remembers a share of the ranks' time where it is more than before. */
static void consider(struct rating *rating, double cost, double time)
{
	double share = time > 0 ? fmin(1, cost / time) : NAN;

	if (isnan(share) || share <= rating->share)
		return;
	rating->share = share;
	rating->denominator_ns = time;
}

struct rating rating__of(const struct rating_input *input)
{
	struct rating rating = {NAN, NAN};
	uint64_t first = input->job_begin_ns, last, from;

	if (input->job_end_ns <= first)
		return rating;
	if (input->job_end_ns - first <= RATING_HOUR_NS) {
		consider(&rating, input->cost(input->cost_arg, 0, UINT64_MAX),
			 input->time(input->time_arg, first, input->job_end_ns));
		return rating;
	}
	last = input->job_end_ns - RATING_HOUR_NS;
	from = input->begin_ns > first + RATING_HOUR_NS ? input->begin_ns - RATING_HOUR_NS : first;
	from = from > first ? from / RATING_MINUTE_NS * RATING_MINUTE_NS : first;
	from = from > first ? from : first;
	from = from < last ? from : last;
	/* the first hour begins with the job, the last one ends with it */
	while (from <= last && (from <= input->end_ns || isnan(rating.share))) {
		consider(&rating, input->cost(input->cost_arg, from, from + RATING_HOUR_NS),
			 input->time(input->time_arg, from, from + RATING_HOUR_NS));
		if (from == last)
			break;
		from = (from / RATING_MINUTE_NS + 1) * RATING_MINUTE_NS;
		from = from < last ? from : last;
	}
	return rating;
}
