/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's own account (ARCHITECTURE section 6): what took the CPU from a thread in a bin, as the scheduler says,
 * with or without fragments. Fragments that are judged carry their own part of it; the time of a bin that no judged
 * fragment covers becomes a bundle of unknown work, of which what was attributed beyond that part is the loss, where
 * that is more than the threshold leaves. Such a bundle is computation of the state STG_UNSEEN, and no coverage.
 *
 * Records stay as long as the heat map reaches, and the bundles are made anew in each window: a fragment that ends
 * later takes the place of what was known until then, and nothing counts twice.
 *
 * A thread that hardly ever computes loses nothing while it cannot run: it takes part from ACCOUNT_BUSY of its time on.
 */
#ifndef VAPRO_DETECT_ACCOUNT_H
#define VAPRO_DETECT_ACCOUNT_H

#include "detect/heatmap.h"
#include "model/series.h"

#include <vapro/analysis.h>

#define ACCOUNT_BUSY 0.1     /* of the time in which it could run, on a CPU */
#define ACCOUNT_BINS 300     /* before the end of the view: as long as records are kept */
#define ACCOUNT_LEAST_NS 5e6 /* attributed in a bin: less is nobody's loss */

enum account_cause { CAUSE_PREEMPTED, CAUSE_WAKEUP_WAIT, CAUSE_THROTTLED, CAUSE_STOPPED, CAUSE_STEAL, ACCOUNT_CAUSES };

/* What was attributed in a bin to one thread. */
struct account_record {
	uint64_t bin;
	uint32_t thread;
	uint32_t row; /* as of the present window; SERIES_NONE: it takes no part */
	float ns[ACCOUNT_CAUSES];
	float judged_ns, carried_ns; /* of the bin, in judged fragments of the present view; and of ns, with them */
	float past_judged_ns, past_carried_ns; /* the same of those that are kept no longer */
};

/* What all threads of the job were in during a bin. */
struct account_bin {
	uint64_t bin;
	struct result_account sums;
};

struct account {
	struct account_record *records;
	size_t count, capacity;
	struct kept *kept; /* of the present window */
	size_t kept_count, kept_capacity;
	float (*factors)[VAPRO_FACTORS]; /* theirs */
	size_t factor_capacity;
	struct account_bin *bins; /* not yet part of a window, ascending but for late ones */
	size_t bin_count, bin_capacity;
	bool known; /* the job has an account at all: older captures have none */
};

void account__clear(struct account *account);

/* What it holds. */
size_t account__bytes(const struct account *account);

/* Takes a bin of a thread, which is known to the stg. Returns 0 or -ENOMEM. */
int account__add(struct account *account, struct stg *stg, const struct vapro_account *bin);

/*
 * Before a window: threads of records before bin `end` that take part have rows of their own afterwards. Returns 0 or
 * -ENOMEM.
 */
int account__rows(struct account *account, struct stg *stg, uint64_t end);

/* Notes what judged bundles of the job carry of the records. To be called for all of them, between the other two. */
void account__carry(struct account *account, const struct series_book *book, const struct kept *kept, size_t count);

/* The same of a bundle that is dropped after this window, for good. */
void account__carry_past(struct account *account, const struct series_book *book, const struct kept *kept);

/* The bundles that were dropped are back: they will be carried like all others. */
void account__forget_past(struct account *account);

/*
 * Makes the bundles of the records before bin `end`; those of records before bin `retire` are retiring. Returns 0 or
 * -ENOMEM.
 */
int account__make(struct account *account, struct series_book *book, uint64_t end, uint64_t retire);

/* The first bin whose records are kept after a window that ends before bin `end`. */
uint64_t account__retire_bin(const struct heatmap *map, uint64_t end);

/* Drops the records before it. */
void account__retire(struct account *account, uint64_t retire);

/* The sums of all bins before bin `end`, which are forgotten. */
struct result_account account__window(struct account *account, uint64_t end);

#endif
