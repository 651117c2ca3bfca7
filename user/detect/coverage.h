/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coverage: time in certified, repeated, fixed-workload fragments over wall, per class. Calls whose durations spread
 * count with what they take by themselves where that is steady (model/own_part.h), with the waiting that is explained
 * (detect/lateness.h), and with what the kernel attributes as far as the work of their peers is known. And where
 * the rest went, state by state with its reason, and gaps that belong to no state. Wall is the time
 * the threads of the job were watched in the new part, without those that never finish a fragment. The share of lost
 * bundles is an estimate: their number times the mean fragment, at most the gap. What the governor took is known:
 * the time with probes closed, and that of calls let go.
 */
#ifndef VAPRO_COVERAGE_H
#define VAPRO_COVERAGE_H

#include "detect/lateness.h"
#include "model/series.h"

struct coverage_facts {
	double wall_ns, governed_ns; /* of the processes */
	double thinned_ns, thinned;  /* of their threads: struct vapro_process_facts */
	double shed_ns;		     /* of bundles that were not kept */
	uint64_t lost[VAPRO_LOSSES];
	double overhead_sum_pct, overhead_max_pct;
	unsigned processes;
};

struct coverage {
	double wall_ns, covered_ns[VAPRO_CLASSES], seen_ns;
	double dur_ns[VAPRO_CLASSES], ref_ns[VAPRO_CLASSES]; /* of what takes part in the heat map */
	double fragments;
	struct result_uncovered *uncovered;
	size_t uncovered_count, uncovered_capacity;
	struct lateness lateness;
};

void coverage__clear(struct coverage *coverage);

/* Starts the new part [begin, end) ns: adds up the wall time of the job's threads. Returns 0 or -ENOMEM. */
int coverage__begin(struct coverage *coverage, const struct stg *stg, uint32_t job, uint64_t begin_ns, uint64_t end_ns);

/* Adds the share of a judged bundle that lies in the new part, to the coverage and to its series. */
void coverage__add(struct coverage *coverage, struct series *series, const struct kept *kept, uint64_t begin,
		   uint64_t end);

/*
 * Covers what is explained of the waiting in calls, of bundles that coverage__add has had; once it has had all of them.
 */
void coverage__explain(struct coverage *coverage, struct series *series, const struct stg *stg,
		       const struct waiting *waiting, const struct kept *kept);

/* Fills the uncovered list of a job, largest share first. Returns 0 or -ENOMEM. */
int coverage__end(struct coverage *coverage, const struct series_book *book, uint32_t job,
		  const struct coverage_facts *facts);

#endif
