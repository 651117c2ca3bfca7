/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heat map of one job (VAPRO (PPoPP'22) section 3.5): per row (rank; threads summed) and 200 ms bin
 * the cost and the reference of each class. The map is a ring of HEATMAP_SPAN bins, so that a region
 * that crosses windows is one region.
 *
 * `closed` holds fragments that ended. Within the current view it is rebuilt in each window, since
 * references improve; before the view it is frozen, and only fragments that arrive late and reach
 * back are added. `open` holds fragments that have not ended; it is rebuilt in each window, so the
 * final fragment replaces the open one and nothing counts twice.
 *
 * The loss of calls has two owners: the transfer, which all ranks of a call lose, may belong to one variance and the
 * rest, such as waiting, to another one.
 *
 * lost = cost - reference, summed over a bin: within one bin a fast bundle offsets a slow one, since
 * the reference is a mean; between bins nothing is offset.
 */
#ifndef VAPRO_HEATMAP_H
#define VAPRO_HEATMAP_H

#include "base/archive.h"
#include "model/bundle_rec.h"

#include <vapro/config.h>

enum { REGION_LAYERS = 6 }; /* layers of cells, in which slow regions grow (detect/region_private.h) */

enum { HEATMAP_SPAN = 512 }; /* least bins retained */
enum { HEATMAP_MORE = 300 }; /* bins beyond the view */
enum { HEATMAP_LEAST = 24 }; /* bins beyond the view, once history was cut */

#define HEATMAP_AROUND_FRAGMENTS 3 /* fragments around a change that are compared */
#define HEATMAP_AROUND_LEAST 10	   /* bins around a change that are compared, at least */
#define HEATMAP_AROUND_MOST 50	   /* bins around a change that are compared, at most */

#define HEATMAP_AT_ONCE 5 /* bins between begins or ends that may have one cause */

struct cell_side {
	float dur, ref;	    /* sums over covered fragments, ns */
	float cpu, blocked; /* parts of their loss attributed by the kernel */
	float stolen;	    /* part of cpu: by the hypervisor */
	float seen;	    /* time of all fragments, covered or not */
};

/* The time of a row in a bin in calls, IO or computation. */
struct cell {
	struct cell_side closed, open;
};

/* In place of a class: the owner of the transfers in calls. */
#define HEATMAP_TRANSFERS VAPRO_CLASSES

/*
 * A bin is contiguous for all rows, since all ranks report the same time one after the other. Its parts are
 * arrays by row, allocated on the first addition: most jobs do not use most parts.
 */
enum heatmap_part {
	HEATMAP_CLOSED,				       /* struct cell_side, by class */
	HEATMAP_OPEN = HEATMAP_CLOSED + VAPRO_CLASSES, /* struct cell_side, by class */
	HEATMAP_OWNER =
	    HEATMAP_OPEN + VAPRO_CLASSES, /* uint32_t by class, and of transfers: id of the cell's variance, 0 = none */
	/* unsigned char by class: last emitted, heatmap__hundredths */
	HEATMAP_EMITTED = HEATMAP_OWNER + HEATMAP_TRANSFERS + 1,
	/* float, communication: waiting for a late peer, transfer, which all of the group share, and slow path */
	HEATMAP_LATE = HEATMAP_EMITTED + VAPRO_CLASSES,
	HEATMAP_TRANSFER,
	HEATMAP_PATH,
	HEATMAP_OPEN_LATE,
	HEATMAP_PARTS,
};

/* Who came last to the operations that ended in a bin: the row that was late by most in all of them together. */
struct heatmap_arrivals {
	uint32_t operations; /* those whose members are all known */
	uint32_t row, last;  /* the row, and in how many of them it was the last one */
	uint64_t late_ns;    /* later than the median member, in these */
};

struct heatmap_bin {
	void *parts[HEATMAP_PARTS];
	uint32_t emitted[VAPRO_CLASSES]; /* times emitted */
	double divided;			 /* waiting for late peers that was divided for good, ns; detect/caused.h */
	struct heatmap_arrivals arrivals;
};

struct heatmap {
	struct heatmap_bin *bins; /* `ring` bins, at heatmap__slot; empty outside [begin, end) */
	size_t row_count, row_capacity;
	uint64_t span;	     /* most bins retained */
	uint64_t ring;	     /* room for bins: a power of two */
	uint64_t view;	     /* bins of the longest view so far */
	bool cut;	     /* history was cut */
	double fragment_ns;  /* duration of a computation met at any time, as of the last view */
	uint64_t begin, end; /* bins retained: [begin, end); begin == end: none yet */
};

void heatmap__free(struct heatmap *map);

/* Writes or reads the map of a job with so many rows; one to be read is empty. */
void heatmap__archive(struct archive *archive, struct heatmap *map, size_t rows);

/* Makes room for rows and for a view of so many bins. Returns 0 or -ENOMEM. */
int heatmap__rows(struct heatmap *map, size_t count, uint64_t view_bins);

/*
 * Cuts history for good: from now on the map holds at most HEATMAP_LEAST bins beyond the view. Returns
 * the number of bins forgotten. Without memory for a shorter ring the ring does not change.
 */
uint64_t heatmap__cut(struct heatmap *map);

/* Bytes held, and needed for growing regions. */
size_t heatmap__bytes(const struct heatmap *map);

/* Moves the ring's end on to bin end; bins that fall out are forgotten. first is the oldest bin of a new ring. */
void heatmap__advance(struct heatmap *map, uint64_t first, uint64_t end);

/* Empties what is rebuilt: `closed` and waiting from bin `view` on, and everything open. */
void heatmap__clear(struct heatmap *map, uint64_t view);

/* Adds a bundle to its bins within [from, to). Returns 0 or -ENOMEM. */
int heatmap__add(struct heatmap *map, const struct bundle_rec *rec, uint32_t row, enum vapro_class class, uint64_t from,
		 uint64_t to);

/* Adds ns to HEATMAP_LATE, _TRANSFER, _PATH or _OPEN_LATE of a cell. Returns 0 or -ENOMEM. */
int heatmap__add_wait(struct heatmap *map, enum heatmap_part part, uint32_t row, uint64_t bin, float ns);

/* Makes a variance the owner of a cell, or of the transfers in its calls. Returns 0 or -ENOMEM. */
int heatmap__own(struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class class, uint32_t id);

/* Records what is emitted of a cell. Returns 0 or -ENOMEM. */
int heatmap__emit(struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class class, unsigned char emitted);

/* Removes the owners of all cells. */
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

/* The variance that a cell, or of class HEATMAP_TRANSFERS the transfers in its calls, belong to; 0 = none. */
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

/* CPU time that other tasks of this machine had. */
static inline double cell__preempted(const struct cell *cell)
{
	return (double)cell->closed.cpu - cell->closed.stolen + cell->open.cpu - cell->open.stolen;
}

static inline double cell__attributed(const struct cell *cell, enum vapro_class class)
{
	double emitted = (double)cell->closed.cpu + cell->open.cpu;

	/* In MPI sleep is a way of waiting; only elsewhere is it a loss. */
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

/* The emitted form of a performance: 1 to 101, hundredths plus 1; 0 for NAN, and for no emission yet. */
unsigned char heatmap__hundredths(double performance);

/* Whether the present value differs from the emitted one by more than a hundredth. */
bool heatmap__differs(unsigned char emitted, unsigned char now);

#endif
