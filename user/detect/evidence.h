/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides whether a variance is certain enough for an alarm (ARCHITECTURE section 6 (d) and (e),
 * section 7), and which variance caused it. A false alarm is the worst error: a loss that a change of
 * the program could explain as well stays unconfirmed.
 *
 *  computation    the kernel attributes at least evidence_share of the loss; or, in the bins that lost
 *                 most, two states of one rank are slow, also against their usual times
 *                 (noise does not respect states, a phase of the program does), and not all ranks
 *                 are slow alike.
 *  suspended calls the kernel attributes most of the loss.
 *  io             the kernel attributes sleep, or its states have a history; both unusual for these
 *                 states; not on pipes and sockets, where the other end decides.
 *  waiting        mainly for a late peer: an effect, never an alarm. Transfer: two states slow, all
 *                 ranks seen, and the computation around it certified and undisturbed.
 */
#ifndef VAPRO_EVIDENCE_H
#define VAPRO_EVIDENCE_H

#include "detect/evidence_input.h"

/*
 * Adds the loss of bins in which two states were slow to the tallies, for bins in [view, retire) to
 * the retiring and in [retire, end) to the staying ones, and to their totals, which are up to date but for that.
 * transfers: as in bundle_shares__find. Returns 0 or -ENOMEM.
 */
int evidence__pairs(struct variance_book *book, const struct evidence_input *input, const struct bundle_rec *rec,
		    const float *transfers, size_t count, uint64_t view, uint64_t retire);

/* Judges all matched variances: class, confirmed, evidence, effect_of, alarm. */
void evidence__judge(struct variance_book *book, const struct evidence_input *input);

/* Judges an effect again whose cause costs too little to be listed: it is waiting that no variance explains. */
void evidence__unexplained(struct variance *variance);

#endif
