/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The second half of evidence.h: bins in which two states of one rank are slow together. */
#include "detect/evidence.h"

#include "base/grow.h"
#include "detect/bundle_shares.h"

#include <math.h>

struct entry {
	uint32_t variance, row, workload, series;
	uint64_t bin;
	double n, net, ref, lost;
	double fragment_ns; /* mean duration of its fragments */
};

static int compare(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->variance != right->variance)
		return left->variance < right->variance ? -1 : 1;
	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	if (left->bin != right->bin)
		return left->bin < right->bin ? -1 : 1;
	if (left->workload != right->workload)
		return left->workload < right->workload ? -1 : 1;
	return (left->series > right->series) - (left->series < right->series);
}

/* The entries of all variances. */
struct entries {
	struct entry *items;
	size_t count, capacity;
};

/* Adds a share of a bundle to the entries of a variance. Returns 0 or -ENOMEM. */
static int add_entry(struct entries *entries, const struct entry *whole, uint32_t variance, double share)
{
	struct entry *entry;

	if (grow(&entries->items, &entries->capacity, entries->count + 1, sizeof(*entries->items)))
		return -ENOMEM;
	entry = &entries->items[entries->count++];
	*entry = *whole;
	entry->variance = variance;
	entry->n *= share;
	entry->net *= share;
	entry->ref *= share;
	entry->lost *= share;
	return 0;
}

/* Adds what a bundle has in a bin to the variances that own it. Returns 0 or -ENOMEM. */
static int add_to_owners(const struct evidence_input *input, const struct variance_book *book, struct entries *entries,
			 const struct entry *whole, enum vapro_class class, double transfer)
{
	enum vapro_class owned[] = {class, HEATMAP_TRANSFERS};

	for (int i = 0; i < 1 + (class == VAPRO_COMMUNICATION); i++) {
		uint32_t owner = heatmap__owner(input->map, whole->row, whole->bin, owned[i]);
		double share = bundle_shares__in(input->map, whole->row, whole->bin, owned[i], transfer);

		if (owner && share > 0 && variance__find(book, owner) && add_entry(entries, whole, owner, share))
			return -ENOMEM;
	}
	return 0;
}

static int collect(const struct evidence_input *input, const struct variance_book *book,
		   const struct bundle_rec *bundles, const float *transfers, size_t count, uint64_t view,
		   struct entries *entries)
{
	for (size_t i = 0; i < count; i++) {
		const struct bundle_rec *rec = &bundles[i];
		const struct series *series = &input->series->series[rec->series];
		uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);
		struct loss loss = bundle_rec__loss(rec);
		double attributed =
		    loss.cpu + (series->class == VAPRO_COMMUNICATION ? 0 : loss.blocked) + loss.frequency;

		/* Before the view each bundle counts once, when it arrives. */
		uint64_t from = rec->is_new && !(rec->flags & VAPRO_BUNDLE_OPEN) ? input->map->begin : view;

		if (!rec->covered || series->class == VAPRO_IO || last >= input->end)
			continue;
		for (uint64_t bin = first < from ? from : first; bin <= last && bin < input->end; bin++) {
			double share = bundle_rec__share(rec, bin);
			struct entry whole = {
			    .row = series->row,
			    .workload = series->workload,
			    .series = rec->series,
			    .bin = bin,
			    .n = bundle_rec__units(rec) * share,
			    .fragment_ns = (rec->sum_ns - attributed) / bundle_rec__units(rec),
			    .net = (rec->sum_ns - attributed) * share,
			    .ref = (double)rec->reference * rec->n * share,
			    .lost = loss.lost * share,
			};

			if (add_to_owners(input, book, entries, &whole, series->class,
					  bundle_shares__transfer(rec, transfers, i)))
				return -ENOMEM;
		}
	}
	return 0;
}

/*
 * Where fragments are longer than bins, two states never share one: the time compared together is as long as a few
 * fragments. Entries are in order by variance and row.
 */
static void widen(struct entry *entries, size_t count)
{
	for (size_t i = 0, next; i < count; i = next) {
		double ns = 0, weighted = 0;
		uint64_t width;

		for (next = i; next < count && entries[next].variance == entries[i].variance &&
			       entries[next].row == entries[i].row;
		     next++) {
			ns += entries[next].net;
			weighted += entries[next].net * entries[next].fragment_ns;
		}
		width = 1 + (ns > 0 ? (uint64_t)(HEATMAP_AROUND_FRAGMENTS * weighted / ns / (double)VAPRO_BIN_NS) : 0);
		width = width > HEATMAP_AROUND_MOST ? HEATMAP_AROUND_MOST : width;
		for (size_t k = i; k < next; k++)
			entries[k].bin -= entries[k].bin % width;
	}
}

/* Whether a state is slower than its reference, and than outside the variance. */
static bool slow(const struct evidence_input *input, const struct variance *variance, const struct entry *sum)
{
	const struct tally_series *entry = tally__of(&variance->total, sum->series);
	double usual =
	    series__usual_ns(&input->series->series[sum->series], input->config, true, entry ? &entry->own : NULL);

	return usual > 0 && sum->ref < input->config->threshold * sum->net &&
	       usual * sum->n < input->config->threshold * sum->net;
}

int evidence__pairs(struct variance_book *book, const struct evidence_input *input, const struct bundle_rec *rec,
		    const float *transfers, size_t count, uint64_t view, uint64_t retire)
{
	struct entries all = {0};
	struct entry *entries;
	size_t entry_count, next;
	int error;

	error = collect(input, book, rec, transfers, count, view < input->map->begin ? input->map->begin : view, &all);
	entries = all.items;
	entry_count = all.count;
	if (error)
		goto cleanup;
	if (entry_count) {
		qsort(entries, entry_count, sizeof(*entries), compare);
		widen(entries, entry_count);
		qsort(entries, entry_count, sizeof(*entries), compare);
	}
	for (size_t i = 0; i < entry_count; i = next) {
		struct variance *variance = variance__find(book, entries[i].variance);
		struct tally *tally = entries[i].bin < retire ? &variance->retiring : &variance->staying;
		unsigned states = 0;
		uint32_t counted = SERIES_NONE;
		double lost = 0;

		/* One row and bin, state by state. Several threads in one state are one state. */
		for (next = i; next < entry_count && entries[next].variance == entries[i].variance &&
			       entries[next].row == entries[i].row && entries[next].bin == entries[i].bin;) {
			struct entry sum = entries[next];

			for (next++; next < entry_count && entries[next].variance == sum.variance &&
				     entries[next].row == sum.row && entries[next].bin == sum.bin &&
				     entries[next].series == sum.series;
			     next++) {
				sum.n += entries[next].n;
				sum.net += entries[next].net;
				sum.ref += entries[next].ref;
				sum.lost += entries[next].lost;
			}
			lost += sum.lost;
			if (sum.workload != counted && slow(input, variance, &sum)) {
				counted = sum.workload;
				states++;
			}
		}
		if (lost <= 0)
			continue;
		tally->pair_base += lost;
		variance->total.pair_base += lost;
		if (states >= 2) {
			tally->pair_lost += lost;
			variance->total.pair_lost += lost;
		}
	}
cleanup:
	free(entries);
	return error;
}
