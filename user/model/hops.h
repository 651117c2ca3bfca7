/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which call-sites are hopped: a program that wraps MPI makes all its calls from few call-sites, and what lies
 * between two of them is now this and now that. Where the times of a call-site's states spread and are a large share
 * of all, its calls are distinguished by their callers (one frame up); the callers are call-sites like others, so that
 * what still spreads goes on to the next frame, HOP frames at most. While this is tried (a trial), it is looked at
 * what came of it:
 *
 *   one caller only          the next frame is tried at once; where there is none, it goes back
 *   several, and steadier    it stays
 *   several, and not so      the callers that spread are tried; where none helps, it goes back
 *
 * What went back, or cannot be hopped, is remembered for good: each call-site is tried once. Times of calls of MPI do
 * not count: waiting for others spreads them, whoever calls. How steady a time is: the share of it that lies near
 * populous durations, divided by the number of those.
 *
 * The book only decides. What is decided is carried out by somebody else, who tells the outcome.
 */
#ifndef VAPRO_HOPS_H
#define VAPRO_HOPS_H

#include "model/series.h"

struct hops;

/* NULL when out of memory. */
struct hops *hops__new(void);
void hops__free(struct hops *hops);

/*
 * The next decision about the call-sites of a book: hop is VAPRO_HOP_NONE where none is due. Its texts live until the
 * next call. Returns 0 or -ENOMEM.
 */
int hops__next(struct hops *hops, const struct series_book *book, uint64_t now_ns, struct vapro_hop_event *next);

/* What became of a decision, or was decided elsewhere (a capture's). Returns 0 or -ENOMEM. */
int hops__note(struct hops *hops, const struct vapro_hop_event *event, uint64_t now_ns);

/* What it holds. */
size_t hops__bytes(const struct hops *hops);

#endif
