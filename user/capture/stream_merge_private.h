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

struct source {
	struct stream_sink due; /* first: events of MERGE_BY_WINDOW that are due, with the source's ids */
	struct stream_merge *merge;
	struct merge_reader *reader;
	uint64_t offset; /* UTC - monotonic */
	struct ids threads, states;
	struct held_events *held;
	struct stream_window *windows; /* windows read and not yet used */
	size_t window_count, window_capacity;
	uint64_t read_ns;	     /* all that ended earlier is read */
	struct stream_window window; /* latest window used */
	bool finished, excused;
};

struct stream_merge {
	struct source **sources;
	size_t count, capacity;
	struct source *leader; /* its windows are the stream's */
	struct intern *state_texts;
	uint32_t state_count, thread_count;
	struct stream_sink *sink;
	enum merge_order order;
	uint64_t end_ns; /* of the last window put */
	bool begun, last;
};

/* Puts an event of a source at once, or holds it until its window. Returns 0 or a negative errno. */
int merge_source__take(struct stream_merge *merge, struct source *source, struct stream_event *event);

/* Puts what a source holds and is due. */
int merge_source__put_due(struct stream_merge *merge, struct source *source, uint64_t end_ns);

/* The sink of MERGE_BY_WINDOW: puts an event that is due, with its source's ids still. */
int merge_source__put_event(struct stream_sink *sink, const struct stream_event *event);

#endif
