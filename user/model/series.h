/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histories: one series per thread, state and workload, and one workload per job, kind and size, to
 * which the series of all ranks belong. They outlive windows, so a state that was certified stays
 * so, and a lower populous group that shows up later lowers the reference (ARCHITECTURE section 6).
 *
 * Sizes: calls of one state with different `bytes` (BY_INSTRUCTIONS: computations with different
 * vectors of magnitudes) are different workloads. The seed is the first one seen, everything within
 * cluster_tolerance of it is the same; the names of histories must not change when a smaller size
 * shows up later, which is why this is not Algorithm 1 itself.
 *
 * That is model/cluster.h, on all computations of a kind BY_INSTRUCTIONS, of all ranks, sizes and
 * windows together. A computation whose magnitudes are all 0 was not measured (no work takes no
 * instruction) and joins no cluster.
 */
#ifndef VAPRO_SERIES_H
#define VAPRO_SERIES_H

#include "model/batches.h"
#include "model/cluster.h"
#include "model/histogram.h"
#include "model/kept.h"
#include "base/pool.h"
#include "model/stg.h"
#include "model/truth.h"

#include <vapro/analysis.h>

#define SERIES_NONE UINT32_MAX
#define SERIES_WINDOWS 8  /* windows whose means are kept for drift */
#define SERIES_THIRDS 3	  /* parts of the view that are looked at by themselves */
#define SERIES_GROUPS 6	  /* of durations in one state */
#define SERIES_WARM_UP 10 /* first members of a workload on a rank */

/* Sums over undisturbed fragments: what a factor costs when nothing is wrong. */
struct series_pile {
	double n, sum_ns;
	double factor[VAPRO_FACTORS];
	double counted_n[COUNTER_GROUPS]; /* of n, those that were counted with a group of counters */
};

/*
 * All fragments that take part, disturbed or not: whether something is unusual can only be judged
 * against everything a state does, since regions pick out the slow ones and leave the fast.
 */
struct series_usual {
	double n, bundles;
	double dur, dur_sq; /* sums over bundles of time, and of n times the squared mean */
	double net, net_sq; /* the same without what the kernel attributes */
};

/*
 * In the order of what is asked for together: with many ranks every bundle comes to a series that is in no
 * cache any more. What is met when a bundle arrives comes first, then what judging and learning need.
 */
struct series {
	uint32_t thread, state, workload, job, row;
	uint32_t next;	   /* of the same workload */
	uint32_t window;   /* in which it was met last */
	uint32_t follower; /* the series that its thread came to after it, last time */
	enum vapro_class class;
	bool dirty, certified, settled, compared;
	bool supported;		       /* its reference rests on enough batches */
	bool slower;		       /* than other ranks in the same calls, for good: its reference is theirs */
	float usual_blocked;	       /* time asleep per undisturbed fragment, of computation and IO */
	float usual_frequency;	       /* time per fragment that the CPU's usual frequency costs */
	double reference_ns;	       /* own, or that of the ranks it is compared with */
	struct histogram cpu;	       /* on-CPU time of computation; duration less waits for a CPU of the rest */
	double asleep_ns;	       /* what its computation usually sleeps on top */
	double size[VAPRO_MAGNITUDES]; /* that it was last found by */
	uint64_t members;	       /* fragments met */
	double wide_ns;		/* of cpu: in merged calls whose members differ more than a certified state's may */
	struct histogram least; /* of calls: the least one of each bin; model/own_part.h */
	uint64_t least_bin;	/* the bin that is being filled, and its least call so far; 0: none yet */
	float least_ns;
	float part_ns;	  /* of a call, when no peer is late; 0: not known */
	bool part_steady; /* it repeats */
	/* Of computation without counts; model/groups.h. */
	struct histogram stretch; /* the one that is being filled */
	uint64_t stretch_begin;	  /* its first bin; 0: none yet */
	uint64_t stretch_last;	  /* its last one */
	bool proven;		  /* a stretch was steady */
	bool grouped;		  /* it has several workloads: those of group_ns */
	bool single;		  /* it has one */
	uint8_t group_count, group_stretches;
	float group_ns[SERIES_GROUPS]; /* of the last steady stretches, ascending */
	/* Of IO whose durations spread; model/scatter.h. */
	bool level; /* its batches did not, once */
	float middle_ns, high_ns, tail_ns;
	struct batches batches_live;				/* of the current view */
	struct batches batches;					/* of all that are kept no longer */
	double view_n;						/* fragments in the current view */
	double third_n[SERIES_THIRDS], third_ns[SERIES_THIRDS]; /* of its thirds: fragments, and compared time */
	double view_bundles, view_squares; /* likewise: bundles, and n times the squared mean of each */
	double disturbed_n;		   /* fragments in time of alarms, which is not learnt from */
	double window_ns, window_n;	   /* of the new part */
	double half_n[2], half_net_ns[2];  /* of either half of the new part */
	/* of all that are kept no longer, and of the current view; normal: of fragments below k_a */
	struct series_usual usual_live;
	struct series_pile normal_live;
	struct series_usual usual;
	struct series_pile normal;
	double frequency_ns, frequency_n; /* sums over undisturbed fragments */
	double own_ns;			  /* its own typical time */
	struct histogram net;		  /* computation that sleeps: with the time asleep; empty where it never did */
	double window_uncovered_ns[VAPRO_UNCOVERED_REASONS];
	double
	    halves[2 * SERIES_WINDOWS]; /* mean net time per fragment, oldest first, of halves of windows it ran in */
	unsigned mean_count;		/* windows */
};

struct workload {
	uint32_t job, kind, common;
	enum vapro_class class;
	double seed[VAPRO_MAGNITUDES]; /* bytes of a call; all of a computation BY_INSTRUCTIONS, else 0 */
	uint32_t head;		       /* first workload of the kind */
	uint32_t series;	       /* first of the list */
	uint32_t next;		       /* of the same kind */
	bool dirty;
	struct clusters *clusters; /* BY_INSTRUCTIONS, computation; of the whole kind, at its head */
};

struct series_book {
	const struct vapro_config *config;
	enum vapro_workload_source source;
	const struct stg *stg;
	struct series *series;
	size_t count, capacity;
	struct workload *workloads;
	size_t workload_count, workload_capacity;
	struct table *by_key, *by_kind;
	uint32_t *latest; /* by thread: the series it was in last */
	size_t latest_capacity;
	uint32_t window;     /* that is being filled, a number of the caller's */
	struct pool factors; /* of bundles that are kept */
	struct alike *alike; /* what calls of the same labels take: judge.c */
	struct truths truths;
	struct batches scratch;
	uint32_t *row_batches; /* scratch, by row of a job */
	size_t row_capacity;
	bool full;			      /* for the time being there is no room for further histories */
	uint32_t free_series, free_workloads; /* lists by next of those whose jobs ended; their job is SERIES_NONE */
};

int series__init(struct series_book *book, const struct vapro_config *config, enum vapro_workload_source source,
		 const struct stg *stg);
void series__free(struct series_book *book);

/*
 * Enters a bundle into its history and fills kept. Open fragments make no history. factor: VAPRO_FACTORS sums that
 * replace the bundle's own, or NULL where all are 0.
 * Returns 0, -EINVAL for impossible magnitudes, -ENOSPC for one that needs a new history while the book is
 * full, or -ENOMEM.
 */
int series__add(struct series_book *book, const struct vapro_bundle *bundle, const double *factor, struct kept *kept);

/*
 * The series of what is known of a thread from its account alone: without history. Returns 0, -ENOSPC while the book
 * is full, or -ENOMEM.
 */
int series__unseen(struct series_book *book, uint32_t thread, uint32_t *id);

/* Free what nobody refers to any more: series and workloads of model/evict.h. */
void series__release(struct series_book *book, uint32_t id);
void workload__release(struct series_book *book, uint32_t id);

/* What it holds, but for factors of bundles. */
size_t series__bytes(const struct series_book *book);

/* Gives back what a bundle holds of the book, once it is kept no longer. */
void series__drop(struct series_book *book, const struct kept *kept);

/*
 * Forgets the histories of a job: nothing of it will be added or asked for. Numbers of others stay as
 * they are. Returns 0 or -ENOMEM.
 */
int series__forget(struct series_book *book, uint32_t job);

/* Disturbed fragments are left out until they are so many times as many as the others: no wrong alarm ends learning. */
#define SERIES_DISTURBED_MOST 32

/*
 * Whether references and what is usual may be learnt from a bundle: not from the first members, and not in time
 * that an alarm owns (disturbed), unless that was nearly all of it.
 */
static inline bool series__learns(const struct series *series, const struct kept *kept, bool disturbed)
{
	if (kept->warm_up || kept->blind || kept->flags & VAPRO_BUNDLE_OPEN)
		return false;
	/* One that is slower for good is measured against other ranks: nothing is spoilt by what it does. */
	return !disturbed || series->slower || series->disturbed_n > SERIES_DISTURBED_MOST * (series->usual.n + 1);
}

/* Adds a bundle to the batches of its series: of the view (live), or for good. Returns 0 or -ENOMEM. */
int series__learn(struct series_book *book, const struct kept *kept, bool live);

void series__add_usual(struct series_usual *usual, enum vapro_class class, const struct kept *kept);

/*
 * Whether n fragments that took sum_ns (net: without what the kernel attributes) are slower than the
 * series usually is: beyond the threshold, and by four standard deviations. own: what they are of it themselves,
 * which is left out, NULL: nothing.
 */
bool series__unusual(const struct series *series, const struct vapro_config *config, double n, double sum_ns, bool net,
		     const struct series_usual *own);

/*
 * How far the time that the fragments of the view took in all may be off by chance, squared, as they scatter: of one
 * bundle it is not known, and what it is off an expected time per fragment counts.
 */
double series__view_chance(const struct series *series, double expected_ns);

/* Its usual time per fragment, without `own`; 0 where too little of it was seen. */
double series__usual_ns(const struct series *series, const struct vapro_config *config, bool net,
			const struct series_usual *own);

/* Adds a share of sums. */
void series__merge_usual(struct series_usual *into, const struct series_usual *from, double share);

/* The time that is compared: on-CPU time of computation, duration less waits for a CPU and stops of the rest. */
static inline double series__compared_ns(enum vapro_class class, const struct kept *kept)
{
	double ns = kept->sum_ns;

	if (kept->factor == kept_no_factors)
		return ns;
	ns = ns - (kept->waits ? 0 : kept->factor[VAPRO_PREEMPTED]) - kept->factor[VAPRO_WAKEUP_WAIT] -
	     kept->factor[VAPRO_THROTTLED] - kept->factor[VAPRO_STEAL] - kept->factor[VAPRO_STOPPED];
	if (class == VAPRO_COMPUTATION)
		ns -= kept__blocked(kept);
	return ns > 0 ? ns : 0;
}

/* Bundles that are gone through come rank by rank: with many ranks no history is in a cache any more. */
#define SERIES_AHEAD 12 /* bundles whose history is fetched before it is asked for */
#define BATCHES_AHEAD 6 /* and whose batches are, which it points to */

/* A function that only fetches has no effect for gcc, which leaves out calls of it: it must not become a call. */
#define SERIES_FETCH static inline __attribute__((always_inline))

/* Fetches what lies at [from, to) of the history of a bundle that comes soon; i: the present one, of count. */
SERIES_FETCH void series__fetch(const struct series *series, const struct kept *kept, size_t i, size_t count,
				size_t from, size_t to)
{
	const char *at;

	if (count - i <= SERIES_AHEAD)
		return;
	at = (const char *)&series[kept[i + SERIES_AHEAD].series];
	__builtin_prefetch(at);
	for (size_t line = from; line < to; line += 64)
		__builtin_prefetch(at + line, 1);
}

/* The same for the batches that a bundle goes to, which start at an offset of the history. */
SERIES_FETCH void series__fetch_batches(const struct series *series, const struct kept *kept, size_t i, size_t count,
					size_t offset)
{
	const struct batches *batches;

	series__fetch(series, kept, i, count, offset, offset + sizeof(*batches));
	if (count - i <= BATCHES_AHEAD)
		return;
	batches = (const struct batches *)((const char *)&series[kept[i + BATCHES_AHEAD].series] + offset);
	for (size_t line = 0; line < 192; line += 64)
		__builtin_prefetch((const char *)batches->items + line, 1);
}

#endif
