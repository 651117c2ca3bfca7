/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events that wait for their window, in the order in which they came. They are held encoded, as in a capture: some 60
 * bytes of a bundle instead of 450.
 */
#ifndef VAPRO_CAPTURE_HELD_EVENTS_H
#define VAPRO_CAPTURE_HELD_EVENTS_H

#include <stddef.h>
#include "capture/capture_format.h"

#define HELD_NEXT_WINDOW UINT64_MAX /* time of an event that belongs to the next window announced */

struct held_events;
struct held_event; /* an event as it is held, apart from the others */

struct held_events *held_events__new(void);
void held_events__free(struct held_events *held);

/* Holds an event that is due at time_ns. Returns 0 or -ENOMEM. */
int held_events__add(struct held_events *held, const struct stream_event *event, uint64_t time_ns);

/* Gives time_ns to the events of HELD_NEXT_WINDOW. */
void held_events__date(struct held_events *held, uint64_t time_ns);

/* Puts the events due before end_ns, and holds the others on. Returns the first error of the sink, or -ENOMEM. */
int held_events__put(struct held_events *held, uint64_t end_ns, struct stream_sink *sink);

/* Takes the first event, whose texts live until the next call. Returns false where none is held. */
bool held_events__take(struct held_events *held, struct stream_event *event);

/* Calls seen() for each event held. Returns its first value that is not 0. */
int held_events__each(struct held_events *held,
		      int (*seen)(void *arg, const struct stream_event *event, uint64_t time_ns), void *arg);

/* Returns a copy of the event, which the caller frees; NULL: out of memory. */
struct held_event *held_events__pack(struct held_events *held, const struct stream_event *event);

/* Fills the event; its texts live as long as the copy. */
void held_events__unpack(struct held_events *held, struct held_event *packed, struct stream_event *event);

size_t held_events__bytes(const struct held_events *held);

#endif
