/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bundle as the analysis keeps it for one view: a fifth of the size of a vapro_bundle, its state and
 * thread replaced by the series it belongs to, and with what the model thinks of it. Most bundles have
 * no factor at all; those that do have theirs in a block of their own. Times ns.
 */
#ifndef VAPRO_KEPT_H
#define VAPRO_KEPT_H

#include <vapro/bundle.h>

#include <math.h>

#define KEPT_NO_CELL UINT32_MAX /* not clustered, or nothing like it was seen yet */
/* kept.account: made anew in each window, or for the last time. */
#define KEPT_ACCOUNT 1
#define KEPT_ACCOUNT_RETIRING 2

#define KEPT_NO_WORKLOAD (UINT32_MAX - 1) /* clustered by what was not measured */

/* Groups of counters that are not always on; a bundle has those that it was counted with. */
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
	const float *factor; /* VAPRO_FACTORS sums over the n fragments: of the book's pool, or kept_no_factors */
	uint32_t series, n, flags;
	float min_ns, max_ns;
	uint32_t cell;		 /* handle of its workload in the clusters of its state; or as below */
	float ratio;		 /* work of a fragment, in units of the lightest group of its state; model/groups.h */
	float reference;	 /* per fragment; valid where covered */
	float usual_blocked;	 /* per fragment, of the undisturbed members */
	float usual_frequency;	 /* likewise: time that a lower frequency than the highest costs anyway */
	uint8_t fresh : 1;	 /* arrived since the last window */
	uint8_t covered : 1;	 /* takes part in the heat map */
	uint8_t certified : 1;	 /* and counts as coverage */
	uint8_t blind : 1;	 /* covered without any reference: stuck in something never seen before */
	uint8_t warm_up : 1;	 /* among the first members of its workload on this rank */
	uint8_t provisional : 1; /* its reference has no support yet */
	uint8_t taken : 1;	 /* covered for what the kernel attributes alone: its work is not known to be fixed */
	uint8_t reason;		 /* enum vapro_uncovered_reason */
	uint8_t renewed : 1;	 /* its reference has changed enough since the last window to emit its bins again */
	uint8_t waits : 1;	 /* for threads of its process: to be off the CPU costs nothing */
	uint8_t held : 1;	 /* older than the view; kept until its state has enough fragments to be judged */
	uint8_t disturbed : 1;	 /* in time that an alarm owned when the last window ended */
	uint8_t learnt : 1;	 /* part of what is usual of its series */
	uint8_t account : 2;	 /* made of the kernel's own account: no fragment (detect/account.h) */
	uint8_t counted;	 /* bit per counter_group; its factors agree with each other, see diagnose/factors.h */
};

extern const float kept_no_factors[VAPRO_FACTORS]; /* all 0 */

/* Whether a bundle has any factor. Most do not, and this is asked of every one: no comparison by number. */
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

/* The work of a bundle: its fragments, or as many of the lightest of their state. */
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
 * Off the CPU against the task's will: waits for a CPU, stops, and what was taken from it. Threads that wait
 * for each other may spin, and where they share CPUs it is each other's way that they are kept from:
 * no loss. Who was woken and has no CPU yet is late in any case.
 */
static inline double kept__cpu_attributed(const struct kept *kept)
{
	if (kept->factor == kept_no_factors)
		return 0;
	return (kept->waits ? 0 : (double)kept->factor[VAPRO_PREEMPTED]) + kept->factor[VAPRO_WAKEUP_WAIT] +
	       kept->factor[VAPRO_THROTTLED] + kept->factor[VAPRO_STEAL] + kept->factor[VAPRO_STOPPED] +
	       kept->factor[VAPRO_IRQ];
}

/* Of it, what the hypervisor took. */
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

/* What a bundle lost against its reference, and the parts of it that the kernel attributes. May be negative. */
struct loss {
	double lost, cpu, blocked;
	double frequency; /* on the CPU, which the machine reports to run slower */
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
