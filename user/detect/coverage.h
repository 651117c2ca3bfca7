/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coverage: time in certified, repeated, fixed-workload fragments over wall, per class. Calls whose durations spread
 * count with their own part where it is steady (model/own_part.h), with explained waiting (detect/lateness.h), and
 * with attributed time as far as the work of their peers is known. The rest is listed state by state with its reason,
 * and as gaps that belong to no state. Wall is the time for which the threads of the job were tracked in the new part,
 * without those that never finish a fragment; a further thread of a rank counts where fragments fill a hundredth of its
 * time, since a helper thread of an MPI library may read some files, and without the time that it slept between two
 * calls. The share of lost bundles is an estimate: their
 * number times the mean fragment, at most the gap. The governor's share is known: the time with probes closed, and of
 * suppressed calls.
 */
#ifndef VAPRO_COVERAGE_H
#define VAPRO_COVERAGE_H

#include "detect/lateness.h"
#include "model/series.h"

struct coverage_facts {
	double wall_ns, governed_ns; /* times of the processes */
	double thinned_ns, thinned;  /* suppressed calls: struct vapro_process_facts */
	double shed_ns;		     /* time of shed bundles */
	uint64_t shed;		     /* their fragments */
	uint64_t lost[VAPRO_LOSSES];
	double overhead_sum_pct, overhead_max_pct;
	uint32_t overhead_max_pid; /* 0: none */
	unsigned processes;
};

/* The time in which the further threads of a rank that have a row were tracked, and that of their fragments. */
struct coverage_row {
	double wall_ns, seen_ns;
	double first_ns;  /* the time in which the first thread of a rank was tracked */
	double before_ns; /* its part of before_ns of the job */
};

struct coverage {
	struct coverage_row *rows; /* of the heat map */
	size_t row_count;
	double wall_ns, covered_ns[VAPRO_CLASSES], seen_ns;
	double before_ns; /* covered computation before the new part, in bundles that came with it */
	double dur_ns[VAPRO_CLASSES], ref_ns[VAPRO_CLASSES]; /* sums over the heat map */
	double attributed_ns;				     /* part of dur_ns of computation: without a CPU */
	double fragments;
	struct result_uncovered *uncovered;
	size_t uncovered_count, uncovered_capacity;
	struct lateness lateness;
	const struct bundle_rec **parted; /* bundles of calls whose waiting peers may explain */
	size_t parted_count, parted_capacity;
};

void coverage__clear(struct coverage *coverage);

/* Starts the new part [begin, end) ns: adds up the wall time of the job's threads. Returns 0 or -ENOMEM. */
int coverage__begin(struct coverage *coverage, const struct stg *stg, uint32_t job, uint64_t begin_ns, uint64_t end_ns);

/*
 * Adds the share of a judged bundle that lies in the new part, to the coverage and to its series. The bundle stays
 * where it is until coverage__explain. Returns 0 or -ENOMEM.
 */
int coverage__add(struct coverage *coverage, struct series *series, const struct bundle_rec *rec, uint64_t begin,
		  uint64_t end);

/* Covers the explained waiting in calls, after coverage__add of all bundles. */
void coverage__explain(struct coverage *coverage, struct series_book *book, const struct waiting *waiting);

/* Adds the wall time of the further threads that count, after coverage__add of all bundles. */
void coverage__count_threads(struct coverage *coverage);

/* The part of the wall time that is of the thread, or the threads, of a row; after coverage__count_threads. */
double coverage__row_wall(const struct coverage *coverage, size_t row);

/* Fills the uncovered list of a job, largest share first. Returns 0 or -ENOMEM. */
int coverage__end(struct coverage *coverage, const struct series_book *book, uint32_t job,
		  const struct coverage_facts *facts);

#endif
