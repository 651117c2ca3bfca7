/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What became slower or faster from run A to run B: the job, its ranks, their states, and what the kernel attributes to
 * obstacles. Work that is compared is that of one kind of state and about one size, of one rank with itself. A change
 * that more than half of the ranks agree on is the job's; a rank is named where it differs from that. Named is what is
 * larger than the threshold, significant after adjustment for the number of comparisons, and, of five ranks or more,
 * outside the spread of the others.
 *
 * Two runs say how sure the difference between these two is. How much runs of equal conditions differ, only further
 * runs say.
 */
#ifndef VAPRO_COMPARE_H
#define VAPRO_COMPARE_H

#include "compare/match.h"
#include "compare/profile.h"

enum { COMPARE_ALL = -1 }; /* unit of rows that stand for the whole job */

enum compare_what { COMPARE_JOB, COMPARE_HOST, COMPARE_RANK, COMPARE_STATE, COMPARE_CAUSE, COMPARE_WHATS };

/* A rank, a process of unknown rank, or a thread where both runs have one process only. */
struct compare_unit {
	int32_t number;
	const char *host_a, *host_b;
	double busy_a_s, busy_b_s; /* computation and IO, obstacles included */
	double base_s, now_s,
	    error; /* time that B's fragments would have lasted in A, and lasted; its standard error */
};

/* How a unit is called. */
enum compare_unit_kind { COMPARE_RANKS, COMPARE_PROCESSES, COMPARE_THREADS };

struct compare_row {
	enum compare_what what;
	int32_t unit;	  /* index of a unit, or COMPARE_ALL */
	const char *host; /* of COMPARE_HOST */
	uint32_t kind;	  /* of COMPARE_STATE: kind of B */
	unsigned cause;	  /* of COMPARE_CAUSE: index of profile_causes */
	bool least;	  /* a call: its own part, without waiting */
	double ratio, low,
	    high;	/* time in B over A, with 95 % confidence; of a cause the change of its share of time */
	double beyond;	/* ratio over that of the whole job; of a cause the difference */
	double p;	/* adjusted probability */
	double seconds; /* what B's fragments lasted more than in A; negative: less */
	double base_s;	/* what they would have lasted in A */
	double call_a_ns, call_b_ns;
	double spread_a, spread_b; /* middle half of the batches' means, over their median */
	double share_a, share_b;   /* of a cause: share of computation and IO */
	uint64_t calls_a, calls_b;
	double work; /* amount of work per call in B over A: instructions or bytes; NAN where unknown */
	bool named;
	bool most; /* a host or job-wide state: most of its ranks */
	double error;
};

struct compare_side {
	double length_s, own_s, least_s, none_s;
	uint32_t units, hosts, world_size, other_jobs;
	uint64_t fragments, unmeasured;
	const char *job, *host;
	const struct vapro_state *main; /* a state with most time, NULL: none */
};

struct comparison {
	struct compare_unit *units;
	uint32_t unit_count;
	enum compare_unit_kind unit_kind;
	struct compare_side side[2]; /* A, B */
	struct match match;
	struct compare_row *rows; /* by what, worst first */
	size_t row_count, row_capacity;
	uint32_t compared, too_few; /* of kinds, sizes and ranks in both runs: compared, or with too few batches */
	uint64_t most_batches;	    /* of the latter */
	uint32_t too_short;	    /* computations that are mostly what the probes around them cost: not compared */
	double compared_s[2];	    /* time of what was compared */
	bool calls_compared;	    /* the own part of collectives */
	bool other_program;	    /* an image differs, and most of the time of either run is not in the other */
	bool moved;		    /* some ranks ran on another host */
	bool common;		    /* more than half of the ranks agree on a change of the job, possibly none */
	const struct profile *profile[2];
};

struct compare_options {
	double threshold; /* least relative change: 0.03 */
};

/*
 * Compares two ended profiles, which must outlive the result. Returns 0, -ENODATA with the reason in err where
 * nothing can be compared, or -ENOMEM. The result is to be cleared in either case.
 */
int compare__runs(struct comparison *result, const struct profile *a, const struct profile *b,
		  const struct compare_options *options, char *err, size_t err_size);
void compare__clear(struct comparison *result);

#endif
