/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/histogram.h"

#include "base/grow.h"

#include <math.h>

#define CELLS_PER_OCTAVE (HISTOGRAM_PER_OCTAVE / HISTOGRAM_PER_CELL)

double histogram__log_width(uint32_t cell)
{
	double low = cell < CELLS_PER_OCTAVE ? (cell ? cell : 0.5) : CELLS_PER_OCTAVE + cell % CELLS_PER_OCTAVE;

	return log((low + 1) / low);
}

/* The bucket of an index, made where it is missing; NULL when out of memory. */
static struct histogram_bucket *bucket_of(struct histogram *histogram, uint32_t index)
{
	size_t low = 0;

	/* The half is unpredictable: no branch depends on it. */
	for (size_t left = histogram->count; left; left /= 2) {
		size_t half = left - left / 2;

		low += histogram->buckets[low + half - 1].index < index ? half : 0;
	}
	if (low == histogram->count || histogram->buckets[low].index != index) {
		if (grow(&histogram->buckets, &histogram->capacity, histogram->count + 1, sizeof(*histogram->buckets)))
			return NULL;
		memmove(&histogram->buckets[low + 1], &histogram->buckets[low],
			(histogram->count - low) * sizeof(*histogram->buckets));
		histogram->buckets[low] = (struct histogram_bucket){.index = index};
		histogram->count++;
	}
	return &histogram->buckets[low];
}

int histogram__add_to(struct histogram *histogram, uint32_t index, double n, double sum_ns)
{
	struct histogram_bucket *bucket = bucket_of(histogram, index);

	if (!bucket)
		return -ENOMEM;
	bucket->n += n;
	bucket->sum_ns += sum_ns;
	histogram->n += n;
	histogram->sum_ns += sum_ns;
	return 0;
}

int histogram__add(struct histogram *histogram, double mean_ns, double n)
{
	return histogram__add_to(histogram, histogram__index(mean_ns), n, mean_ns * n);
}

int histogram__merge(struct histogram *histogram, const struct histogram *from)
{
	/* by bucket: the mean of a bucket's members may round to the next one */
	for (size_t i = 0; i < from->count; i++) {
		if (histogram__add_to(histogram, from->buckets[i].index, from->buckets[i].n, from->buckets[i].sum_ns))
			return -ENOMEM;
	}
	return 0;
}

void histogram__clear(struct histogram *histogram)
{
	free(histogram->buckets);
	*histogram = (struct histogram){0};
}

static const struct archive_column bucket_columns[] = {
    ARCHIVE_ONE(struct histogram_bucket, index),
    ARCHIVE_ONE(struct histogram_bucket, n),
    ARCHIVE_ONE(struct histogram_bucket, sum_ns),
};
static const struct archive_table bucket_table = ARCHIVE_TABLE("buckets", struct histogram_bucket, bucket_columns);

void histogram__archive(struct archive *archive, struct histogram *histogram)
{
	archive__rows(archive, &bucket_table, &histogram->buckets, &histogram->count, &histogram->capacity);
	for (size_t i = 0; archive__reads(archive) && i < histogram->count; i++) {
		const struct histogram_bucket *bucket = &histogram->buckets[i];

		archive__check(archive, bucket->n > 0 && (!i || bucket->index > bucket[-1].index),
			       "a histogram is not in order");
	}
}
