/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What waiting.c and slow_path.c share: the excess of the calls of one view. */
#ifndef VAPRO_WAITING_PRIVATE_H
#define VAPRO_WAITING_PRIVATE_H

#include "detect/waiting.h"

/* Communicators beyond these wait together with the whole job, which calls less of it transfer. */
#define GROUPS_MAX 8

struct group {
	uint32_t id;
	unsigned char *uses; /* row has called it at least once, ever */
	size_t uses_capacity;
};

/* The excess of a bundle that ended in the view. */
struct excess {
	uint32_t group, workload, row, n;
	uint64_t start_ns, end_ns;
	double ns, reference_ns; /* of all n */
	double transfer_ns, path_ns;
};

/* The least excess of a group's members in a bin. */
struct least {
	double ns;
	size_t rows; /* that have an excess */
	bool known;  /* settled: no member is without */
};

struct waiting {
	struct group groups[GROUPS_MAX];
	size_t group_count, rows, bins, reach;
	uint64_t view;
	struct heatmap *map;
	struct excess *items;
	size_t item_count, item_capacity;
	uint32_t *last;	      /* by row: the operation that it was met in last */
	uint32_t operation;   /* number of the latest one; from 1 */
	struct least *least;  /* by leader */
	double *late;	      /* by bin: the most that any member lost beside communication */
	double *paths, *sums; /* scratch, by row */
	size_t last_capacity, late_capacity, path_capacity, sum_capacity, least_capacity;
};

/* The bin of the view, relative to its begin, in which an excess ends. */
size_t waiting__end_bin(const struct waiting *waiting, const struct excess *item);

/* Brings up to date what ranks may have been late by. Returns 0 or -ENOMEM. */
int slow_path__begin(struct waiting *waiting);

/* Items [from, to) are those of one call-site by their ends: finds what of their excess is a slow path. */
void slow_path__find(struct waiting *waiting, const struct series_book *book, size_t from, size_t to);

/*
 * Takes back the slow paths of ranks that computed less than another one did in the view, by half of them or more:
 * the other one came late, with more work or less speed than is known.
 */
void slow_path__drop(struct waiting *waiting, const struct stg_job *job);

#endif
