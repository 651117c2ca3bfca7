/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/bundle_shares.h"

#include "base/grow.h"

#include <math.h>

/* A bundle whose parts are found; transfer: the share of its loss that is transfer. */
struct sharing {
	const struct heatmap *map;
	const struct bundle_rec *rec;
	uint32_t row;
	bool retiring;
	double transfer;
};

static uint32_t owner_of(const struct sharing *sharing, uint64_t bin, enum vapro_class of, bool *guest)
{
	uint32_t owner = heatmap__owner(sharing->map, sharing->row, bin, of);

	*guest = !owner && of == VAPRO_COMMUNICATION;
	return *guest ? heatmap__owner(sharing->map, sharing->row, bin, VAPRO_COMPUTATION) : owner;
}

static int add(struct parts *parts, const struct part *part)
{
	if (!part->variance || part->share <= 0)
		return 0;
	if (grow(&parts->items, &parts->capacity, parts->count + 1, sizeof(*parts->items)))
		return -ENOMEM;
	parts->items[parts->count++] = *part;
	return 0;
}

double bundle_shares__transfer(const struct bundle_rec *rec, const float *transfers, size_t i)
{
	double lost = transfers && transfers[i] > 0 ? bundle_rec__loss(rec).lost : 0;

	return lost > 0 ? fmin(1, transfers[i] / lost) : 0;
}

double bundle_shares__in(const struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class of, double transfer)
{
	/* the rest has no owner where it is not slow by itself (detect/region.h) */
	if (of == HEATMAP_TRANSFERS)
		return heatmap__owner(map, row, bin, VAPRO_COMMUNICATION) ? transfer : 1;
	return transfer > 0 && heatmap__owner(map, row, bin, HEATMAP_TRANSFERS) ? 1 - transfer : 1;
}

/* Finds the parts of a bundle that belong to the owners of its class, or of its transfers. Returns 0 or -ENOMEM. */
static int add_parts(struct parts *parts, const struct sharing *sharing, enum vapro_class of)
{
	const struct heatmap *map = sharing->map;
	const struct bundle_rec *rec = sharing->rec;
	uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);
	struct part part = {.rec = rec, .retiring = sharing->retiring};

	for (uint64_t bin = first < map->begin ? map->begin : first; bin <= last && bin < map->end; bin++) {
		bool guest;
		uint32_t owner = owner_of(sharing, bin, of, &guest);
		double share = bundle_rec__share(rec, bin);

		/* Time before the map counts in the oldest bin that is left. */
		if (bin == map->begin && first < bin)
			share += (double)(bin * VAPRO_BIN_NS - rec->start_ns) / (double)(rec->end_ns - rec->start_ns);
		if (owner != part.variance || guest != part.guest) {
			if (add(parts, &part))
				return -ENOMEM;
			part.variance = owner;
			part.guest = guest;
			part.share = 0;
			part.begin = bin;
		}
		part.share += (float)(share * bundle_shares__in(map, sharing->row, bin, of, sharing->transfer));
		part.end = bin + 1;
	}
	return add(parts, &part);
}

int bundle_shares__find(struct parts *parts, const struct heatmap *map, const struct series_book *book,
			const struct bundle_rec *bundles, const float *transfers, size_t count, uint64_t end,
			uint64_t retire)
{
	for (size_t i = 0; i < count; i++) {
		const struct bundle_rec *rec = &bundles[i];
		const struct series *series = &book->series[rec->series];
		uint64_t last = bundle_rec__bin(rec);
		bool open = rec->flags & VAPRO_BUNDLE_OPEN;
		struct sharing sharing = {
		    .map = map, .rec = rec, .row = series->row, .retiring = !open && last < retire};

		if (!rec->covered || last < map->begin || (last >= end && !open))
			continue;
		sharing.transfer = bundle_shares__transfer(rec, transfers, i);
		if (add_parts(parts, &sharing, series->class) ||
		    (series->class == VAPRO_COMMUNICATION && add_parts(parts, &sharing, HEATMAP_TRANSFERS)))
			return -ENOMEM;
	}
	return 0;
}

int bundle_shares__tally(const struct parts *parts, struct variance_book *book, const struct series_book *series)
{
	struct variance *variance = NULL;

	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->items[i];

		if (!variance || variance->id != part->variance)
			variance = variance__find(book, part->variance);
		if (!variance)
			continue;
		if (tally__add(part->retiring ? &variance->retiring : &variance->staying, part->rec,
			       series->series[part->rec->series].class, part->share, part->guest, part->begin,
			       part->end))
			return -ENOMEM;
	}
	for (size_t i = 0; i < book->count; i++) {
		variance = &book->variances[i];
		if (tally__merge(&variance->total, &variance->history) ||
		    tally__merge(&variance->total, &variance->retiring) ||
		    tally__merge(&variance->total, &variance->staying))
			return -ENOMEM;
	}
	return 0;
}
