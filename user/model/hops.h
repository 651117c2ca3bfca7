/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides which call-sites are hopped: a program that wraps MPI makes all its calls from few call-sites, and the work
 * between two of them varies. Where the times of a call-site's states spread or form several groups, and are a large
 * share of all time, its calls are distinguished by their callers (one frame up); these are call-sites, so that a
 * caller that still spreads is hopped as well, over hop_frames frames at most. A trial ends in one of these ways:
 *
 *   one caller only          the next frame is tried at once; where there is none, the hop is undone
 *   several, and steadier    the hop stays
 *   several, not steadier    the callers that spread are tried; where none helps, the hop is undone
 *
 * A call-site whose hop is undone or refused is never tried again. Times of MPI calls do not count: waiting for other
 * ranks spreads them, whatever the caller. Steadiness is the share of time that lies near populous durations, or near
 * durations with as great a share of the time, divided by the number of these durations. A call-site is tried where
 * that is low, or most of its time is in states that are not certified. A state whose successive computations are
 * alike, and which differs from one moment to another only (model/successive.h), counts as steady until 20 s of its
 * time have spread: most often its host is slow for a while, and in a trial all states that end at the call-site lose
 * their references. A call-site of which other tasks interrupt a tenth of the computations is not tried before 20 s of
 * its time have spread either; nor is a trial given up for as long. A trial lasts at most 60 s, counted from the last
 * decision on one of its callers.
 *
 * The book only decides: the caller carries a decision out, and reports its outcome.
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

/*
 * Records the outcome of a decision, of this book or a capture. Each node of a job reports its own: a refusal counts
 * where no node has hopped the call-site, and a call-site goes up and back once. Returns 0 or -ENOMEM.
 */
int hops__note(struct hops *hops, const struct vapro_hop_event *event, uint64_t now_ns);

/* Writes or reads all decisions; a book to be read is new. */
void hops__archive(struct archive *archive, struct hops *hops);

/* Forgets the states whose numbers are free: others may get them. */
void hops__release(struct hops *hops, const struct stg *stg);

/* The number of states that it has read, from the first on. */
size_t hops__states(const struct hops *hops);

/* Bytes held. */
size_t hops__bytes(const struct hops *hops);

#endif
