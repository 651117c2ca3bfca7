/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record of a bundle for one view: a line of a CPU's cache, since each window reads all of them several times. It
 * has a series in place of state and thread, and the verdict of the model. Most bundles have no factor at all; the
 * others have a block of factors of their own. Times are in ns.
 */
#ifndef VAPRO_BUNDLE_REC_H
#define VAPRO_BUNDLE_REC_H

#include <vapro/bundle.h>

#include <math.h>

#define BUNDLE_NO_CELL UINT32_MAX /* not clustered, or nothing like it was seen yet */
/* bundle_rec.account: rebuilt in each window, or for the last time. */
enum { BUNDLE_FROM_ACCOUNT = 1, BUNDLE_FROM_ACCOUNT_RETIRING = 2 };

#define BUNDLE_NO_WORKLOAD (UINT32_MAX - 1) /* its magnitudes were not measured */

/* Groups of counters that are not always on; a bundle has those that counted it. */
enum counter_group {
	COUNTER_TOP,
	COUNTER_FRONTEND,
	COUNTER_BAD_SPECULATION,
	COUNTER_BACKEND,
	COUNTER_MEMORY,
	COUNTER_GROUPS
};

/* A block of factors: VAPRO_FACTORS sums over the fragments, then what the model adds per fragment. */
enum {
	BUNDLE_USUAL_BLOCKED = VAPRO_FACTORS, /* sleep of the undisturbed members */
	BUNDLE_USUAL_FREQUENCY,		      /* usual cost of a frequency below the highest */
	BUNDLE_FACTORS
};

struct bundle_rec {
	uint64_t start_ns, end_ns;
	double sum_ns;
	const float *factor; /* BUNDLE_FACTORS values: in the book's pool, or bundle_rec_no_factors */
	uint32_t series, n;
	float max_ns;
	uint32_t cell;		  /* handle of its workload in the clusters of its state; or KEPT_NO_* */
	float ratio;		  /* work of a fragment, in units of the lightest group of its state; model/groups.h */
	float reference;	  /* per fragment; valid where covered */
	float waited_ns;	  /* sum of unseen waits, which are part of the reference; detect/unseen_waits.h */
	uint8_t is_new : 1;	  /* arrived since the last window */
	uint8_t covered : 1;	  /* takes part in the heat map */
	uint8_t certified : 1;	  /* counts as coverage */
	uint8_t no_reference : 1; /* covered without any reference: stuck in an unknown state */
	uint8_t warm_up : 1;	  /* among the first computations of its state on this rank */
	uint8_t young : 1;	  /* among these, but the warm-up is over: they took long */
	uint8_t provisional : 1;  /* its reference has no support yet */
	uint8_t attributed_only : 1; /* covered for attributed time alone: its work is not known to be fixed */
	uint8_t reason : 5;	     /* enum vapro_uncovered_reason */
	uint8_t flags : 3;	     /* enum vapro_bundle_flags */
	uint8_t rebased : 1;	     /* its reference has changed enough since the last window to emit its bins again */
	uint8_t waits : 1;	     /* waits for threads of its process: no loss off the CPU */
	uint8_t retained : 1;	     /* older than the view; retained until its state has enough fragments */
	uint8_t disturbed : 1;	     /* in time that an alarm owned at the end of the last window */
	uint8_t learnt : 1;	     /* part of the usual time of its series */
	uint8_t account : 2;	     /* made from the kernel's account: no fragment (detect/account.h) */
	uint8_t occurrence : 1;	     /* its reference is what other ranks took at the same time; model/occurrence.h */
	uint8_t counted; /* bit per counter_group; its factors agree with each other, see diagnose/factors.h */
};

_Static_assert(sizeof(struct bundle_rec) == 64, "a bundle's record fills a line of a cache");
_Static_assert(VAPRO_BUNDLE_APPROX < 1 << 3, "members have few bits");

extern const float bundle_rec_no_factors[BUNDLE_FACTORS]; /* all 0 */

/* Sets one of the model's values of a bundle with factors; without any, the value is of no use. */
static inline void bundle_rec__set_usual(struct bundle_rec *rec, int which, float ns)
{
	if (rec->factor != bundle_rec_no_factors)
		((float *)rec->factor)[which] = ns;
}

/* Whether a bundle has any factor. Most have none, and each one is tested: no comparison by number. */
static inline bool bundle_rec__any_factor(const double *factor)
{
	typedef uint64_t bits __attribute__((may_alias));
	const bits *at = (const bits *)factor;
	uint64_t any[4] = {0};
	int i;

	for (i = 0; i + 3 < VAPRO_FACTORS; i += 4) {
		any[0] |= at[i];
		any[1] |= at[i + 1];
		any[2] |= at[i + 2];
		any[3] |= at[i + 3];
	}
	for (; i < VAPRO_FACTORS; i++)
		any[0] |= at[i];
	return (any[0] | any[1] | any[2] | any[3]) << 1; /* -0 is 0 */
}

/* The work of a bundle in fragments of the lightest group of its state. */
static inline double bundle_rec__units(const struct bundle_rec *rec)
{
	return (double)rec->n * rec->ratio;
}

static inline uint64_t bundle_rec__bin(const struct bundle_rec *rec)
{
	return (rec->end_ns > rec->start_ns ? rec->end_ns - 1 : rec->end_ns) / VAPRO_BIN_NS;
}

/* Long singles and open fragments are spread over the bins they cover; all else belongs to the bin of its end. */
static inline uint64_t bundle_rec__first_bin(const struct bundle_rec *rec)
{
	return rec->n == 1 ? rec->start_ns / VAPRO_BIN_NS : bundle_rec__bin(rec);
}

/* The share of a bundle that belongs to one of its bins. */
static inline double bundle_rec__share(const struct bundle_rec *rec, uint64_t bin)
{
	uint64_t from = bin * VAPRO_BIN_NS, to = from + VAPRO_BIN_NS;

	if (rec->n != 1 || rec->end_ns <= rec->start_ns)
		return bin == bundle_rec__bin(rec) ? 1 : 0;
	if (from <= rec->start_ns && rec->end_ns <= to)
		return 1;
	if (from < rec->start_ns)
		from = rec->start_ns;
	if (to > rec->end_ns)
		to = rec->end_ns;
	return to > from ? (double)(to - from) / (double)(rec->end_ns - rec->start_ns) : 0;
}

/*
 * Time off the CPU against the task's will: waits for a CPU, throttling, stops, interrupts and stolen time.
 * Threads that wait for each other may spin, and where they share CPUs a preemption is no loss. A woken
 * task without a CPU is late in any case.
 */
static inline double bundle_rec__cpu_attributed(const struct bundle_rec *rec)
{
	if (rec->factor == bundle_rec_no_factors)
		return 0;
	return (rec->waits ? 0 : (double)rec->factor[VAPRO_PREEMPTED]) + rec->factor[VAPRO_WAKEUP_WAIT] +
	       rec->factor[VAPRO_THROTTLED] + rec->factor[VAPRO_STEAL] + rec->factor[VAPRO_STOPPED] +
	       rec->factor[VAPRO_IRQ];
}

/* Time in which a thread could do nothing at all, not even wait beside others: stopped or throttled. */
static inline double bundle_rec__absent(const struct bundle_rec *rec)
{
	if (rec->factor == bundle_rec_no_factors)
		return 0;
	return (double)rec->factor[VAPRO_THROTTLED] + rec->factor[VAPRO_STOPPED];
}

/* Time stolen by the hypervisor. */
static inline double bundle_rec__stolen(const struct bundle_rec *rec)
{
	return rec->factor[VAPRO_STEAL];
}

static inline double bundle_rec__blocked(const struct bundle_rec *rec)
{
	if (rec->factor == bundle_rec_no_factors)
		return 0;
	return (double)rec->factor[VAPRO_BLOCKED_IO] + rec->factor[VAPRO_BLOCKED_OTHER];
}

/* Time on the CPU. */
static inline double bundle_rec__on_cpu(const struct bundle_rec *rec)
{
	double ns = rec->sum_ns - bundle_rec__cpu_attributed(rec) - bundle_rec__blocked(rec);

	return ns > 0 ? ns : 0;
}

/* Time on the CPU that a frequency below the usual one cost. */
static inline double bundle_rec__slowed(const struct bundle_rec *rec)
{
	double ns;

	if (rec->factor == bundle_rec_no_factors)
		return 0;
	ns = (double)rec->factor[VAPRO_FREQUENCY] - (double)rec->factor[BUNDLE_USUAL_FREQUENCY] * rec->n;
	return ns > 0 ? ns : 0;
}

/* Loss of a bundle against its reference, may be negative, and the parts that the kernel attributes. */
struct loss {
	double lost, cpu, blocked;
	double frequency; /* loss on a CPU that the machine reports to run slower */
};

static inline struct loss bundle_rec__loss(const struct bundle_rec *rec)
{
	struct loss loss = {.lost = rec->sum_ns - (double)rec->reference * rec->n};
	double excess = loss.lost > 0 ? loss.lost : 0, cpu, blocked;

	if (rec->factor == bundle_rec_no_factors)
		return loss;
	cpu = bundle_rec__cpu_attributed(rec);
	blocked = bundle_rec__blocked(rec) - (double)rec->factor[BUNDLE_USUAL_BLOCKED] * rec->n;
	loss.cpu = cpu < excess ? cpu : excess;
	excess -= loss.cpu;
	loss.blocked = blocked < 0 ? 0 : blocked < excess ? blocked : excess;
	excess -= loss.blocked;
	loss.frequency = fmin(bundle_rec__slowed(rec), excess);
	return loss;
}

#endif
