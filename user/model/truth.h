/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * True classes of bundles (NDJSON's `truth`), counted by the cell or workload of the bundle, so that
 * clusters may be scored whenever they are formed. A zeroed object is empty.
 */
#ifndef VAPRO_TRUTH_H
#define VAPRO_TRUTH_H

#include "base/archive.h"
#include "base/table.h"

struct truth_count {
	uint32_t workload; /* workload of the series book */
	uint32_t cell;	   /* handle in the workload's clusters, BUNDLE_NO_CELL or BUNDLE_NO_WORKLOAD */
	uint32_t truth;
	uint64_t n;
};

struct cluster_truths {
	struct truth_count *items;
	size_t count, capacity;
	struct table *by_place;
};

/* Returns 0 or -ENOMEM. */
int truth__add(struct cluster_truths *truths, uint32_t workload, uint32_t cell, uint32_t truth, uint64_t n);
/* Writes or reads all counts; what they refer to is checked by the owner. */
void truth__archive(struct archive *archive, struct cluster_truths *truths);
void truth__clear(struct cluster_truths *truths);

#endif
