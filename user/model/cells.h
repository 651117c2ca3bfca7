/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workload vectors in bounded memory, for Algorithm 1 of VAPRO (PPoPP'22) section 3.4: fragments fall into
 * log-linear cells, 256 to an octave and component, that keep exact counts and sums, the exact box
 * of their members and the exact member of least norm. Components that are not measured are 0.
 *
 * What several ranks, hosts and windows have is added *before* clustering: the result of any order
 * of cells__add depends only on what was added. That holds beyond the bound too:
 * where a set needs more cells than it may have, all its cells become twice as wide (neighbours
 * merge, in all components) until they fit, and the finest width at which the whole fits is the same
 * in any order. Sums that would overflow stay at UINT64_MAX.
 *
 * Outcomes of odd input: 0 has a cell of its own, and numbers below 1 / CELLS_MAGNITUDE_MAX are 0;
 * NAN, infinities, negative numbers and those above CELLS_MAGNITUDE_MAX, whose squares would
 * overflow, are refused.
 */
#ifndef VAPRO_CELLS_H
#define VAPRO_CELLS_H

#include "base/archive.h"
#include "base/table.h"

#include <vapro/bundle.h>

static const double CELLS_MAGNITUDE_MAX = 1e150; /* largest number of a workload; others are refused */
static const double CELLS_WIDTH = 1.0 / 256;	 /* relative, before any widening: follows from KEY_BITS */
#define CELLS_NONE UINT32_MAX

struct workload_cell {
	uint32_t key[VAPRO_MAGNITUDES];
	double low[VAPRO_MAGNITUDES], high[VAPRO_MAGNITUDES]; /* all members lie between */
	double least[VAPRO_MAGNITUDES];			      /* the member of least norm, ties: the lower vector */
	double norm;					      /* norm of least */
	uint64_t n, sum_ns;
	uint64_t min_ns; /* least duration of a member */
	uint32_t handle;
	uint32_t cluster; /* index of its cluster as last formed, or CELLS_NONE */
	uint32_t name;	  /* name of the cluster; 0: none yet */
	bool corner;	  /* least is only a lower bound: the bundle varies in several components */
};

struct cells {
	struct workload_cell *items; /* unordered */
	size_t count, capacity, max;
	unsigned widened; /* times that all cells became twice as wide */
	struct table *by_key;
	uint32_t *where; /* cell of each handle */
	size_t handle_count, handle_capacity;
};

/* Bounds a set to max cells, at least 1. Returns 0 or -ENOMEM. */
int cells__init(struct cells *cells, size_t max);
void cells__clear(struct cells *cells);

/*
 * Adds n fragments whose vectors lie between low and high, of sum_ns in total and min_ns at least, to
 * the cell of the middle. handle: valid as long as the set; NULL where not wanted.
 * Returns 0, -EINVAL for impossible magnitudes, or -ENOMEM.
 */
int cells__add(struct cells *cells, const double *low, const double *high, uint64_t n, uint64_t sum_ns, uint64_t min_ns,
	       uint32_t *handle);

/* Sets the bound to max cells. Returns 0 or -ENOMEM. */
int cells__bound(struct cells *cells, size_t max);
size_t cells__bytes(const struct cells *cells);

/* Writes or reads a set; one to be read is empty and has its bound. */
void cells__archive(struct archive *archive, struct cells *cells);

/* The handle of the cell that a vector belongs to; CELLS_NONE where there is no such cell. */
uint32_t cells__find(const struct cells *cells, const double *vector);

static inline struct workload_cell *cells__of(const struct cells *cells, uint32_t handle)
{
	return &cells->items[cells->where[handle]];
}

/* Euclidean norm; exact in one dimension. */
double cells__norm(const double *vector);

/* Compares the least members of two cells by norm, ties by the vectors, for qsort. */
int cells__compare_least(const struct workload_cell *a, const struct workload_cell *b);

#endif
