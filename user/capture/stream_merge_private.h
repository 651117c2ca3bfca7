/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by stream_merge.c (windows) and merge_source.c (events of a source come in, and are put). */
#ifndef VAPRO_CAPTURE_STREAM_MERGE_PRIVATE_H
#define VAPRO_CAPTURE_STREAM_MERGE_PRIVATE_H

#include "base/intern.h"
#include "capture/held_events.h"
#include "capture/stream_merge.h"

/* An id of a source. */
struct id {
	uint32_t ours;		   /* plus 1; 0: it has none yet */
	struct held_event *packed; /* its announcement, until it has */
};

struct ids {
	struct id *items;
	size_t capacity;
};

/* A block with events that are held, or with a window that is yet to come. */
struct mark {
	uint64_t block;
	uint64_t latest_ns; /* of them */
	bool undated;	    /* has events of HELD_NEXT_WINDOW */
};

/* A place in a source. */
struct place {
	uint64_t block, event;
};

struct source {
	struct stream_sink due; /* first: events of MERGE_BY_WINDOW that are due, with the source's ids */
	struct stream_merge *merge;
	struct merge_reader *reader;
	uint64_t offset; /* UTC - monotonic */
	struct ids threads, states;
	struct held_events *held;
	struct stream_window *windows; /* windows read and not yet used */
	size_t window_count, window_capacity;
	struct mark *marks; /* in order */
	size_t mark_count, mark_capacity;
	struct place put;	     /* what was read when the last window was put */
	struct place resumed;	     /* what a checkpoint had read: what was due then is not put again */
	uint64_t read_ns;	     /* all that ended earlier is read */
	struct stream_window window; /* latest window used */
	bool finished, excused;
};

struct stream_merge {
	struct source **sources; /* by number */
	size_t count, capacity;
	struct source **order; /* in which they are put */
	size_t order_capacity;
	struct source *leader; /* its windows are the stream's */
	struct intern *state_texts;
	uint32_t state_count, thread_count;
	struct stream_sink *sink;
	enum merge_order when;
	uint64_t end_ns;     /* of the last window put */
	uint64_t resumed_ns; /* the same, as the checkpoint had it; 0: there was none */
	bool begun, last;
};

/* Puts an event of a source at once, or holds it until its window. Returns 0 or a negative errno. */
int stream_merge__take(struct stream_merge *merge, struct source *source, struct stream_event *event);

/* Sets an id of a source. Returns 0, -EINVAL or -ENOMEM. */
int stream_merge__set_id(struct ids *ids, uint32_t theirs, uint32_t ours);

/* Whether the source repeats events that are in the checkpoint. */
static inline bool stream_merge__replays(const struct source *source)
{
	const struct merge_reader *reader = source->reader;

	return reader->block < source->resumed.block ||
	       (reader->block == source->resumed.block && reader->event < source->resumed.event);
}

/* Puts what a source holds and is due. */
int stream_merge__put_due(struct stream_merge *merge, struct source *source, uint64_t end_ns);

/* The sink of MERGE_BY_WINDOW: puts an event that is due, with its source's ids still. */
int stream_merge__put_event(struct stream_sink *sink, const struct stream_event *event);

#endif
