// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/samples.h"

#include "base/grow.h"
#include "model/batches.h"

/* The mean of two samples, by their fragments. */
static struct sample merged(const struct sample *a, const struct sample *b)
{
	double n = a->n + b->n;

	return (struct sample){.mean_ns = (a->mean_ns * a->n + b->mean_ns * b->n) / n,
			       .size = (a->size * a->n + b->size * b->n) / n,
			       .n = n};
}

static void halve(struct samples *samples)
{
	for (size_t i = 0; i < samples->count / 2; i++)
		samples->items[i] = merged(&samples->items[2 * i], &samples->items[2 * i + 1]);
	samples->count /= 2;
	samples->batches = samples->batches ? 2 * samples->batches : 2;
}

static int push(struct samples *samples)
{
	if (samples->count == SAMPLES_MOST)
		halve(samples);
	if (grow(&samples->items, &samples->capacity, samples->count + 1, sizeof(*samples->items)))
		return -ENOMEM;
	samples->items[samples->count++] = samples->open;
	samples->open = (struct sample){0};
	samples->open_batches = 0;
	return 0;
}

/* Adds the first bin to the sample that is being filled, which ends where it has enough batches. */
static int shift_bin(struct samples *samples)
{
	const struct sample sum = samples->bins[0].sum;

	samples->bin_count--;
	memmove(samples->bins, samples->bins + 1, samples->bin_count * sizeof(*samples->bins));
	samples->open = merged(&samples->open, &sum);
	samples->open_members += sum.n;
	if (samples->open_members < BATCH_MEMBERS)
		return 0;
	samples->open_members = 0;
	return ++samples->open_batches >= samples->batches ? push(samples) : 0;
}

/* Returns the place of a bin, or of the first later one. */
static unsigned place_of(const struct samples *samples, uint64_t number)
{
	unsigned at = samples->bin_count;

	while (at && samples->bins[at - 1].number >= number)
		at--;
	return at;
}

int samples__add(struct samples *samples, uint64_t number, uint32_t n, double ns, double size)
{
	const struct sample added = {.mean_ns = ns / n, .size = size, .n = n};
	unsigned at = place_of(samples, number);
	int error = 0;

	samples->members += n;
	if (at == samples->bin_count || samples->bins[at].number != number) {
		if (samples->bin_count == SAMPLES_BINS) {
			error = shift_bin(samples);
			at -= at > 0;
		}
		memmove(samples->bins + at + 1, samples->bins + at, (samples->bin_count - at) * sizeof(*samples->bins));
		samples->bins[at] = (struct sample_bin){.number = number};
		samples->bin_count++;
	}
	samples->bins[at].sum = merged(&samples->bins[at].sum, &added);
	return error;
}

int samples__close(struct samples *samples)
{
	int error = 0;

	while (!error && samples->bin_count)
		error = shift_bin(samples);
	return error;
}

void samples__reduce(struct samples *samples, size_t most)
{
	while (samples->count > most && samples->count > 1) {
		/* the last of an odd number joins its neighbour: none is lost */
		if (samples->count % 2) {
			samples->items[samples->count - 2] =
			    merged(&samples->items[samples->count - 2], &samples->items[samples->count - 1]);
			samples->count--;
			continue;
		}
		halve(samples);
	}
}

void samples__clear(struct samples *samples)
{
	free(samples->items);
	*samples = (struct samples){0};
}
