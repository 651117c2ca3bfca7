// SPDX-License-Identifier: GPL-2.0-or-later
/* Events of a source of the merge: read, held, and put with our ids. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "capture/stream_merge_private.h"

/* Makes room for a source's id. */
static int room(struct ids *ids, uint32_t theirs)
{
	if (theirs >= STREAM_MERGE_IDS)
		return -EINVAL;
	return grow(&ids->items, &ids->capacity, (size_t)theirs + 1, sizeof(*ids->items));
}

int stream_merge__set_id(struct ids *ids, uint32_t theirs, uint32_t ours)
{
	int ret = room(ids, theirs);

	if (!ret)
		ids->items[theirs].ours = ours + 1;
	return ret;
}

/* Turns a source's id into ours. Returns 0, or -EINVAL where it was not announced. */
static int use_id(const struct ids *ids, uint32_t *id)
{
	if (*id >= ids->capacity || !ids->items[*id].ours)
		return -EINVAL;
	*id = ids->items[*id].ours - 1;
	return 0;
}

static bool knows(const struct ids *ids, uint32_t id)
{
	return id < ids->capacity && (ids->items[id].ours || ids->items[id].packed);
}

/*
 * By window, ids get our numbers when the first event that uses them is put: by then all sources have been read, and
 * the numbers do not depend on which was read first.
 */
static int announce_later(struct source *source, struct ids *ids, uint32_t id, const struct stream_event *event)
{
	int ret = knows(ids, id) ? 0 : room(ids, id);

	if (ret || knows(ids, id))
		return ret;
	ids->items[id].packed = held_events__pack(source->held, event);
	return ids->items[id].packed ? 0 : -ENOMEM;
}

static int add_thread(struct stream_merge *merge, struct source *source, struct stream_event *event)
{
	int ret = stream_merge__set_id(&source->threads, event->thread.id, merge->thread_count);

	if (ret)
		return ret;
	event->thread.id = merge->thread_count++;
	return stream__put(merge->sink, event);
}

static int add_state(struct stream_merge *merge, struct source *source, struct stream_event *event)
{
	const struct vapro_state *state = &event->state;
	char *key = NULL;
	uint32_t id;
	size_t size;
	FILE *text;
	int ret;

	text = open_memstream(&key, &size);
	if (!text)
		return -ENOMEM;
	fprintf(text, "%d\n%s%s\n%s\n%s\n%s", state->class, state->from ? "<" : "", state->from ? state->from : "",
		state->to, state->labels, state->common);
	if (fclose(text)) {
		free(key);
		return -ENOMEM;
	}
	id = intern__id(merge->state_texts, key); /* from 1: 0 is NULL's */
	free(key);
	if (id-- == INTERN_NONE)
		return -ENOMEM;
	ret = stream_merge__set_id(&source->states, state->id, id);
	if (ret || id < merge->state_count)
		return ret;
	event->state.id = merge->state_count++;
	return stream__put(merge->sink, event);
}

/* Turns an id into ours, and announces it before its first use. */
static int use_announced(struct source *source, struct ids *ids, uint32_t *id)
{
	struct stream_event event;
	struct held_event *packed;
	int ret;

	if (!knows(ids, *id))
		return -EINVAL;
	packed = ids->items[*id].packed;
	if (packed) {
		held_events__unpack(source->held, packed, &event);
		ret = event.type == STREAM_THREAD ? add_thread(source->merge, source, &event)
						  : add_state(source->merge, source, &event);
		if (ret)
			return ret;
		ids->items[*id].packed = NULL;
		free(packed);
	}
	return use_id(ids, id);
}

/* Puts an event that is due: by window it has its source's ids still. */
int stream_merge__put_event(struct stream_sink *sink, const struct stream_event *event)
{
	struct source *source = (struct source *)sink;
	struct stream_event ours = *event;
	int ret = 0;

	switch (event->type) {
	case STREAM_SEEN:
		ret = use_announced(source, &source->threads, &ours.seen.thread);
		break;
	case STREAM_PLACE:
		ret = use_announced(source, &source->threads, &ours.place.thread);
		break;
	case STREAM_BUNDLE:
		ret = use_announced(source, &source->threads, &ours.bundle.thread);
		if (!ret)
			ret = use_announced(source, &source->states, &ours.bundle.state);
		break;
	case STREAM_INTERFERENCE:
		ret = use_announced(source, &source->threads, &ours.interference.thread);
		break;
	case STREAM_ACCOUNT:
		ret = use_announced(source, &source->threads, &ours.account.thread);
		break;
	case STREAM_INSIDE:
		ret = use_announced(source, &source->threads, &ours.inside.thread);
		if (!ret)
			ret = use_announced(source, &source->states, &ours.inside.state);
		break;
	default:
		break;
	}
	return ret ? ret : stream__put(source->merge->sink, &ours);
}

/* Puts what a source holds and is due. */
int stream_merge__put_due(struct stream_merge *merge, struct source *source, uint64_t end_ns)
{
	return held_events__put(source->held, end_ns, merge->when == MERGE_BY_WINDOW ? &source->due : merge->sink);
}

/* Turns an id of an event that was read into ours; by window it is only checked. */
static int read_id(const struct stream_merge *merge, const struct ids *ids, uint32_t *id)
{
	if (merge->when == MERGE_LINES_FIRST)
		return use_id(ids, id);
	return knows(ids, *id) ? 0 : -EINVAL;
}

static int note_mark(struct source *source, uint64_t time_ns)
{
	struct mark *mark = source->mark_count ? &source->marks[source->mark_count - 1] : NULL;

	if (!mark || mark->block != source->reader->block) {
		if (grow(&source->marks, &source->mark_capacity, source->mark_count + 1, sizeof(*mark)))
			return -ENOMEM;
		mark = &source->marks[source->mark_count++];
		*mark = (struct mark){.block = source->reader->block};
	}
	if (time_ns == HELD_NEXT_WINDOW)
		mark->undated = true;
	else if (time_ns > mark->latest_ns)
		mark->latest_ns = time_ns;
	return 0;
}

/* Whether the event just read is in the checkpoint; also true of the last event in it. */
static bool was_read(const struct source *source)
{
	const struct merge_reader *reader = source->reader;

	return reader->block < source->resumed.block ||
	       (reader->block == source->resumed.block && reader->event <= source->resumed.event);
}

/* Holds an event until its window, unless it was put before a checkpoint. */
static int hold(struct source *source, const struct stream_event *event, uint64_t time_ns)
{
	int ret;

	if (time_ns < source->merge->resumed_ns && was_read(source))
		return 0;
	ret = held_events__add(source->held, event, time_ns);
	return ret ? ret : note_mark(source, time_ns);
}

static int drop(struct stream_sink *sink, const struct stream_event *event)
{
	(void)sink;
	(void)event;
	return 0;
}

/* Sets the times of facts and open fragments to that of their window. */
static int date(struct source *source, uint64_t time_ns)
{
	struct stream_sink dropped = {.put = drop};

	held_events__date(source->held, time_ns);
	for (size_t i = 0; i < source->mark_count; i++) {
		struct mark *mark = &source->marks[i];

		if (mark->undated && time_ns > mark->latest_ns)
			mark->latest_ns = time_ns;
		mark->undated = false;
	}
	if (time_ns >= source->merge->resumed_ns || !was_read(source))
		return 0;
	return held_events__put(source->held, source->merge->resumed_ns, &dropped);
}

static int add_window(const struct stream_merge *merge, struct source *source, const struct stream_window *window)
{
	int ret;

	/* a late window record of a source that was excused starts no further window */
	if (window->end_ns <= merge->end_ns)
		source->window = *window;
	else if (grow(&source->windows, &source->window_capacity, source->window_count + 1, sizeof(*window)))
		return -ENOMEM;
	else
		source->windows[source->window_count++] = *window;
	source->read_ns = window->end_ns;
	source->finished = window->last;
	/* facts and open fragments belong to this window, which is read again while it is not used */
	ret = date(source, window->end_ns - 1);
	return ret || window->end_ns <= merge->end_ns ? ret : note_mark(source, window->end_ns - 1);
}

/* Puts an event that no time decides about, or holds it for the window of its source. */
static int pass(struct stream_merge *merge, struct source *source, const struct stream_event *event)
{
	if (merge->when == MERGE_LINES_FIRST)
		return stream__put(merge->sink, event);
	return hold(source, event, HELD_NEXT_WINDOW);
}

static int take_seen(struct stream_merge *merge, struct source *source, struct stream_event *event)
{
	int ret = read_id(merge, &source->threads, &event->seen.thread);

	if (ret)
		return ret;
	if (event->seen.from_ns)
		event->seen.from_ns += source->offset;
	/* put with the next window, which may be before the source's first one: the thread was there already */
	if (!event->seen.to_ns)
		return merge->when == MERGE_LINES_FIRST ? stream__put(merge->sink, event) : hold(source, event, 0);
	event->seen.to_ns += source->offset;
	return hold(source, event, event->seen.to_ns);
}

static int take_bundle(const struct stream_merge *merge, struct source *source, struct stream_event *event)
{
	struct vapro_bundle *bundle = &event->bundle;

	if (read_id(merge, &source->threads, &bundle->thread) || read_id(merge, &source->states, &bundle->state))
		return -EINVAL;
	bundle->start_ns += source->offset;
	bundle->end_ns += source->offset;
	return hold(source, event, bundle->flags & VAPRO_BUNDLE_OPEN ? HELD_NEXT_WINDOW : bundle->end_ns);
}

/* Puts a source's event at once, or holds it until its window. */
int stream_merge__take(struct stream_merge *merge, struct source *source, struct stream_event *event)
{
	switch (event->type) {
	case STREAM_LINE:
	case STREAM_NAME:
	case STREAM_HOST_CLOCK:
		return pass(merge, source, event);
	case STREAM_CLOCK:
		source->offset = event->clock.utc_ns - event->clock.mono_ns;
		return 0;
	case STREAM_THREAD:
		if (merge->when == MERGE_BY_WINDOW)
			return announce_later(source, &source->threads, event->thread.id, event);
		return knows(&source->threads, event->thread.id) ? 0 : add_thread(merge, source, event);
	case STREAM_STATE:
		if (merge->when == MERGE_BY_WINDOW)
			return announce_later(source, &source->states, event->state.id, event);
		return knows(&source->states, event->state.id) ? 0 : add_state(merge, source, event);
	case STREAM_SEEN:
		return take_seen(merge, source, event);
	case STREAM_BUNDLE:
		return take_bundle(merge, source, event);
	case STREAM_PLACE:
		return read_id(merge, &source->threads, &event->place.thread) ? -EINVAL : pass(merge, source, event);
	case STREAM_STAGE:
		event->stage.begin_ns += source->offset;
		event->stage.end_ns += source->offset;
		return pass(merge, source, event);
	case STREAM_HOP:
		event->hop.begin_ns += source->offset;
		event->hop.end_ns += source->offset;
		return pass(merge, source, event);
	case STREAM_INTERFERENCE:
		if (read_id(merge, &source->threads, &event->interference.thread))
			return -EINVAL;
		return hold(source, event, event->interference.bin * VAPRO_BIN_NS);
	case STREAM_ACCOUNT:
		if (read_id(merge, &source->threads, &event->account.thread))
			return -EINVAL;
		return hold(source, event, event->account.bin * VAPRO_BIN_NS);
	case STREAM_INSIDE:
		if (read_id(merge, &source->threads, &event->inside.thread) ||
		    read_id(merge, &source->states, &event->inside.state))
			return -EINVAL;
		return hold(source, event, HELD_NEXT_WINDOW);
	case STREAM_FACTS:
		return hold(source, event, HELD_NEXT_WINDOW);
	case STREAM_WINDOW:
		return add_window(merge, source, &event->window);
	case STREAM_GONE: /* other sources may have the state, too */
		return 0;
	case STREAM_END:
		source->finished = true;
		break;
	}
	return 0;
}
