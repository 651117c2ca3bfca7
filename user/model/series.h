/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histories: one series per thread, state and workload, and one workload per job, kind and size, to
 * which the series of all ranks belong. Histories outlive windows, so a certified state stays so,
 * and a lower populous group that appears later lowers the reference (ARCHITECTURE section 6).
 *
 * Sizes: calls of one state with different `bytes` (BY_INSTRUCTIONS: computations with different
 * vectors of magnitudes) are different workloads. The seed is the first size seen, all sizes within
 * cluster_tolerance of the seed are the same; the names of histories must not change when a smaller
 * size appears later, so this is not Algorithm 1.
 *
 * Algorithm 1 is in model/clusters.h, on all computations of a kind BY_INSTRUCTIONS, of all ranks, sizes
 * and windows together. A computation whose magnitudes are all 0 was not measured (any work takes an
 * instruction) and joins no cluster.
 */
#ifndef VAPRO_SERIES_H
#define VAPRO_SERIES_H

#include "model/batches.h"
#include "model/clusters.h"
#include "model/histogram.h"
#include "model/bundle_rec.h"
#include "base/pool.h"
#include "model/stg.h"
#include "model/successive.h"
#include "model/variation.h"

#include <vapro/analysis.h>

struct job_series;

#define SERIES_NONE UINT32_MAX
#define SERIES_LATEST SERIES_NONE /* in by_key, in place of a workload: the series found last */
enum { SERIES_WINDOWS = 8 };	  /* windows of means for drift */
enum { SERIES_THIRDS = 3 };	  /* parts of the view that are judged separately */
enum { SERIES_GROUPS = 6 };	  /* groups of durations in one state */
#define SERIES_OTHER_WORK 0.85	  /* of the lowest populous duration of a state: a shorter computation is other work */
#define SERIES_WARM_UP 10	  /* first computations of a state on a rank, if they end within ... */
#define SERIES_WARM_UP_NS 2e9	  /* ... so much computation: a longer one contains its own warm-up */

/* Sums over undisturbed fragments: what a factor costs when nothing is wrong. */
struct series_pile {
	double n, sum_ns;
	double factor[VAPRO_FACTORS];
	double counted_n[COUNTER_GROUPS]; /* part of n counted with a group of counters */
};

/*
 * Sums over all fragments that take part, disturbed or not: an unusual time can only be judged
 * against all fragments of a state, since regions select the slow ones.
 */
struct series_usual {
	double n, bundles;
	double dur, dur_sq; /* sums over bundles of time, and of n times the squared mean */
	double net, net_sq; /* the same without attributed time */
};

/*
 * Members are in the order of common use: with many ranks every bundle comes to a series that is in no cache
 * any more. Members for the arrival of a bundle come first, then those for judging and learning.
 */
struct series {
	uint32_t thread, state, workload, job, row;
	uint32_t next;	   /* next series of the workload */
	uint32_t window;   /* last window of the series */
	uint32_t follower; /* series that followed in its thread last time */
	enum vapro_class class;
	bool dirty, certified, final, compared;
	bool supported;		       /* its reference rests on enough batches */
	bool slower;		       /* slower than other ranks in equal calls, for good: has their reference */
	bool grouped;		       /* its fragments are of several workloads: those of group_ns */
	bool single;		       /* its fragments are of one workload */
	float usual_blocked;	       /* time asleep per undisturbed fragment, of computation and IO */
	float usual_frequency;	       /* time per fragment that the CPU's usual frequency costs; below 0: not known */
	float duration_ns;	       /* the lowest populous duration of its fragments */
	double reference_ns;	       /* own reference, or that of compared ranks */
	struct histogram cpu;	       /* on-CPU time of computation; else duration less waits for a CPU */
	struct successive successive;  /* undisturbed computations */
	double asleep_ns;	       /* usual sleep of its computation, on top */
	double size[VAPRO_MAGNITUDES]; /* size that found it last */
	uint32_t members;	       /* fragments met, with those of the sizes of its state before it */
	float met_ns;		       /* their time */
	double wide_ns;		       /* part of cpu in merged calls whose members differ too much to certify */
	struct histogram least;	       /* least call of each bin; model/own_part.h */
	uint64_t least_bin;	       /* bin being filled, and its least call so far; 0: none yet */
	float least_ns;
	float part_ns;	  /* own part of a call; 0: not known */
	bool part_steady; /* part_ns repeats */
	/* Computation without counts; model/groups.h. */
	struct histogram stretch; /* stretch being filled */
	uint64_t stretch_begin;	  /* first bin; 0: none yet */
	uint64_t stretch_last;	  /* last bin */
	bool proven;		  /* a stretch was steady */
	uint8_t group_count, group_stretches;
	float group_ns[SERIES_GROUPS]; /* centres in the last steady stretches, ascending */
	/* IO whose durations spread; model/scatter.h. */
	bool level; /* its batches once did not spread */
	float middle_ns, high_ns, tail_ns;
	struct batches batches_live;				/* batches of the current view */
	struct batches batches;					/* batches of all dropped bundles */
	double disturbed_n;					/* fragments in time of alarms, not learnt from */
	double view_n;						/* fragments in the current view */
	double third_n[SERIES_THIRDS], third_ns[SERIES_THIRDS]; /* by third: fragments, and compared time */
	double view_bundles, view_squares; /* in the view: bundles, and n times the squared mean of each */
	double window_ns, window_n;	   /* sums over the new part */
	/* sums over either half of the new part; counted: time and reference of work whose amount is known */
	float half_n[2], half_net_ns[2], half_counted_ns[2], half_reference_ns[2];
	/* sums over dropped bundles, and (live) over the current view; normal: fragments below k_a */
	struct series_usual usual_live;
	struct series_pile normal_live;
	struct series_usual usual;
	struct variation *variation;	  /* of computation and IO with some members, else NULL */
	double frequency_ns, frequency_n; /* sums over undisturbed fragments */
	struct series_pile normal;
	double own_ns;	      /* its own typical time */
	struct histogram net; /* computation with its time asleep; empty where it never sleeps */
	double window_uncovered_ns[VAPRO_UNCOVERED_REASONS];
	double halves[2 * SERIES_WINDOWS]; /* mean net time per fragment by half window that it ran in, oldest first */
	unsigned mean_count;		   /* windows */
	bool varied;			   /* there is a variation */
};

struct workload {
	uint32_t job, kind, common;
	enum vapro_class class;
	double seed[VAPRO_MAGNITUDES]; /* bytes of a call; magnitudes of a computation BY_INSTRUCTIONS, else 0 */
	uint32_t head;		       /* first workload of the kind */
	uint32_t series;	       /* first series of the list */
	uint32_t next;		       /* next workload of the kind */
	bool dirty;
	bool mixed;		   /* of all sizes for which there was no room: not judged */
	struct clusters *clusters; /* computation BY_INSTRUCTIONS; of the whole kind, at its head */
};

/* Whose history: numbers of the graph. */
struct series_of {
	uint32_t thread, state;
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
	struct job_series *by_job; /* lists of series, by job */
	size_t job_capacity;
	uint32_t *latest; /* by thread: its last series */
	size_t latest_capacity;
	uint32_t window;     /* window being filled, a number of the caller */
	struct pool factors; /* factors of retained bundles */
	struct alike *alike; /* references by labels: judge.c */
	struct batches scratch;
	uint32_t *row_batches; /* scratch, by row of a job */
	size_t row_capacity;
	bool full;			      /* at present there is no room for further histories */
	uint32_t free_series, free_workloads; /* lists by next of released numbers; their job is SERIES_NONE */
};

int series__init(struct series_book *book, const struct vapro_config *config, enum vapro_workload_source source,
		 const struct stg *stg);
void series__free(struct series_book *book);

/*
 * Enters a bundle of a thread in a state into its history and fills *rec. Open fragments make no history. factor:
 * VAPRO_FACTORS sums that replace the bundle's own, or NULL where all are 0. Returns 0, -EINVAL for impossible
 * magnitudes, -ENOSPC where a new history is needed while the book is full, or -ENOMEM.
 */
int series__add(struct series_book *book, struct series_of of, const struct vapro_bundle *bundle, const double *factor,
		struct bundle_rec *rec);

/*
 * Finds the series for the account of a thread, without history. Returns 0, -ENOSPC while the book is full, or
 * -ENOMEM.
 */
int series__unseen(struct series_book *book, uint32_t thread, uint32_t *id);

/* Free unreferenced series and workloads, for model/evict.h. */
void series__release(struct series_book *book, uint32_t id);
void series__release_workload(struct series_book *book, uint32_t id);

/* Bytes held, but for factors of bundles. */
size_t series__bytes(const struct series_book *book);

/* Releases what a dropped bundle holds of the book. */
void series__drop(struct series_book *book, const struct bundle_rec *rec);

/*
 * Writes or reads all histories, but for what each window computes again; a book to be read is new, and its graph
 * was read. Retained bundles follow by series__archive_recs.
 */
void series__archive(struct archive *archive, struct series_book *book);

/* Writes or reads the retained bundles of a job, as archive__rows does an array. */
void series__archive_recs(struct archive *archive, struct series_book *book, uint32_t job, struct bundle_rec **recs,
			  size_t *count, size_t *capacity);

/*
 * Forgets the histories of a job, which is not used any more. Numbers of other jobs do not change.
 * Returns 0 or -ENOMEM.
 */
int series__forget(struct series_book *book, uint32_t job);

#define SERIES_DISTURBED_MOST 32 /* times the others, up to which disturbed fragments are left out */

/* Whether a computation of a certified state is far shorter than any populous duration there: it is no fixed work. */
static inline bool series__is_other_work(const struct series *series, const struct bundle_rec *rec)
{
	return series->class == VAPRO_COMPUTATION && series->certified && rec->cell == BUNDLE_NO_CELL &&
	       rec->sum_ns - bundle_rec__cpu_attributed(rec) <
		   SERIES_OTHER_WORK * series->duration_ns * rec->ratio * rec->n;
}

/*
 * Whether references and usual times may be learnt from a bundle: not from the first members, and not in time
 * that an alarm owns (disturbed), unless nearly all time is.
 */
static inline bool series__learns(const struct series *series, const struct bundle_rec *rec, bool disturbed)
{
	if (rec->warm_up || rec->no_reference || rec->flags & VAPRO_BUNDLE_OPEN || series__is_other_work(series, rec))
		return false;
	/* A series slower for good is compared with other ranks: its own times spoil nothing. */
	return !disturbed || series->slower || series->disturbed_n > SERIES_DISTURBED_MOST * (series->usual.n + 1);
}

/*
 * Whether n fragments that took sum_ns (net: without attributed time) are slower than the series usually is:
 * beyond the threshold, and by four standard deviations. own: their part of the usual sums, which is left out;
 * NULL: nothing.
 */
bool series__unusual(const struct series *series, const struct vapro_config *config, double n, double sum_ns, bool net,
		     const struct series_usual *own);

/*
 * The squared error by chance of the view's total time, from the scatter of its fragments. The scatter of a single
 * bundle is not known: its deviation from the expected time per fragment counts.
 */
double series__view_chance(const struct series *series, double expected_ns);

/* The usual time per fragment, without `own`; 0 where too little was seen. */
double series__usual_ns(const struct series *series, const struct vapro_config *config, bool net,
			const struct series_usual *own);

/* Adds a share of sums. */
void series__merge_usual(struct series_usual *into, const struct series_usual *from, double share);

/* The compared time: on-CPU time of computation, else duration less waits for a CPU and stops. */
static inline double series__compared_ns(enum vapro_class class, const struct bundle_rec *rec)
{
	double ns = rec->sum_ns;

	if (rec->factor == bundle_rec_no_factors)
		return ns;
	ns = ns - (rec->waits ? 0 : rec->factor[VAPRO_PREEMPTED]) - rec->factor[VAPRO_WAKEUP_WAIT] -
	     rec->factor[VAPRO_THROTTLED] - rec->factor[VAPRO_STEAL] - rec->factor[VAPRO_STOPPED];
	if (class == VAPRO_COMPUTATION)
		ns -= bundle_rec__blocked(rec);
	return ns > 0 ? ns : 0;
}

/* Adds a bundle to usual sums. */
static inline void series__add_usual(struct series_usual *usual, enum vapro_class class, const struct bundle_rec *rec)
{
	double n = bundle_rec__units(rec), net = rec->sum_ns;
	double square = n == 1 ? rec->sum_ns * rec->sum_ns : rec->sum_ns * rec->sum_ns / n;

	/* mostly the kernel attributes nothing */
	if (rec->factor != bundle_rec_no_factors) {
		struct loss loss = bundle_rec__loss(rec);

		net = rec->sum_ns - loss.cpu - (class == VAPRO_COMMUNICATION ? 0 : loss.blocked) - loss.frequency;
	}
	usual->n += n;
	usual->bundles += 1;
	usual->dur += rec->sum_ns;
	usual->dur_sq += square;
	usual->net += net;
	usual->net_sq += net == rec->sum_ns ? square : n == 1 ? net * net : net * net / n;
}

/* Adds a bundle, which ends in a bin, to the batches of its series: of the view (live), or for good. Returns 0 or
 * -ENOMEM. */
static inline int series__learn(struct series_book *book, const struct bundle_rec *rec, uint64_t bin, bool live)
{
	struct series *series = &book->series[rec->series];

	series->batches_live.begin = series->batches.begin;
	if (!live) {
		series->frequency_n += bundle_rec__units(rec);
		series->frequency_ns += rec->factor[VAPRO_FREQUENCY];
	}
	series->dirty = book->workloads[series->workload].dirty = true;
	return batches__add(live ? &series->batches_live : &series->batches, bin, rec->n,
			    series__compared_ns(series->class, rec) / rec->ratio);
}

/* Bundles are visited rank by rank: with many ranks no history is in a cache any more. */
enum { SERIES_AHEAD = 12 }; /* bundles whose history is fetched in advance */
enum { BATCHES_AHEAD = 6 }; /* bundles whose batches are, too */

/* gcc sees no effect in a function that only fetches, and drops calls: the function must be inlined. */
#define SERIES_FETCH static inline __attribute__((always_inline))

/* Fetches bytes [from, to) of the history of a bundle that comes soon; i: the present one, of count. */
SERIES_FETCH void series__fetch(const struct series *series, const struct bundle_rec *rec, size_t i, size_t count,
				size_t from, size_t to)
{
	const char *at;

	__builtin_prefetch(&rec[i + 4 * SERIES_AHEAD]);
	if (count - i <= SERIES_AHEAD)
		return;
	at = (const char *)&series[rec[i + SERIES_AHEAD].series];
	__builtin_prefetch(at);
	for (size_t line = from; line < to; line += 64)
		__builtin_prefetch(at + line, 1);
}

/* Fetches the batches at an offset of the history of a bundle that comes soon. */
SERIES_FETCH void series__fetch_batches(const struct series *series, const struct bundle_rec *rec, size_t i,
					size_t count, size_t offset)
{
	const struct batches *batches;

	series__fetch(series, rec, i, count, offset, offset + sizeof(*batches));
	if (count - i <= BATCHES_AHEAD)
		return;
	batches = (const struct batches *)((const char *)&series[rec[i + BATCHES_AHEAD].series] + offset);
	for (size_t line = 0; line < 192; line += 64)
		__builtin_prefetch((const char *)batches->items + line, 1);
}

/* Fetches the variation of the history of a bundle that comes soon, as far as each bundle needs it. */
SERIES_FETCH void series__fetch_variation(const struct series *series, const struct bundle_rec *rec, size_t i,
					  size_t count)
{
	const struct variation *variation;

	if (count - i <= BATCHES_AHEAD)
		return;
	variation = series[rec[i + BATCHES_AHEAD].series].variation;
	__builtin_prefetch(variation, 1);
	__builtin_prefetch((const char *)variation + 64, 1);
}

#endif
