/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's own account (ARCHITECTURE section 6): the time that a thread lost in a bin by cause, as the scheduler
 * reports, with or without fragments. Judged fragments carry their own part of the account; the time of a bin that no
 * judged fragment covers becomes a bundle of unknown work. The loss of the bundle is the time attributed beyond that
 * part, where it exceeds the threshold. Such a bundle is computation of the state STG_UNSEEN, and no coverage.
 *
 * Records stay as long as the heat map reaches, and the bundles are rebuilt in each window: a fragment that ends
 * later replaces what was known until then, and nothing counts twice.
 *
 * A thread that hardly ever computes loses nothing while it cannot run: it takes part from SHARE_MEANINGFUL of its time
 * on.
 */
#ifndef VAPRO_DETECT_ACCOUNT_H
#define VAPRO_DETECT_ACCOUNT_H

#include "detect/heatmap.h"
#include "model/series.h"

#include <vapro/analysis.h>

#define ACCOUNT_LEAST_NS 5e6 /* attributed in a bin: less is no loss */

enum account_cause { CAUSE_PREEMPTED, CAUSE_WAKEUP_WAIT, CAUSE_THROTTLED, CAUSE_STOPPED, CAUSE_STEAL, ACCOUNT_CAUSES };

/* Time attributed to one thread in a bin. */
struct account_record {
	uint64_t bin;
	uint32_t thread;
	uint32_t row; /* as of the present window; SERIES_NONE: it takes no part */
	float ns[ACCOUNT_CAUSES];
	float slept_ns;			       /* blocked, but not in IO: no loss, see slept.h */
	float judged_ns, carried_ns;	       /* time of the bin, and of ns, in judged fragments of the view */
	float past_judged_ns, past_carried_ns; /* the same in dropped fragments */
	float seen_ns, past_seen_ns;	       /* time of the bin in fragments, judged or not */
};

/* Sums over all threads of the job in a bin. */
struct account_bin {
	uint64_t bin;
	struct result_account sums;
};

struct account {
	struct account_record *records;
	size_t count, capacity;
	struct bundle_rec *recs; /* bundles of the window */
	size_t rec_count, rec_capacity;
	float (*factors)[BUNDLE_FACTORS]; /* factors of the bundles */
	size_t factor_capacity;
	struct account_bin *bins; /* not yet part of a window, ascending but for late ones */
	size_t bin_count, bin_capacity;
	bool known;  /* the job has an account at all: older captures have none */
	bool sleeps; /* records have some sleep */
};

void account__clear(struct account *account);

/* Bytes held. */
size_t account__bytes(const struct account *account);

/*
 * Writes or reads the account of a job; one to be read is empty. The bundles of the last window are not part of it:
 * each window makes them.
 */
void account__archive(struct archive *archive, struct account *account, const struct stg *stg, uint32_t job);

/* Adds a bin of a thread that the stg knows. Returns 0 or -ENOMEM. */
int account__add(struct account *account, struct stg *stg, const struct vapro_account *bin);

/* Gives rows to the threads of records before bin `end` that take part, before a window. Returns 0 or -ENOMEM. */
int account__rows(struct account *account, struct stg *stg, uint64_t end);

/* Notes what bundles show of the time of the records, and what judged ones carry of it. Call for all bundles, between
 * account__rows and account__make. */
void account__carry(struct account *account, const struct series_book *book, const struct bundle_rec *rec,
		    size_t count);

/* Notes the same of a bundle that is dropped after this window. */
void account__carry_past(struct account *account, const struct series_book *book, const struct bundle_rec *rec);

/* Forgets what account__carry_past noted: dropped bundles are back. */
void account__forget_past(struct account *account);

/*
 * Makes the bundles of the records before bin `end`; those of records before bin `retire` are retiring. Returns 0 or
 * -ENOMEM.
 */
int account__make(struct account *account, struct series_book *book, uint64_t end, uint64_t retire);

/* Whether a record is a loss of its own; *time: the time that it covers; *lost: the attributed part. */
bool account__is_loss(const struct account_record *record, const struct vapro_config *config, double *time,
		      double *lost);

/* The first bin whose records stay after a window that ends before bin `end`. */
uint64_t account__retire_bin(const struct heatmap *map, uint64_t end);

/* Drops records before bin `retire`. */
void account__retire(struct account *account, uint64_t retire);

/* Sums up and drops all bins before bin `end`. */
struct result_account account__window(struct account *account, uint64_t end);

#endif
