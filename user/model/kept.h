/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record of a bundle for one view: a fifth of the size of a vapro_bundle, with a series in place of
 * state and thread, and with the verdict of the model. Most bundles have no factor at all; the others
 * have a block of factors of their own. Times are in ns.
 */
#ifndef VAPRO_KEPT_H
#define VAPRO_KEPT_H

#include <vapro/bundle.h>

#include <math.h>

#define KEPT_NO_CELL UINT32_MAX /* not clustered, or nothing like it was seen yet */
/* kept.account: rebuilt in each window, or for the last time. */
#define KEPT_ACCOUNT 1
#define KEPT_ACCOUNT_RETIRING 2

#define KEPT_NO_WORKLOAD (UINT32_MAX - 1) /* its magnitudes were not measured */

/* Groups of counters that are not always on; a bundle has those that counted it. */
enum counter_group {
	COUNTER_TOP,
	COUNTER_FRONTEND,
	COUNTER_BAD_SPECULATION,
	COUNTER_BACKEND,
	COUNTER_MEMORY,
	COUNTER_GROUPS
};

struct kept {
	uint64_t start_ns, end_ns;
	double sum_ns;
	const float *factor; /* VAPRO_FACTORS sums over the n fragments: in the book's pool, or kept_no_factors */
	uint32_t series, n, flags;
	float min_ns, max_ns;
	uint32_t cell;		 /* handle of its workload in the clusters of its state; or KEPT_NO_* */
	float ratio;		 /* work of a fragment, in units of the lightest group of its state; model/groups.h */
	float reference;	 /* per fragment; valid where covered */
	float usual_blocked;	 /* per fragment, of the undisturbed members */
	float usual_frequency;	 /* per fragment: usual cost of a frequency below the highest */
	uint8_t fresh : 1;	 /* arrived since the last window */
	uint8_t covered : 1;	 /* takes part in the heat map */
	uint8_t certified : 1;	 /* counts as coverage */
	uint8_t blind : 1;	 /* covered without any reference: stuck in an unknown state */
	uint8_t warm_up : 1;	 /* among the first members of its workload on this rank */
	uint8_t provisional : 1; /* its reference has no support yet */
	uint8_t taken : 1;	 /* covered for attributed time alone: its work is not known to be fixed */
	uint8_t reason;		 /* enum vapro_uncovered_reason */
	uint8_t renewed : 1;	 /* its reference has changed enough since the last window to emit its bins again */
	uint8_t waits : 1;	 /* waits for threads of its process: no loss off the CPU */
	uint8_t held : 1;	 /* older than the view; retained until its state has enough fragments */
	uint8_t disturbed : 1;	 /* in time that an alarm owned at the end of the last window */
	uint8_t learnt : 1;	 /* part of the usual time of its series */
	uint8_t account : 2;	 /* made from the kernel's account: no fragment (detect/account.h) */
	uint8_t counted;	 /* bit per counter_group; its factors agree with each other, see diagnose/factors.h */
};

extern const float kept_no_factors[VAPRO_FACTORS]; /* all 0 */

/* Whether a bundle has any factor. Most have none, and each one is tested: no comparison by number. */
static inline bool kept__any_factor(const double *factor)
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
static inline double kept__units(const struct kept *kept)
{
	return (double)kept->n * kept->ratio;
}

static inline uint64_t kept__bin(const struct kept *kept)
{
	return (kept->end_ns > kept->start_ns ? kept->end_ns - 1 : kept->end_ns) / VAPRO_BIN_NS;
}

/* Long singles and open fragments are spread over the bins they cover; all else belongs to the bin of its end. */
static inline uint64_t kept__first_bin(const struct kept *kept)
{
	return kept->n == 1 ? kept->start_ns / VAPRO_BIN_NS : kept__bin(kept);
}

/* The share of a bundle that belongs to one of its bins. */
static inline double kept__share(const struct kept *kept, uint64_t bin)
{
	uint64_t from = bin * VAPRO_BIN_NS, to = from + VAPRO_BIN_NS;

	if (kept->n != 1 || kept->end_ns <= kept->start_ns)
		return bin == kept__bin(kept) ? 1 : 0;
	if (from <= kept->start_ns && kept->end_ns <= to)
		return 1;
	if (from < kept->start_ns)
		from = kept->start_ns;
	if (to > kept->end_ns)
		to = kept->end_ns;
	return to > from ? (double)(to - from) / (double)(kept->end_ns - kept->start_ns) : 0;
}

/*
 * Time off the CPU against the task's will: waits for a CPU, throttling, stops, interrupts and stolen time.
 * Threads that wait for each other may spin, and where they share CPUs a preemption is no loss. A woken
 * task without a CPU is late in any case.
 */
static inline double kept__cpu_attributed(const struct kept *kept)
{
	if (kept->factor == kept_no_factors)
		return 0;
	return (kept->waits ? 0 : (double)kept->factor[VAPRO_PREEMPTED]) + kept->factor[VAPRO_WAKEUP_WAIT] +
	       kept->factor[VAPRO_THROTTLED] + kept->factor[VAPRO_STEAL] + kept->factor[VAPRO_STOPPED] +
	       kept->factor[VAPRO_IRQ];
}

/* Time stolen by the hypervisor. */
static inline double kept__stolen(const struct kept *kept)
{
	return kept->factor[VAPRO_STEAL];
}

static inline double kept__blocked(const struct kept *kept)
{
	if (kept->factor == kept_no_factors)
		return 0;
	return (double)kept->factor[VAPRO_BLOCKED_IO] + kept->factor[VAPRO_BLOCKED_OTHER];
}

static inline double kept__suspension(const struct kept *kept)
{
	return (double)kept->factor[VAPRO_PREEMPTED] + kept->factor[VAPRO_WAKEUP_WAIT] + kept->factor[VAPRO_THROTTLED] +
	       kept->factor[VAPRO_STEAL] + kept->factor[VAPRO_STOPPED] + kept__blocked(kept);
}

/* Time on the CPU that a frequency below the usual one cost. */
static inline double kept__slowed(const struct kept *kept)
{
	double ns;

	if (kept->factor == kept_no_factors)
		return 0;
	ns = (double)kept->factor[VAPRO_FREQUENCY] - (double)kept->usual_frequency * kept->n;
	return ns > 0 ? ns : 0;
}

/* Loss of a bundle against its reference, may be negative, and the parts that the kernel attributes. */
struct loss {
	double lost, cpu, blocked;
	double frequency; /* loss on a CPU that the machine reports to run slower */
};

static inline struct loss kept__loss(const struct kept *kept)
{
	struct loss loss = {.lost = kept->sum_ns - (double)kept->reference * kept->n};
	double excess = loss.lost > 0 ? loss.lost : 0, cpu, blocked;

	if (kept->factor == kept_no_factors)
		return loss;
	cpu = kept__cpu_attributed(kept);
	blocked = kept__blocked(kept) - (double)kept->usual_blocked * kept->n;
	loss.cpu = cpu < excess ? cpu : excess;
	excess -= loss.cpu;
	loss.blocked = blocked < 0 ? 0 : blocked < excess ? blocked : excess;
	excess -= loss.blocked;
	loss.frequency = fmin(kept__slowed(kept), excess);
	return loss;
}

#endif
