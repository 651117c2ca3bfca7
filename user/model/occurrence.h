/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of IO that come too rarely for a history, such as a checkpoint each hour: what other ranks take for equal bytes
 * at the same time is their reference. Ranks within the usual range of an occurrence lose nothing; beyond it, as far as
 * the distribution of its ranks extrapolates, they lose all above the median, as in model/scatter.h.
 */
#ifndef VAPRO_OCCURRENCE_H
#define VAPRO_OCCURRENCE_H

#include "model/series.h"

/* Whether a long single fragment that was judged is a call of IO on a file, whose state has no history. */
bool occurrence__is_rare_call(const struct series_book *book, const struct bundle_rec *rec);

/*
 * Whether a bundle that was judged may be compared so: one long call of IO on a file, whose state has no history.
 */
static inline bool occurrence__fits(const struct series_book *book, const struct bundle_rec *rec)
{
	/* mostly it is no single long fragment */
	return rec->n == 1 && rec->sum_ns >= book->config->min_lost_s * 1e9 && occurrence__is_rare_call(book, rec);
}

/*
 * Judges bundles that fit, in any order: each has the reference of its occurrence, where at least three ranks have one.
 * Returns 0 or -ENOMEM.
 */
int occurrence__judge(const struct series_book *book, struct bundle_rec **recs, size_t count);

#endif
