/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams of several hosts as one: times are converted to UTC, threads and states renumbered (states with equal texts
 * become one), windows are those of the source that began first, then, where that ends or misses some, of the one whose
 * next window begins first. Of each source at most about one window is read ahead, and held encoded.
 *
 * Sources are files, or blocks that arrive: one that has nothing yet is waited for, unless the caller excuses it.
 */
#ifndef VAPRO_CAPTURE_STREAM_MERGE_H
#define VAPRO_CAPTURE_STREAM_MERGE_H

#include <stddef.h>
#include "capture/stream.h"

#define STREAM_MERGE_IDS (1U << 22) /* threads, and states, of one source: ids of more are refused */

struct stream_merge;

/*
 * A source. next() returns 1 and an event, whose texts live until the next call; 0 at its end; -EAGAIN where there is
 * none yet; or a negative errno that ends the merge. Threads and states may be announced again.
 */
struct merge_reader {
	int (*next)(struct merge_reader *reader, struct stream_event *event);
	/*
	 * Where a checkpoint is made, next() also says where it is: in a block (from 1, in order) from whose begin
	 * events can be given again, at the event of this number. All up to there has been given, or will never be.
	 */
	uint64_t block, event;
};

enum merge_order {
	MERGE_LINES_FIRST, /* lines, places, names, hops, stages are put when they are read */
	/*
	 * They are put with the window of their source, whenever they were read: what is put then depends on the
	 * sources alone, not on when they had something to read.
	 */
	MERGE_BY_WINDOW,
};

/* The sink outlives the merge. Returns NULL when out of memory. */
struct stream_merge *stream_merge__new(struct stream_sink *sink, enum merge_order order);
void stream_merge__free(struct stream_merge *merge);

/* Adds a source, which outlives the merge. Returns its number from 0, or -ENOMEM. */
int stream_merge__add(struct stream_merge *merge, struct merge_reader *reader);

/*
 * Sources are put in order of their numbers, unless this moves one to another place among them (from 0): the order
 * in which they became known then does not matter.
 */
void stream_merge__place(struct stream_merge *merge, int source, size_t place);

/* Whether the merge goes on without the source while that has nothing to read. */
void stream_merge__excuse(struct stream_merge *merge, int source, bool excused);

/*
 * Puts the next window with all events due in it. Returns 1; 0 where a source must be waited for, or where all have
 * ended and no window is left (stream_merge__ended); or a negative errno: -EINVAL for a source that contradicts
 * itself, or the sink's.
 */
int stream_merge__advance(struct stream_merge *merge);
bool stream_merge__ended(const struct stream_merge *merge);

/* Puts what cut sources held beyond their last windows, as a last window, and STREAM_END where the end is complete. */
int stream_merge__finish(struct stream_merge *merge, bool complete);

/* UTC: end of the last window put; 0 before the first. */
uint64_t stream_merge__end_ns(const struct stream_merge *merge);

/* UTC: end of the next window, as far as it is known (0: no source has a window yet). */
uint64_t stream_merge__due_ns(const struct stream_merge *merge);

/* UTC: all of the source that ended before has been read; UINT64_MAX once the source has ended. */
uint64_t stream_merge__read_ns(const struct stream_merge *merge, int source);

/*
 * Checkpoints, by window only: state as it was when the last window was put. What the merge read ahead is not part of
 * it: each source is read again from the block that holds the first of that, and what was put before is dropped.
 * Loading goes into a merge that has the same number of sources, and has put nothing; they are given from those blocks
 * on.
 */
struct archive;

void stream_merge__archive(struct stream_merge *merge, struct archive *archive);

/* The first block of the source of which something is held; UINT64_MAX: none. */
uint64_t stream_merge__held_block(const struct stream_merge *merge, int source);

/* Whether all that a checkpoint was made of has been read again: before, no other one can be made. */
bool stream_merge__replayed(const struct stream_merge *merge);

size_t stream_merge__bytes(const struct stream_merge *merge);

#endif
