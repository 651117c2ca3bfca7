/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heat map of one job (papers/000 section 3.5): per row (rank; threads summed) and 200 ms bin
 * what each class cost and should have cost. A ring of HEATMAP_SPAN bins is kept, so that a region
 * that crosses windows is one region.
 *
 * `closed` holds fragments that ended. Within the current view it is built anew in each window, since
 * references improve; before the view it is frozen, and only fragments that arrive late and reach
 * back are added. `open` holds fragments that have not ended; it is built anew in each window, so
 * the final fragment replaces what was shown while it was open and nothing counts twice.
 *
 * lost = cost - reference, summed over a bin: within one bin a fast bundle offsets a slow one, since
 * the reference is a mean; between bins nothing is offset.
 */
#ifndef VAPRO_HEATMAP_H
#define VAPRO_HEATMAP_H

#include "model/kept.h"

#include <vapro/config.h>

#define HEATMAP_SPAN 512 /* least bins kept */
#define HEATMAP_MORE 300 /* bins kept beyond the view */
#define HEATMAP_LEAST 24 /* the same, once its history was cut */

struct cell_side {
	float dur, ref;	    /* of covered fragments, ns */
	float cpu, blocked; /* of their loss: told by the kernel */
	float seen;	    /* of all fragments, covered or not */
};

struct cell_class {
	struct cell_side closed, open;
	uint32_t owner; /* id of the variance the cell belongs to, 0 = none */
};

struct cell {
	struct cell_class of[VAPRO_CLASSES];
	/* Communication: waiting for a late peer, and transfer, which everybody in the group shares. */
	float late, transfer, open_late;
};

struct heatmap {
	struct cell **rows; /* `ring` cells each, at heatmap__slot */
	size_t row_count, row_capacity;
	uint64_t span;		       /* most bins kept */
	uint64_t ring;		       /* room for them: a power of two */
	uint64_t view;		       /* bins of the longest view so far */
	bool cut;		       /* of its history little is kept */
	uint64_t begin, end;	       /* bins kept: [begin, end); begin == end: nothing yet */
	uint32_t *told[VAPRO_CLASSES]; /* times that a bin was emitted, likewise */
};

void heatmap__free(struct heatmap *map);

/* Makes room for rows and for a view of so many bins. Returns 0 or -ENOMEM. */
int heatmap__rows(struct heatmap *map, size_t count, uint64_t view_bins);

/*
 * Gives up history for good: from now on at most HEATMAP_LEAST bins beyond the view are kept. Returns
 * how many bins were forgotten. Without memory for one row more it stays as it is.
 */
uint64_t heatmap__cut(struct heatmap *map);

/* What it holds, and what growing regions on it takes. */
size_t heatmap__bytes(const struct heatmap *map);

/* Moves the ring's end on to bin end; bins that fall out are forgotten. first is the oldest bin of a new ring. */
void heatmap__advance(struct heatmap *map, uint64_t first, uint64_t end);

/* Empties what is built anew: `closed` and waiting from bin `view` on, and everything open. */
void heatmap__clear(struct heatmap *map, uint64_t view);

/* Adds a bundle to its bins within [from, to). */
void heatmap__add(struct heatmap *map, const struct kept *kept, uint32_t row, enum vapro_class class, uint64_t from,
		  uint64_t to);

static inline bool heatmap__has(const struct heatmap *map, uint64_t bin)
{
	return bin >= map->begin && bin < map->end;
}

static inline size_t heatmap__slot(const struct heatmap *map, uint64_t bin)
{
	return bin & (map->ring - 1);
}

static inline struct cell *heatmap__cell(const struct heatmap *map, uint32_t row, uint64_t bin)
{
	return &map->rows[row][heatmap__slot(map, bin)];
}

static inline double cell__dur(const struct cell *cell, enum vapro_class class)
{
	return (double)cell->of[class].closed.dur + cell->of[class].open.dur;
}

static inline double cell__lost(const struct cell *cell, enum vapro_class class)
{
	const struct cell_class *of = &cell->of[class];

	return (double)of->closed.dur - of->closed.ref + of->open.dur - of->open.ref;
}

static inline double cell__told(const struct cell *cell, enum vapro_class class)
{
	const struct cell_class *of = &cell->of[class];
	double told = (double)of->closed.cpu + of->open.cpu;

	/* In MPI being asleep is a way of waiting; only elsewhere does it tell of something. */
	return class == VAPRO_COMMUNICATION ? told : told + of->closed.blocked + of->open.blocked;
}

/* Normalised performance 0..1, NAN where less than valid_bin of the bin is covered. */
double cell__performance(const struct cell *cell, enum vapro_class class, const struct vapro_config *config);

#endif
