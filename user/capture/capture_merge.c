/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_file.h"
#include "capture/capture_merge.h"
#include "base/grow.h"
#include "base/intern.h"

/* An event read ahead, due in the window that holds its time. */
struct held {
	uint64_t time_ns;
	struct stream_event event;
	char *text; /* job of facts, place of samples */
};

struct source {
	struct capture_file *file;
	uint64_t offset;	    /* UTC - monotonic */
	uint32_t *threads, *states; /* the file's ids to ours */
	size_t thread_count, state_count, thread_capacity, state_capacity;
	struct held *held;
	size_t held_count, held_capacity;
	struct stream_window *windows; /* windows read and not yet used */
	size_t window_count, window_capacity;
	uint64_t read_ns;	     /* all that ended earlier is read */
	struct stream_window window; /* latest window used */
	bool finished;
};

struct merge {
	struct source *sources;
	size_t count;
	struct source *leader; /* its windows are the stream's */
	struct intern *states;
	uint32_t state_count, thread_count;
	struct stream_sink *sink;
	int trouble; /* 1 cut short, or the errno of the worst file */
	char *err;   /* first sentence only */
	size_t err_size;
};

static int add_thread(struct merge *merge, struct source *source, struct stream_event *event)
{
	event->thread.id = merge->thread_count++;
	if (grow(&source->threads, &source->thread_capacity, source->thread_count + 1, sizeof(*source->threads)))
		return -ENOMEM;
	source->threads[source->thread_count++] = event->thread.id;
	return stream__put(merge->sink, event);
}

static int add_state(struct merge *merge, struct source *source, struct stream_event *event)
{
	const struct vapro_state *state = &event->state;
	char *key = NULL;
	uint32_t id;
	size_t size;
	FILE *text = open_memstream(&key, &size);

	if (!text)
		return -ENOMEM;
	fprintf(text, "%d\n%s%s\n%s\n%s\n%s", state->class, state->from ? "<" : "", state->from ? state->from : "",
		state->to, state->labels, state->common);
	if (fclose(text)) {
		free(key);
		return -ENOMEM;
	}
	id = intern__id(merge->states, key); /* from 1: 0 is NULL's */
	free(key);
	if (id-- == INTERN_NONE ||
	    grow(&source->states, &source->state_capacity, source->state_count + 1, sizeof(*source->states)))
		return -ENOMEM;
	source->states[source->state_count++] = id;
	if (id < merge->state_count)
		return 0;
	event->state.id = merge->state_count++;
	return stream__put(merge->sink, event);
}

static int hold(struct source *source, const struct stream_event *event, uint64_t time_ns)
{
	struct held *held;

	if (grow(&source->held, &source->held_capacity, source->held_count + 1, sizeof(*held)))
		return -ENOMEM;
	held = &source->held[source->held_count];
	held->time_ns = time_ns;
	held->event = *event;
	held->text = NULL;
	if (event->type == STREAM_FACTS) {
		held->event.facts.job = held->text = strdup(event->facts.job);
		if (!held->text)
			return -ENOMEM;
	}
	if (event->type == STREAM_INSIDE && event->inside.site) {
		held->event.inside.site = held->text = strdup(event->inside.site);
		if (!held->text)
			return -ENOMEM;
	}
	source->held_count++;
	return 0;
}

static int add_window(struct source *source, const struct stream_window *window)
{
	if (grow(&source->windows, &source->window_capacity, source->window_count + 1, sizeof(*window)))
		return -ENOMEM;
	source->windows[source->window_count++] = *window;
	source->read_ns = window->end_ns;
	source->finished = window->last;
	/* facts, open fragments and samples belong to this window */
	for (size_t i = 0; i < source->held_count; i++) {
		if (source->held[i].time_ns == UINT64_MAX)
			source->held[i].time_ns = window->end_ns - 1;
	}
	return 0;
}

/* Puts a file's event at once, or holds it until its window. */
static int take(struct merge *merge, struct source *source, struct stream_event *event)
{
	switch (event->type) {
	case STREAM_LINE:
	case STREAM_NAME:
		return stream__put(merge->sink, event);
	case STREAM_CLOCK:
		source->offset = event->clock.utc_ns - event->clock.mono_ns;
		return 0;
	case STREAM_THREAD:
		return add_thread(merge, source, event);
	case STREAM_STATE:
		return add_state(merge, source, event);
	case STREAM_SEEN:
		event->seen.thread = source->threads[event->seen.thread];
		if (event->seen.from_ns)
			event->seen.from_ns += source->offset;
		if (!event->seen.to_ns)
			return stream__put(merge->sink, event);
		event->seen.to_ns += source->offset;
		return hold(source, event, event->seen.to_ns);
	case STREAM_BUNDLE:
		event->bundle.thread = source->threads[event->bundle.thread];
		event->bundle.state = source->states[event->bundle.state];
		event->bundle.start_ns += source->offset;
		event->bundle.end_ns += source->offset;
		return hold(source, event, event->bundle.flags & VAPRO_BUNDLE_OPEN ? UINT64_MAX : event->bundle.end_ns);
	case STREAM_PLACE:
		event->place.thread = source->threads[event->place.thread];
		return stream__put(merge->sink, event);
	case STREAM_STAGE:
		event->stage.begin_ns += source->offset;
		event->stage.end_ns += source->offset;
		return stream__put(merge->sink, event);
	case STREAM_HOP:
		event->hop.begin_ns += source->offset;
		event->hop.end_ns += source->offset;
		return stream__put(merge->sink, event);
	case STREAM_INTERFERENCE:
		event->interference.thread = source->threads[event->interference.thread];
		return hold(source, event, event->interference.bin * VAPRO_BIN_NS);
	case STREAM_ACCOUNT:
		event->account.thread = source->threads[event->account.thread];
		return hold(source, event, event->account.bin * VAPRO_BIN_NS);
	case STREAM_FACTS:
		return hold(source, event, UINT64_MAX);
	case STREAM_INSIDE:
		event->inside.thread = source->threads[event->inside.thread];
		event->inside.state = source->states[event->inside.state];
		return hold(source, event, UINT64_MAX);
	case STREAM_WINDOW:
		return add_window(source, &event->window);
	case STREAM_END:
		source->finished = true;
		break;
	}
	return 0;
}

/* Reads everything that ended before to_ns. */
static int read_ahead(struct merge *merge, struct source *source, uint64_t to_ns)
{
	char ignored[256], *err = merge->trouble ? ignored : merge->err;
	size_t err_size = merge->trouble ? sizeof(ignored) : merge->err_size;
	struct stream_event event;
	int ret;

	while (!source->finished && source->read_ns < to_ns) {
		ret = capture_file__next(source->file, &event, err, err_size);
		if (ret <= 0) {
			source->finished = true;
			if (ret == -ENODATA && !merge->trouble)
				merge->trouble = 1;
			else if (ret < 0 && ret != -ENODATA && merge->trouble >= 0)
				merge->trouble = ret;
			return 0;
		}
		ret = take(merge, source, &event);
		if (ret)
			return ret;
	}
	return 0;
}

/* Puts events due before end_ns and retains the rest, in order. */
static int put_due(struct merge *merge, struct source *source, uint64_t end_ns)
{
	size_t live = 0;
	int ret = 0;

	for (size_t i = 0; i < source->held_count; i++) {
		struct held *held = &source->held[i];

		if (held->time_ns >= end_ns) {
			source->held[live++] = *held;
			continue;
		}
		if (!ret)
			ret = stream__put(merge->sink, &held->event);
		free(held->text);
	}
	source->held_count = live;
	return ret;
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

/* Windows keep their size and phase as long as one file lasts; only then another one leads. */
static struct source *find_leader(struct merge *merge)
{
	struct source *leader = NULL;

	if (merge->leader && merge->leader->window_count)
		return merge->leader;
	for (size_t i = 0; i < merge->count; i++) {
		struct source *source = &merge->sources[i];

		if (source->window_count && (!leader || source->windows[0].begin_ns < leader->windows[0].begin_ns))
			leader = source;
	}
	merge->leader = leader;
	return leader;
}

/* The cost of several nodes is the worst node's. */
static void most_of(struct stream_window *window, const struct stream_window *one)
{
	window->daemon_cpu_pct = fmax(window->daemon_cpu_pct, one->daemon_cpu_pct);
	window->io_traced_pct = fmax(window->io_traced_pct, one->io_traced_pct);
	window->io_tax_pct = fmax(window->io_tax_pct, one->io_tax_pct);
}

static int put_window(struct merge *merge, uint64_t begin_ns, uint64_t end_ns, bool last)
{
	struct stream_event event = {.type = STREAM_CLOCK, .clock = {end_ns, end_ns}};
	struct stream_window window = {.begin_ns = begin_ns, .end_ns = end_ns, .last = last};
	int ret = stream__put(merge->sink, &event);

	for (size_t i = 0; !ret && i < merge->count; i++)
		ret = put_due(merge, &merge->sources[i], end_ns);
	for (size_t i = 0; i < merge->count; i++) {
		drop_windows(&merge->sources[i], end_ns);
		most_of(&window, &merge->sources[i].window);
	}
	if (ret)
		return ret;
	event = (struct stream_event){.type = STREAM_WINDOW, .window = window};
	return stream__put(merge->sink, &event);
}

/* True where all files are finished, with nothing after end_ns. */
static bool is_last(const struct merge *merge, uint64_t end_ns)
{
	for (size_t i = 0; i < merge->count; i++) {
		const struct source *source = &merge->sources[i];

		if (!source->finished || source->read_ns > end_ns)
			return false;
	}
	return true;
}

/* Puts what cut files held beyond their last windows, as a last window. */
static int put_rest(struct merge *merge, uint64_t begin_ns)
{
	uint64_t end_ns = 0;

	for (size_t i = 0; i < merge->count; i++) {
		for (size_t k = 0; k < merge->sources[i].held_count; k++) {
			struct held *held = &merge->sources[i].held[k];

			if (held->time_ns == UINT64_MAX)
				held->time_ns = held->event.type == STREAM_BUNDLE ? held->event.bundle.end_ns : 0;
			if (held->time_ns > end_ns)
				end_ns = held->time_ns;
			if (!begin_ns && held->event.type == STREAM_BUNDLE)
				begin_ns = held->event.bundle.start_ns / VAPRO_BIN_NS * VAPRO_BIN_NS;
		}
	}
	if (!end_ns || end_ns < begin_ns || !begin_ns)
		return 0;
	return put_window(merge, begin_ns, (end_ns / VAPRO_BIN_NS + 1) * VAPRO_BIN_NS, true);
}

static int merge_sources(struct merge *merge)
{
	struct stream_event end = {.type = STREAM_END}, clock = {.type = STREAM_CLOCK, .clock = {1, 1}};
	struct source *leader;
	uint64_t end_ns = 0;
	bool last = false;
	int ret = stream__put(merge->sink, &clock); /* all times are UTC from here on */

	for (size_t i = 0; !ret && i < merge->count; i++)
		ret = read_ahead(merge, &merge->sources[i], 1);
	while (!ret && (leader = find_leader(merge))) {
		struct stream_window window = leader->windows[0];

		if (end_ns)
			window.begin_ns = end_ns;
		end_ns = window.end_ns;
		for (size_t i = 0; !ret && i < merge->count; i++)
			ret = read_ahead(merge, &merge->sources[i], end_ns);
		if (ret)
			break;
		last = is_last(merge, end_ns);
		ret = put_window(merge, window.begin_ns, end_ns, last);
		/* the leader's next window is read: a leader stays one while its file lasts */
		for (size_t i = 0; !ret && i < merge->count; i++)
			ret = read_ahead(merge, &merge->sources[i], end_ns + 1);
	}
	if (!ret && !last)
		ret = put_rest(merge, end_ns);
	if (!ret && !merge->trouble)
		ret = stream__put(merge->sink, &end);
	return ret;
}

static void source__close(struct source *source)
{
	capture_file__close(source->file);
	for (size_t i = 0; i < source->held_count; i++)
		free(source->held[i].text);
	free(source->held);
	free(source->windows);
	free(source->threads);
	free(source->states);
}

int capture_merge(const char *const *paths, size_t count, int run, struct stream_sink *sink, char *err, size_t err_size)
{
	struct merge merge = {.sink = sink, .count = count, .err = err, .err_size = err_size};
	int ret = -ENOMEM;

	if (!count) {
		snprintf(err, err_size, "no capture given");
		return -EINVAL;
	}
	merge.sources = calloc(count, sizeof(*merge.sources));
	merge.states = intern__new();
	if (!merge.sources || !merge.states)
		goto cleanup;
	for (size_t i = 0; i < count; i++) {
		merge.sources[i].file = capture_file__open(paths[i], run, err, err_size);
		if (!merge.sources[i].file) {
			ret = -errno;
			goto cleanup;
		}
	}
	ret = merge_sources(&merge);
	if (ret)
		snprintf(err, err_size, "the replay stopped: %s", strerror(-ret));
	else
		ret = merge.trouble;
cleanup:
	for (size_t i = 0; merge.sources && i < count; i++)
		source__close(&merge.sources[i]);
	free(merge.sources);
	intern__free(merge.states);
	return ret;
}
