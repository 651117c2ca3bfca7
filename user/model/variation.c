/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/variation.h"

#include <errno.h>
#include <math.h>
#include <string.h>

int variation__add_waiting(struct variation *variation)
{
	int error = 0;

	for (unsigned at = 0; at < variation->waiting; at++) {
		double value = variation->value[at], delta = value - variation->moments.mean;

		error =
		    histogram__add_to(&variation->batches, histogram__index_of(value, VARIATION_OCTAVE_BITS), 1, value);
		if (error)
			break;
		moments__add(&variation->moments, value);
		for (int i = 0; variation->parted && i < VARIATION_PARTS; i++) {
			double part = variation->part[at][i];

			variation->part_mean[i] += (part - variation->part_mean[i]) / variation->moments.n;
			variation->part_with[i] += delta * (part - variation->part_mean[i]);
		}
	}
	variation->waiting = 0;
	memset(variation->value, 0, sizeof(variation->value));
	if (variation->parted)
		memset(variation->part, 0, sizeof(variation->part));
	return error;
}

int variation__close(struct variation *variation)
{
	if (variation__full(variation))
		variation__let_wait(variation);
	variation->open_n = 0;
	variation->open_ns = variation->open_counted = 0;
	memset(variation->open_part, 0, sizeof(variation->open_part));
	return variation__add_waiting(variation);
}

int variation__merge(struct variation *into, const struct variation *from)
{
	double a = into->moments.n, b = from->moments.n, delta = from->moments.mean - into->moments.mean;

	into->time_ns += from->time_ns;
	if (!(b > 0))
		return 0;
	for (int i = 0; i < VARIATION_PARTS; i++) {
		double step = from->part_mean[i] - into->part_mean[i];

		into->part_with[i] += from->part_with[i] + (a > 0 ? delta * step * a * b / (a + b) : 0);
		into->part_mean[i] = a > 0 ? into->part_mean[i] + step * b / (a + b) : from->part_mean[i];
	}
	into->fragments += from->fragments;
	into->counted += from->counted;
	moments__merge(&into->moments, &from->moments);
	return histogram__merge(&into->batches, &from->batches);
}

/* A point of the distribution: so many values are not above it. */
struct point {
	double place, value;
};

static struct point middle_of(const struct histogram_bucket *bucket, double before)
{
	return (struct point){before + bucket->n / 2, bucket->sum_ns / bucket->n};
}

static double between(struct point low, struct point high, double at)
{
	return high.place > low.place
		   ? low.value + (high.value - low.value) * (at - low.place) / (high.place - low.place)
		   : low.value;
}

double variation__quantile_of(const struct histogram *histogram, double share, double least, double most)
{
	const struct histogram_bucket *bucket = histogram->buckets, *last;
	double at = share * histogram->n, before = 0;
	struct point middle, end;

	if (!histogram->count)
		return NAN;
	last = bucket + histogram->count - 1;
	while (bucket < last && before + bucket->n < at)
		before += bucket++->n;
	middle = middle_of(bucket, before);
	if (at < middle.place) {
		end = (struct point){0, least};
		if (bucket > histogram->buckets)
			end = middle_of(bucket - 1, before - bucket[-1].n);
		return bucket > histogram->buckets && bucket[-1].index + 1 < bucket->index ? middle.value
											   : between(end, middle, at);
	}
	end = bucket < last ? middle_of(bucket + 1, before + bucket->n) : (struct point){histogram->n, most};
	return bucket < last && bucket[1].index > bucket->index + 1 ? middle.value : between(middle, end, at);
}

double variation__quantile(const struct variation *variation, double share)
{
	return variation__quantile_of(&variation->batches, share, variation->moments.least, variation->moments.most);
}

static const struct archive_column variation_columns[] = {
    ARCHIVE_ONE(struct variation, moments.n),	   ARCHIVE_ONE(struct variation, moments.mean),
    ARCHIVE_ONE(struct variation, moments.m2),	   ARCHIVE_ONE(struct variation, moments.m3),
    ARCHIVE_ONE(struct variation, moments.m4),	   ARCHIVE_ONE(struct variation, moments.least),
    ARCHIVE_ONE(struct variation, moments.most),   ARCHIVE_ONE(struct variation, batches.n),
    ARCHIVE_ONE(struct variation, batches.sum_ns), ARCHIVE_MANY(struct variation, part_mean),
    ARCHIVE_MANY(struct variation, part_with),	   ARCHIVE_ONE(struct variation, fragments),
    ARCHIVE_ONE(struct variation, counted),	   ARCHIVE_ONE(struct variation, time_ns),
    ARCHIVE_ONE(struct variation, open_bin),	   ARCHIVE_ONE(struct variation, open_n),
    ARCHIVE_ONE(struct variation, open_ns),	   ARCHIVE_ONE(struct variation, open_counted),
    ARCHIVE_MANY(struct variation, open_part),	   ARCHIVE_ONE(struct variation, waiting),
    ARCHIVE_ONE(struct variation, parted),	   ARCHIVE_MANY(struct variation, value),
    ARCHIVE_GRID(struct variation, part),
};
static const struct archive_table variation_table = ARCHIVE_TABLE("variation", struct variation, variation_columns);

void variation__archive(struct archive *archive, struct variation *variation)
{
	archive__record(archive, &variation_table, variation);
	histogram__archive(archive, &variation->batches);
	archive__check(archive,
		       variation->waiting < VARIATION_WAITING && variation->moments.n == variation->batches.n &&
			   !(variation->moments.n > 0 && !variation->batches.count),
		       "a variation contradicts itself");
}

void variation__clear(struct variation *variation)
{
	histogram__clear(&variation->batches);
	*variation = (struct variation){0};
}

size_t variation__bytes(const struct variation *variation)
{
	return variation ? sizeof(*variation) + variation->batches.capacity * sizeof(struct histogram_bucket) : 0;
}
