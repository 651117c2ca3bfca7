/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sums over the fragments inside one variance: loss by class, its attributed part, the series that lost
 * time, the worst fragments. Tallies add, so a variance that outlives the view keeps a tally of dropped
 * bundles and adds the present ones to it: nothing counts twice.
 */
#ifndef VAPRO_TALLY_H
#define VAPRO_TALLY_H

#include "detect/heatmap.h"
#include "model/series.h"

enum { TALLY_WORST = 5 }; /* exemplars of a variance */

/*
 * What took time from the threads of a variance: parts of the loss that have causes of their own. The kernel knows all
 * but the last; that is loss on the CPU, or inside of calls.
 */
enum tally_part {
	TALLY_PREEMPTED, /* with waits for a CPU after a wake-up */
	TALLY_THROTTLED,
	TALLY_STEAL,
	TALLY_STOPPED,
	TALLY_BLOCKED_IO,
	TALLY_BLOCKED_OTHER,
	TALLY_IRQ,
	TALLY_OTHER,
	TALLY_PARTS
};

struct table;

/* One part of what a series lost. */
struct tally_cause {
	uint32_t series, next; /* next of the series, + 1; 0: the end */
	uint32_t part;	       /* enum tally_part */
	double lost;	       /* ns */
	uint64_t begin, end;   /* bins in which it took most of what was lost, or much; equal: none */
};

struct tally_series {
	uint32_t series;
	uint32_t causes;	       /* first one, + 1; 0: none */
	double n, dur, ref, net, lost; /* net: without what the kernel attributes */
	double longest;		       /* ns, of one fragment */
	double open_n, open_dur;       /* n and dur of open fragments */
	struct series_usual own;       /* its part of the series' usual sums */
};

struct tally_worst {
	double excess;
	uint32_t series;
	uint64_t start_ns;
	double dur;
	float factor[VAPRO_FACTORS];
};

struct tally {
	double dur[VAPRO_CLASSES], ref[VAPRO_CLASSES], lost[VAPRO_CLASSES]; /* ns */
	double cpu[VAPRO_CLASSES], blocked[VAPRO_CLASSES];		    /* attributed parts of lost */
	double faults;							    /* lost by fragments with major faults */
	double no_reference;						    /* lost without any reference */
	double account;							    /* lost by the kernel's account alone */
	double single_calls;	     /* lost by calls that are fragments of their own */
	double occurrence;	     /* lost beside ranks that did the same at the same time */
	double provisional;	     /* lost against a reference without support */
	double young;		     /* lost in the first computations of states that take long */
	double frequency;	     /* computation's loss to a lower frequency than usual */
	double cpu_waits, own_waits; /* s: waits for a CPU; part of them while the job had more threads than CPUs */
	struct cpu_demand demand;    /* demand in own_waits where the most threads share CPUs */
	double pair_lost, pair_base; /* lost in bins where two states were slow, and in all bins examined */
	double factor[VAPRO_FACTORS];
	double attributed[VAPRO_CLASSES]; /* what the kernel attributes, also of fragments that lost less */
	double caused[TALLY_PARTS];	  /* waiting of others for what each part took; detect/caused.h */
	struct tally_series *series;
	size_t series_count, series_capacity;
	struct table *index;	   /* index of series, from INDEX_FROM on */
	struct tally_worst *worst; /* room for TALLY_WORST, once there is any */
	unsigned worst_count;
	bool open;
	struct tally_cause *causes;
	size_t cause_count, cause_capacity;
};

/*
 * The parts of what a bundle lost, ns: those that the kernel attributes, though it lost less, and the rest. Time
 * off the CPU in calls that waited, too, is no loss.
 */
void tally__parts(const struct bundle_rec *rec, enum vapro_class class, double *parts);

/* Whether calls were off the CPU, and took no longer for any other reason. */
bool tally__is_held_up(const struct bundle_rec *rec);

/*
 * Adds a share of a bundle, which lies in the bins [begin, end). A guest is a communication bundle in a cell that the
 * computation of its rank owns: only what the kernel attributes of it belongs there. Returns 0 or -ENOMEM.
 */
int tally__add(struct tally *tally, const struct bundle_rec *rec, enum vapro_class class, double share, bool guest,
	       uint64_t begin, uint64_t end);
/* Adds a share of the unseen waits of a computation (detect/unseen_waits.h), as communication. 0 or -ENOMEM. */
int tally__add_wait(struct tally *tally, const struct bundle_rec *rec, double share);
/* Adds a thread's wait for a CPU. oversubscribed: NULL unless the threads of the job outnumber its CPUs. */
void tally__add_cpu_wait(struct tally *tally, double seconds, const struct cpu_demand *oversubscribed);

/*
 * Adds all of `from`. Sums of time and fragments are equal in any order of merges (base/exact.h), but for the squares
 * in `own`. Returns 0 or -ENOMEM.
 */
int tally__merge(struct tally *into, const struct tally *from);

/* Share of the waits for a CPU that were for the job's own threads, where these outnumber its CPUs. */
static inline double tally__own_share(const struct tally *tally)
{
	return tally->own_waits > 0 ? fmin(1, tally->own_waits / tally->cpu_waits) : 0;
}

/* NULL where the tally has no such series. */
const struct tally_series *tally__of(const struct tally *tally, uint32_t series);

/* Clears `own`, which is not part of the usual sums. */
void tally__unlearn(struct tally *tally);

/* Writes or reads a tally over a book of so many series; one to be read is empty. */
void tally__archive(struct archive *archive, struct tally *tally, size_t series);

void tally__clear(struct tally *tally);

/* Bytes held beside the struct. */
size_t tally__bytes(const struct tally *tally);

#endif
