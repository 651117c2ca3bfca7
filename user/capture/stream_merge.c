// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "capture/stream_merge_private.h"

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
			ret = stream_merge__take(merge, source, &event);
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
	if (!used)
		return;
	source->window_count -= used;
	memmove(source->windows, source->windows + used, source->window_count * sizeof(*source->windows));
}

/* Notes of which blocks something is held on. */
static void drop_marks(struct source *source, uint64_t end_ns)
{
	size_t remaining = 0;

	for (size_t i = 0; i < source->mark_count; i++) {
		if (source->marks[i].undated || source->marks[i].latest_ns >= end_ns)
			source->marks[remaining++] = source->marks[i];
	}
	source->mark_count = remaining;
	source->put = (struct place){source->reader->block, source->reader->event};
}

/* Whether a source's next window follows the last one that was put; not so where blocks of it are missing. */
static bool goes_on(const struct stream_merge *merge, const struct source *source)
{
	return source->window_count && source->windows[0].begin_ns < merge->end_ns + VAPRO_BIN_NS;
}

/* Windows keep their size and phase while one source goes on; then the source leads whose next window begins first. */
static struct source *find_leader(const struct stream_merge *merge)
{
	struct source *leader = NULL;

	if (merge->leader && goes_on(merge, merge->leader))
		return merge->leader;
	for (size_t i = 0; i < merge->count; i++) {
		struct source *source = merge->order[i];

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
	window->bystander_hits = fmax(window->bystander_hits, one->bystander_hits);
	window->bystander_pct = fmax(window->bystander_pct, one->bystander_pct);
}

static int put_window(struct stream_merge *merge, uint64_t begin_ns, uint64_t end_ns, bool last)
{
	struct stream_event event = {.type = STREAM_CLOCK, .clock = {end_ns, end_ns}};
	struct stream_window window = {.begin_ns = begin_ns, .end_ns = end_ns, .last = last};
	int ret = stream__put(merge->sink, &event);

	for (size_t i = 0; !ret && i < merge->count; i++)
		ret = stream_merge__put_due(merge, merge->order[i], end_ns);
	for (size_t i = 0; i < merge->count; i++) {
		drop_windows(merge->sources[i], end_ns);
		drop_marks(merge->sources[i], end_ns);
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
		ret = stream_merge__put_due(merge, merge->order[i], UINT64_MAX);
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
	merge->when = order;
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
	free(source->marks);
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
	free(merge->order);
	intern__free(merge->state_texts);
	free(merge);
}

int stream_merge__add(struct stream_merge *merge, struct merge_reader *reader)
{
	struct source *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->due.put = stream_merge__put_event;
	source->merge = merge;
	source->reader = reader;
	source->held = held_events__new();
	if (!source->held || grow(&merge->sources, &merge->capacity, merge->count + 1, sizeof(struct source *)) ||
	    grow(&merge->order, &merge->order_capacity, merge->count + 1, sizeof(struct source *))) {
		free_source(source);
		return -ENOMEM;
	}
	merge->sources[merge->count] = merge->order[merge->count] = source;
	return (int)merge->count++;
}

void stream_merge__place(struct stream_merge *merge, int source, size_t place)
{
	struct source *moved = merge->sources[source];
	size_t at = 0;

	while (merge->order[at] != moved)
		at++;
	if (place >= merge->count)
		place = merge->count - 1;
	if (place < at)
		memmove(&merge->order[place + 1], &merge->order[place], (at - place) * sizeof(struct source *));
	else
		memmove(&merge->order[at], &merge->order[at + 1], (place - at) * sizeof(struct source *));
	merge->order[place] = moved;
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

uint64_t stream_merge__held_block(const struct stream_merge *merge, int source)
{
	const struct source *of = merge->sources[source];

	return of->mark_count ? of->marks[0].block : UINT64_MAX;
}

bool stream_merge__replayed(const struct stream_merge *merge)
{
	for (size_t i = 0; i < merge->count; i++) {
		if (!merge->sources[i]->finished && stream_merge__replays(merge->sources[i]))
			return false;
	}
	return true;
}

size_t stream_merge__bytes(const struct stream_merge *merge)
{
	size_t bytes = sizeof(*merge) + intern__bytes(merge->state_texts);

	for (size_t i = 0; i < merge->count; i++) {
		const struct source *source = merge->sources[i];

		bytes += sizeof(*source) + held_events__bytes(source->held) +
			 source->window_capacity * sizeof(*source->windows) +
			 source->mark_capacity * sizeof(*source->marks) +
			 (source->threads.capacity + source->states.capacity) * sizeof(struct id);
	}
	return bytes;
}
