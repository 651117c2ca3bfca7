/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shares of bundles that lie inside variances, found once per window. Detection adds them up for
 * the loss, diagnosis for its contributions.
 */
#ifndef VAPRO_BUNDLE_SHARES_H
#define VAPRO_BUNDLE_SHARES_H

#include "detect/variance.h"

struct part {
	const struct bundle_rec *rec;
	uint32_t variance; /* id */
	float share;
	uint64_t begin, end; /* bins that it lies in, as far as the map goes back */
	bool guest;	     /* communication in a cell that computation owns, see tally.h */
	bool retiring;	     /* the bundle is dropped after this window */
};

struct parts {
	struct part *items;
	size_t count, capacity;
	/* bins of the window: its view is [view, end); what lies before `retire` retires */
	uint64_t view, retire, end;
};

/*
 * Finds parts of `count` bundles that end before bin `end` or are open; bundles before bin `retire` are retiring.
 * transfers: ns of each bundle's loss that are transfer, NULL where none is. Returns 0 or -ENOMEM.
 */
int bundle_shares__find(struct parts *parts, const struct heatmap *map, const struct series_book *series,
			const struct bundle_rec *rec, const float *transfers, size_t count, uint64_t end,
			uint64_t retire);

/* Returns the share of the loss of bundle number i that is transfer. */
double bundle_shares__transfer(const struct bundle_rec *rec, const float *transfers, size_t i);

/* Returns the share of a bundle in a bin that belongs to the owner of a class, or of the transfers in its calls. */
double bundle_shares__in(const struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class of, double transfer);

/* Adds parts up into the tallies of their variances. Returns 0 or -ENOMEM. */
int bundle_shares__tally(const struct parts *parts, struct variance_book *book, const struct series_book *series);

#endif
