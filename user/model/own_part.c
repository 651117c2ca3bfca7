// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/own_part.h"

#include "model/judgement.h"
#include "model/reference.h"

int own_part__add(struct series *series, const struct bundle_rec *rec, float least_ns)
{
	uint64_t bin = bundle_rec__bin(rec);
	int error = 0;

	if (series->least_ns > 0 && bin != series->least_bin) {
		error = histogram__add(&series->least, series->least_ns, 1);
		series->least_ns = 0;
	}
	series->least_bin = bin;
	if (series->least_ns <= 0 || least_ns < series->least_ns)
		series->least_ns = least_ns;
	return error;
}

/* Members of a histogram between centre / reach and centre * reach. */
static double members(const struct histogram *histogram, double centre_ns, double reach)
{
	double n = 0;

	for (size_t i = 0; i < histogram->count; i++) {
		double mean = histogram->buckets[i].sum_ns / histogram->buckets[i].n;

		if (mean * reach >= centre_ns && mean <= centre_ns * reach)
			n += histogram->buckets[i].n;
	}
	return n;
}

void own_part__refresh(struct series_book *book, const struct workload *workload)
{
	double part_ns = 0;
	bool steady = false;

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct histogram *least = &book->series[i].least;
		struct reference reference;

		if (least->n < LEAST_MEMBERS)
			continue;
		reference = reference__of(least, book->config);
		if (!reference.groups || (part_ns > 0 && reference.expected_ns >= part_ns))
			continue;
		part_ns = reference.expected_ns;
		steady = members(least, part_ns, RATIO_APART) >= SHARE_MOST * members(least, part_ns, RATIO_WIDE);
	}
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		book->series[i].part_ns = (float)part_ns;
		book->series[i].part_steady = steady;
	}
}
