/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by a window's analysis (window_run.c) and by what histories take over from bundles (window_learn.c). */
#ifndef VAPRO_ANALYSIS_WINDOW_PRIVATE_H
#define VAPRO_ANALYSIS_WINDOW_PRIVATE_H

#include "analysis/window.h"

/* Whether all threads of a job are known to have ended by the end of a window. */
bool analysis__job_over(const struct stg_job *about, const struct analysis_span *span);

/* Adds the stalls that leave the view to those of the job. Returns 0 or -ENOMEM. */
int analysis_window__add_stalls(struct analysis_context *context, struct analysis_job *job,
				const struct analysis_span *span);

/* Whether a bundle ends after the window. */
static inline bool pending(const struct bundle_rec *rec, const struct analysis_span *span)
{
	return bundle_rec__bin(rec) >= span->end;
}

static inline void add_factors(double *restrict sums, const float *restrict factor)
{
	for (int i = 0; i < VAPRO_FACTORS; i++)
		sums[i] += factor[i];
}

/* Adds a bundle to the sums of normal fragments. */
static inline void add_pile(struct series_pile *pile, const struct bundle_rec *rec)
{
	pile->n += bundle_rec__units(rec);
	pile->sum_ns += rec->sum_ns;
	if (rec->factor != bundle_rec_no_factors)
		add_factors(pile->factor, rec->factor);
	for (int group = 0; rec->counted && group < COUNTER_GROUPS; group++)
		pile->counted_n[group] += rec->counted & 1U << group ? bundle_rec__units(rec) : 0;
}

/* Prefetches the usual and normal sums that an upcoming bundle goes to, and the bundle's factors. */
SERIES_FETCH void fetch_sums(const struct series *series, const struct bundle_rec *rec, size_t i, size_t count,
			     size_t usual, size_t normal)
{
	const struct bundle_rec *next;
	bool factors;

	if (count - i <= SERIES_AHEAD)
		return;
	next = &rec[i + SERIES_AHEAD];
	factors = next->factor != bundle_rec_no_factors;
	series__fetch(series, rec, i, count, usual, normal + (factors ? sizeof(struct series_pile) : 16));
	for (size_t at = 0; factors && at < VAPRO_FACTORS; at += 16)
		__builtin_prefetch(next->factor + at);
}

#endif
