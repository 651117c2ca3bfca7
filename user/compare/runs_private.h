/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps of a comparison of many runs; only its own files include it. */
#ifndef VAPRO_RUNS_PRIVATE_H
#define VAPRO_RUNS_PRIVATE_H

#include "compare/runs.h"

/* The time for equal work of each compared run, rank (unit of the base) and state (kind of the base), as logarithms. */
struct runs_cells {
	uint32_t runs, units, kinds;
	float *change;	 /* [run][unit][kind] over the base, then over what is usual; NAN: not compared */
	float *error;	 /* of the change */
	double *base_s;	 /* [unit][kind]: time of the base */
	uint32_t *kind;	 /* kinds of the base, by column */
	int32_t *number; /* numbers of the units */
	uint32_t *hosts; /* [run][unit]: host + 1; 0: not in the run */
	const char **host_names;
	uint32_t host_count;
	uint32_t *run_of; /* indices of the runs in struct runs */
};

/* What follows from the cells. */
struct runs_changes {
	const struct runs_cells *cells;
	double *unit;	/* [run][unit]: change of a rank; NAN: not compared */
	double *weight; /* [unit]: seconds of the base */
	double *common; /* [run]: change that more than half of its ranks have; 0: none */
	double *host;	/* [run][host]: change beyond that; NAN: not in the run */
	double *scratch, *p;
	double threshold; /* a logarithm */
};

static inline size_t runs__cell(const struct runs_cells *cells, uint32_t run, uint32_t unit, uint32_t kind)
{
	return ((size_t)run * cells->units + unit) * cells->kinds + kind;
}

static inline size_t runs__unit(const struct runs_cells *cells, uint32_t run, uint32_t unit)
{
	return (size_t)run * cells->units + unit;
}

static inline size_t runs__host(const struct runs_cells *cells, uint32_t run, uint32_t host)
{
	return (size_t)run * cells->host_count + host;
}

/*
 * runs_changes.c: makes the cells' changes those over what is usual, and sums them up. Returns 0 or -ENOMEM; the
 * changes are to be cleared in either case.
 */
int runs_changes__make(struct runs_changes *all, struct runs_cells *cells, double threshold);
void runs_changes__clear(struct runs_changes *all);

/* The change of a run: that of its ranks together; NAN: none. */
double runs_changes__of_run(const struct runs_changes *all, uint32_t run);

/* The change of a state that most ranks of a run agree on; 0 where they do not, NAN: not compared. */
double runs_changes__of_state(const struct runs_changes *all, uint32_t run, uint32_t kind);

/* Whether all ranks of a run are on a host, from 0 on. */
bool runs_changes__is_alone(const struct runs_changes *all, uint32_t run, uint32_t host);

/*
 * Sets the adjusted chances of changes, NAN: none, from the spread of values that differ by chance only (NAN: none;
 * often the changes themselves), or from `least` where that is more. Returns the spread, or -1 when out of memory.
 */
double runs_changes__chances(const struct runs_changes *all, const double *changes, const double *values, double least,
			     double *p, size_t count);

/* runs_judge.c: names what is outlying. Returns 0 or -ENOMEM. */
int runs__judge(struct runs *result, struct runs_cells *cells);

#endif
