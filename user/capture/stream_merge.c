// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/stream_merge.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/intern.h"
#include "capture/held_events.h"

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

/* Makes room for a source's id. */
static int room(struct ids *ids, uint32_t theirs)
{
	if (theirs >= STREAM_MERGE_IDS)
		return -EINVAL;
	return grow(&ids->items, &ids->capacity, (size_t)theirs + 1, sizeof(*ids->items));
}

static int set_id(struct ids *ids, uint32_t theirs, uint32_t ours)
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
	int ret = set_id(&source->threads, event->thread.id, merge->thread_count);

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
	ret = set_id(&source->states, state->id, id);
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
static int put_event(struct stream_sink *sink, const struct stream_event *event)
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
	default:
		break;
	}
	return ret ? ret : stream__put(source->merge->sink, &ours);
}

/* Puts what a source holds and is due. */
static int put_due(struct stream_merge *merge, struct source *source, uint64_t end_ns)
{
	return held_events__put(source->held, end_ns, merge->order == MERGE_BY_WINDOW ? &source->due : merge->sink);
}

/* Turns an id of an event that was read into ours; by window it is only checked. */
static int read_id(const struct stream_merge *merge, const struct ids *ids, uint32_t *id)
{
	if (merge->order == MERGE_LINES_FIRST)
		return use_id(ids, id);
	return knows(ids, *id) ? 0 : -EINVAL;
}

static int add_window(const struct stream_merge *merge, struct source *source, const struct stream_window *window)
{
	/* one that comes after its time, from a source that was excused, is no window of its own */
	if (window->end_ns <= merge->end_ns)
		source->window = *window;
	else if (grow(&source->windows, &source->window_capacity, source->window_count + 1, sizeof(*window)))
		return -ENOMEM;
	else
		source->windows[source->window_count++] = *window;
	source->read_ns = window->end_ns;
	source->finished = window->last;
	/* facts and open fragments belong to this window */
	held_events__date(source->held, window->end_ns - 1);
	return 0;
}

/* Puts an event that no time decides about, or holds it for the window of its source. */
static int pass(struct stream_merge *merge, struct source *source, const struct stream_event *event)
{
	if (merge->order == MERGE_LINES_FIRST)
		return stream__put(merge->sink, event);
	return held_events__add(source->held, event, HELD_NEXT_WINDOW);
}

static int take_seen(struct stream_merge *merge, struct source *source, struct stream_event *event)
{
	int ret = read_id(merge, &source->threads, &event->seen.thread);

	if (ret)
		return ret;
	if (event->seen.from_ns)
		event->seen.from_ns += source->offset;
	if (!event->seen.to_ns)
		return pass(merge, source, event);
	event->seen.to_ns += source->offset;
	return held_events__add(source->held, event, event->seen.to_ns);
}

static int take_bundle(const struct stream_merge *merge, struct source *source, struct stream_event *event)
{
	struct vapro_bundle *bundle = &event->bundle;

	if (read_id(merge, &source->threads, &bundle->thread) || read_id(merge, &source->states, &bundle->state))
		return -EINVAL;
	bundle->start_ns += source->offset;
	bundle->end_ns += source->offset;
	return held_events__add(source->held, event,
				bundle->flags & VAPRO_BUNDLE_OPEN ? HELD_NEXT_WINDOW : bundle->end_ns);
}

/* Puts a source's event at once, or holds it until its window. */
static int take(struct stream_merge *merge, struct source *source, struct stream_event *event)
{
	switch (event->type) {
	case STREAM_LINE:
	case STREAM_NAME:
		return pass(merge, source, event);
	case STREAM_CLOCK:
		source->offset = event->clock.utc_ns - event->clock.mono_ns;
		return 0;
	case STREAM_THREAD:
		if (merge->order == MERGE_BY_WINDOW)
			return announce_later(source, &source->threads, event->thread.id, event);
		return knows(&source->threads, event->thread.id) ? 0 : add_thread(merge, source, event);
	case STREAM_STATE:
		if (merge->order == MERGE_BY_WINDOW)
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
		return held_events__add(source->held, event, event->interference.bin * VAPRO_BIN_NS);
	case STREAM_ACCOUNT:
		if (read_id(merge, &source->threads, &event->account.thread))
			return -EINVAL;
		return held_events__add(source->held, event, event->account.bin * VAPRO_BIN_NS);
	case STREAM_INSIDE:
		if (read_id(merge, &source->threads, &event->inside.thread) ||
		    read_id(merge, &source->states, &event->inside.state))
			return -EINVAL;
		return held_events__add(source->held, event, HELD_NEXT_WINDOW);
	case STREAM_FACTS:
		return held_events__add(source->held, event, HELD_NEXT_WINDOW);
	case STREAM_WINDOW:
		return add_window(merge, source, &event->window);
	case STREAM_END:
		source->finished = true;
		break;
	}
	return 0;
}

/* Reads all there is of what ended before to_ns. */
static int read_ahead(struct stream_merge *merge, struct source *source, uint64_t to_ns)
{
	struct stream_event event;
	int ret = 0;

	while (!ret && !source->finished && source->read_ns < to_ns) {
		ret = source->reader->next(source->reader, &event);
		if (ret == -EAGAIN)
			return 0;
		if (ret > 0)
			ret = take(merge, source, &event);
		else if (!ret)
			source->finished = true;
	}
	return ret;
}

static int read_all(struct stream_merge *merge, uint64_t to_ns)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < merge->count; i++)
		ret = read_ahead(merge, merge->sources[i], to_ns);
	return ret;
}

static bool waits(const struct stream_merge *merge, uint64_t to_ns)
{
	for (size_t i = 0; i < merge->count; i++) {
		const struct source *source = merge->sources[i];

		if (!source->finished && !source->excused && source->read_ns < to_ns)
			return true;
	}
	return false;
}

/* Past windows serve only for their CPU share. */
static void drop_windows(struct source *source, uint64_t end_ns)
{
	size_t used = 0;

	while (used < source->window_count && source->windows[used].end_ns <= end_ns)
		source->window = source->windows[used++];
	source->window_count -= used;
	memmove(source->windows, source->windows + used, source->window_count * sizeof(*source->windows));
}

/* Windows keep their size and phase as long as one source lasts; only then another one leads. */
static struct source *find_leader(const struct stream_merge *merge)
{
	struct source *leader = NULL;

	if (merge->leader && merge->leader->window_count)
		return merge->leader;
	for (size_t i = 0; i < merge->count; i++) {
		struct source *source = merge->sources[i];

		if (source->window_count && (!leader || source->windows[0].begin_ns < leader->windows[0].begin_ns))
			leader = source;
	}
	return leader;
}

/* The cost of several nodes is the worst node's. */
static void most_of(struct stream_window *window, const struct stream_window *one)
{
	window->daemon_cpu_pct = fmax(window->daemon_cpu_pct, one->daemon_cpu_pct);
	window->io_traced_pct = fmax(window->io_traced_pct, one->io_traced_pct);
	window->io_tax_pct = fmax(window->io_tax_pct, one->io_tax_pct);
}

static int put_window(struct stream_merge *merge, uint64_t begin_ns, uint64_t end_ns, bool last)
{
	struct stream_event event = {.type = STREAM_CLOCK, .clock = {end_ns, end_ns}};
	struct stream_window window = {.begin_ns = begin_ns, .end_ns = end_ns, .last = last};
	int ret = stream__put(merge->sink, &event);

	for (size_t i = 0; !ret && i < merge->count; i++)
		ret = put_due(merge, merge->sources[i], end_ns);
	for (size_t i = 0; i < merge->count; i++) {
		drop_windows(merge->sources[i], end_ns);
		most_of(&window, &merge->sources[i]->window);
	}
	merge->end_ns = end_ns;
	merge->last = last;
	if (ret)
		return ret;
	event = (struct stream_event){.type = STREAM_WINDOW, .window = window};
	return stream__put(merge->sink, &event);
}

/* True where all sources are finished, with nothing after end_ns. */
static bool is_last(const struct stream_merge *merge, uint64_t end_ns)
{
	for (size_t i = 0; i < merge->count; i++) {
		const struct source *source = merge->sources[i];

		if (!source->finished || source->read_ns > end_ns)
			return false;
	}
	return true;
}

static int begin(struct stream_merge *merge)
{
	const struct stream_event clock = {.type = STREAM_CLOCK, .clock = {1, 1}};

	if (merge->begun)
		return 0;
	merge->begun = true;
	return stream__put(merge->sink, &clock); /* all times are UTC from here on */
}

int stream_merge__advance(struct stream_merge *merge)
{
	uint64_t begin_ns, end_ns;
	int ret = begin(merge);

	/* the leader's next window is read: a leader stays one while its source lasts */
	if (!ret)
		ret = read_all(merge, merge->end_ns + 1);
	if (ret || waits(merge, merge->end_ns ? merge->end_ns + 1 : 1))
		return ret;
	merge->leader = find_leader(merge);
	if (!merge->leader)
		return 0;
	begin_ns = merge->end_ns ? merge->end_ns : merge->leader->windows[0].begin_ns;
	end_ns = merge->leader->windows[0].end_ns;
	ret = read_all(merge, end_ns);
	if (ret || waits(merge, end_ns))
		return ret;
	ret = put_window(merge, begin_ns, end_ns, is_last(merge, end_ns));
	return ret ? ret : 1;
}

bool stream_merge__ended(const struct stream_merge *merge)
{
	for (size_t i = 0; i < merge->count; i++) {
		if (!merge->sources[i]->finished || merge->sources[i]->window_count)
			return false;
	}
	return true;
}

/* Range of what is held after the last window. */
struct rest {
	uint64_t begin_ns, end_ns;
};

static int note_rest(void *arg, const struct stream_event *event, uint64_t time_ns)
{
	struct rest *rest = arg;

	if (time_ns == HELD_NEXT_WINDOW)
		time_ns = event->type == STREAM_BUNDLE ? event->bundle.end_ns : 0;
	if (time_ns > rest->end_ns)
		rest->end_ns = time_ns;
	if (!rest->begin_ns && event->type == STREAM_BUNDLE)
		rest->begin_ns = event->bundle.start_ns / VAPRO_BIN_NS * VAPRO_BIN_NS;
	return 0;
}

static int put_rest(struct stream_merge *merge)
{
	struct rest rest = {.begin_ns = merge->end_ns};

	for (size_t i = 0; i < merge->count; i++) {
		held_events__each(merge->sources[i]->held, note_rest, &rest);
		held_events__date(merge->sources[i]->held, 0);
	}
	if (!rest.end_ns || rest.end_ns < rest.begin_ns || !rest.begin_ns)
		return 0;
	return put_window(merge, rest.begin_ns, (rest.end_ns / VAPRO_BIN_NS + 1) * VAPRO_BIN_NS, true);
}

int stream_merge__finish(struct stream_merge *merge, bool complete)
{
	const struct stream_event end = {.type = STREAM_END};
	int ret = merge->last ? 0 : put_rest(merge);

	for (size_t i = 0; !ret && i < merge->count; i++)
		ret = put_due(merge, merge->sources[i], UINT64_MAX);
	if (!ret && complete)
		ret = stream__put(merge->sink, &end);
	return ret;
}

struct stream_merge *stream_merge__new(struct stream_sink *sink, enum merge_order order)
{
	struct stream_merge *merge = calloc(1, sizeof(*merge));

	if (!merge)
		return NULL;
	merge->sink = sink;
	merge->order = order;
	merge->state_texts = intern__new();
	if (merge->state_texts)
		return merge;
	free(merge);
	return NULL;
}

static void free_ids(struct ids *ids)
{
	for (size_t i = 0; i < ids->capacity; i++)
		free(ids->items[i].packed);
	free(ids->items);
}

static void free_source(struct source *source)
{
	held_events__free(source->held);
	free(source->windows);
	free_ids(&source->threads);
	free_ids(&source->states);
	free(source);
}

void stream_merge__free(struct stream_merge *merge)
{
	if (!merge)
		return;
	for (size_t i = 0; i < merge->count; i++)
		free_source(merge->sources[i]);
	free(merge->sources);
	intern__free(merge->state_texts);
	free(merge);
}

int stream_merge__add(struct stream_merge *merge, struct merge_reader *reader)
{
	struct source *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->due.put = put_event;
	source->merge = merge;
	source->reader = reader;
	source->held = held_events__new();
	if (!source->held || grow(&merge->sources, &merge->capacity, merge->count + 1, sizeof(struct source *))) {
		free_source(source);
		return -ENOMEM;
	}
	merge->sources[merge->count] = source;
	return (int)merge->count++;
}

void stream_merge__excuse(struct stream_merge *merge, int source, bool excused)
{
	merge->sources[source]->excused = excused;
}

uint64_t stream_merge__end_ns(const struct stream_merge *merge)
{
	return merge->end_ns;
}

uint64_t stream_merge__due_ns(const struct stream_merge *merge)
{
	const struct source *leader = find_leader(merge);

	return leader ? leader->windows[0].end_ns : 0;
}

uint64_t stream_merge__read_ns(const struct stream_merge *merge, int source)
{
	return merge->sources[source]->finished ? UINT64_MAX : merge->sources[source]->read_ns;
}

size_t stream_merge__bytes(const struct stream_merge *merge)
{
	size_t bytes = sizeof(*merge) + intern__bytes(merge->state_texts);

	for (size_t i = 0; i < merge->count; i++) {
		const struct source *source = merge->sources[i];

		bytes += sizeof(*source) + held_events__bytes(source->held) +
			 source->window_capacity * sizeof(*source->windows) +
			 (source->threads.capacity + source->states.capacity) * sizeof(struct id);
	}
	return bytes;
}
