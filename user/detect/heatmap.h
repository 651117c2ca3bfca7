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
	float cpu, blocked; /* of their loss: attributed by the kernel */
	float stolen;	    /* of cpu: what the hypervisor took */
	float seen;	    /* of all fragments, covered or not */
};

/* What a row did in a bin in calls, IO or computation. */
struct cell {
	struct cell_side closed, open;
};

/*
 * A bin lies together for all rows, since all ranks report the same time one after the other. Its parts are
 * arrays by row, there only where something was added: most jobs do not know most of them.
 */
enum heatmap_part {
	HEATMAP_CLOSED,				       /* struct cell_side, by class */
	HEATMAP_OPEN = HEATMAP_CLOSED + VAPRO_CLASSES, /* likewise */
	HEATMAP_OWNER = HEATMAP_OPEN + VAPRO_CLASSES,  /* uint32_t by class: id of the cell's variance, 0 = none */
	HEATMAP_EMITTED =
	    HEATMAP_OWNER + VAPRO_CLASSES, /* unsigned char by class: what was said last, heatmap__hundredths */
	/* float, communication: waiting for a late peer, transfer, which all of the group share, and slow path */
	HEATMAP_LATE = HEATMAP_EMITTED + VAPRO_CLASSES,
	HEATMAP_TRANSFER,
	HEATMAP_PATH,
	HEATMAP_OPEN_LATE,
	HEATMAP_PARTS,
};

struct heatmap_bin {
	void *parts[HEATMAP_PARTS];
	uint32_t emitted[VAPRO_CLASSES]; /* so many times */
};

struct heatmap {
	struct heatmap_bin *bins; /* `ring` of them, at heatmap__slot; those that are not kept are empty */
	size_t row_count, row_capacity;
	uint64_t span;	     /* most bins kept */
	uint64_t ring;	     /* room for them: a power of two */
	uint64_t view;	     /* bins of the longest view so far */
	bool cut;	     /* of its history little is kept */
	double fragment_ns;  /* how long a computation takes that is met at any time, as of the last view */
	uint64_t begin, end; /* bins kept: [begin, end); begin == end: nothing yet */
};

void heatmap__free(struct heatmap *map);

/* Makes room for rows and for a view of so many bins. Returns 0 or -ENOMEM. */
int heatmap__rows(struct heatmap *map, size_t count, uint64_t view_bins);

/*
 * Gives up history for good: from now on at most HEATMAP_LEAST bins beyond the view are kept. Returns
 * how many bins were forgotten. Without memory for a shorter ring it stays as it is.
 */
uint64_t heatmap__cut(struct heatmap *map);

/* What it holds, and what growing regions on it takes. */
size_t heatmap__bytes(const struct heatmap *map);

/* Moves the ring's end on to bin end; bins that fall out are forgotten. first is the oldest bin of a new ring. */
void heatmap__advance(struct heatmap *map, uint64_t first, uint64_t end);

/* Empties what is built anew: `closed` and waiting from bin `view` on, and everything open. */
void heatmap__clear(struct heatmap *map, uint64_t view);

/* Adds a bundle to its bins within [from, to). Returns 0 or -ENOMEM. */
int heatmap__add(struct heatmap *map, const struct kept *kept, uint32_t row, enum vapro_class class, uint64_t from,
		 uint64_t to);

/* Adds ns to HEATMAP_LATE, _TRANSFER, _PATH or _OPEN_LATE of a cell. Returns 0 or -ENOMEM. */
int heatmap__add_wait(struct heatmap *map, enum heatmap_part part, uint32_t row, uint64_t bin, float ns);

/* Makes a variance the owner of a cell. Returns 0 or -ENOMEM. */
int heatmap__own(struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class class, uint32_t id);

/* Keeps what is emitted of a cell. Returns 0 or -ENOMEM. */
int heatmap__emit(struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class class, unsigned char emitted);

/* Takes all cells from their owners. */
void heatmap__disown(struct heatmap *map);

static inline bool heatmap__has(const struct heatmap *map, uint64_t bin)
{
	return bin >= map->begin && bin < map->end;
}

static inline size_t heatmap__slot(const struct heatmap *map, uint64_t bin)
{
	return bin & (map->ring - 1);
}

static inline struct heatmap_bin *heatmap__bin(const struct heatmap *map, uint64_t bin)
{
	return &map->bins[heatmap__slot(map, bin)];
}

static inline struct cell heatmap__cell(const struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class class)
{
	const struct heatmap_bin *at = heatmap__bin(map, bin);
	const struct cell_side *closed = at->parts[HEATMAP_CLOSED + class], *open = at->parts[HEATMAP_OPEN + class];
	struct cell cell = {0};

	if (closed)
		cell.closed = closed[row];
	if (open)
		cell.open = open[row];
	return cell;
}

/* The variance that a cell belongs to, 0 = none. */
static inline uint32_t heatmap__owner(const struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class class)
{
	const uint32_t *owner = heatmap__bin(map, bin)->parts[HEATMAP_OWNER + class];

	return owner ? owner[row] : 0;
}

static inline unsigned char heatmap__emitted(const struct heatmap *map, uint32_t row, uint64_t bin,
					     enum vapro_class class)
{
	const unsigned char *emitted = heatmap__bin(map, bin)->parts[HEATMAP_EMITTED + class];

	return emitted ? emitted[row] : 0;
}

/* HEATMAP_LATE, _TRANSFER, _PATH or _OPEN_LATE, ns. */
static inline double heatmap__wait(const struct heatmap *map, enum heatmap_part part, uint32_t row, uint64_t bin)
{
	const float *ns = heatmap__bin(map, bin)->parts[part];

	return ns ? ns[row] : 0;
}

static inline double heatmap__late(const struct heatmap *map, uint32_t row, uint64_t bin)
{
	return heatmap__wait(map, HEATMAP_LATE, row, bin) + heatmap__wait(map, HEATMAP_OPEN_LATE, row, bin);
}

static inline double cell__dur(const struct cell *cell)
{
	return (double)cell->closed.dur + cell->open.dur;
}

static inline double cell__lost(const struct cell *cell)
{
	return (double)cell->closed.dur - cell->closed.ref + cell->open.dur - cell->open.ref;
}

/* What others on this machine took of its CPUs. */
static inline double cell__preempted(const struct cell *cell)
{
	return (double)cell->closed.cpu - cell->closed.stolen + cell->open.cpu - cell->open.stolen;
}

static inline double cell__attributed(const struct cell *cell, enum vapro_class class)
{
	double emitted = (double)cell->closed.cpu + cell->open.cpu;

	/* In MPI being asleep is a way of waiting; only elsewhere does it mean something. */
	return class == VAPRO_COMMUNICATION ? emitted : emitted + cell->closed.blocked + cell->open.blocked;
}

/* Normalised performance 0..1, NAN where less than valid_bin of the bin is covered. */
static inline double cell__performance(const struct cell *cell, const struct vapro_config *config)
{
	double dur = cell__dur(cell), performance;

	if (dur <= 0 || dur < config->valid_bin * (double)VAPRO_BIN_NS)
		return NAN;
	performance = 1 - cell__lost(cell) / dur;
	return performance < 0 ? 0 : performance > 1 ? 1 : performance;
}

/* A performance as it is emitted, in hundredths: 0 for NAN, as for what was not emitted yet, else 1 to 101. */
unsigned char heatmap__hundredths(double performance);

/* Whether what would be emitted now differs from what was emitted by more than a hundredth. */
bool heatmap__differs(unsigned char emitted, unsigned char now);

#endif
