/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream sink that copies all events, for tests of sources. */
#ifndef VAPRO_TESTS_RECORDER_H
#define VAPRO_TESTS_RECORDER_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/stream.h"

struct recorder {
	struct stream_sink sink; /* first */
	struct stream_event *events;
	size_t count;
	size_t refuse_after; /* put() fails from this event on; 0 = never */
};

static inline const char *recorder__copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static inline int recorder__put(struct stream_sink *sink, const struct stream_event *event)
{
	struct recorder *recorder = (struct recorder *)sink;
	struct stream_event *copy;

	if (recorder->refuse_after && recorder->count >= recorder->refuse_after)
		return -ENOSPC;
	recorder->events = reallocarray(recorder->events, recorder->count + 1, sizeof(*copy));
	copy = &recorder->events[recorder->count++];
	*copy = *event;
	switch (event->type) {
	case STREAM_LINE:
		copy->line.text = recorder__copy(event->line.text);
		break;
	case STREAM_THREAD:
		copy->thread.job = recorder__copy(event->thread.job);
		copy->thread.host = recorder__copy(event->thread.host);
		break;
	case STREAM_STATE:
		copy->state.from = recorder__copy(event->state.from);
		copy->state.to = recorder__copy(event->state.to);
		copy->state.labels = recorder__copy(event->state.labels);
		copy->state.common = recorder__copy(event->state.common);
		copy->state.from_symbol = recorder__copy(event->state.from_symbol);
		copy->state.to_symbol = recorder__copy(event->state.to_symbol);
		copy->state.from_path = recorder__copy(event->state.from_path);
		copy->state.to_path = recorder__copy(event->state.to_path);
		break;
	case STREAM_PLACE:
		copy->place.core_type = recorder__copy(event->place.core_type);
		copy->place.cpu_model = recorder__copy(event->place.cpu_model);
		copy->place.cgroup = recorder__copy(event->place.cgroup);
		copy->place.limit = recorder__copy(event->place.limit);
		copy->place.limit_cgroup = recorder__copy(event->place.limit_cgroup);
		copy->place.cpus = recorder__copy(event->place.cpus);
		break;
	case STREAM_STAGE:
		copy->stage.expand = recorder__copy(event->stage.expand);
		copy->stage.job = recorder__copy(event->stage.job);
		copy->stage.events = recorder__copy(event->stage.events);
		copy->stage.refused = recorder__copy(event->stage.refused);
		break;
	case STREAM_HOP:
		copy->hop.site = recorder__copy(event->hop.site);
		copy->hop.symbol = recorder__copy(event->hop.symbol);
		copy->hop.reason = recorder__copy(event->hop.reason);
		break;
	case STREAM_NAME:
		copy->name.site = recorder__copy(event->name.site);
		copy->name.function = recorder__copy(event->name.function);
		copy->name.file = recorder__copy(event->name.file);
		break;
	case STREAM_HOST_CLOCK:
		copy->host_clock.host = recorder__copy(event->host_clock.host);
		break;
	case STREAM_INSIDE:
		copy->inside.site = recorder__copy(event->inside.site);
		break;
	case STREAM_FACTS:
		copy->facts.job = recorder__copy(event->facts.job);
		copy->facts.image = recorder__copy(event->facts.image);
		copy->facts.without = recorder__copy(event->facts.without);
		copy->facts.without_own = recorder__copy(event->facts.without_own);
		break;
	default:
		break;
	}
	return 0;
}

static inline void recorder__clear(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->count; i++) {
		struct stream_event *event = &recorder->events[i];

		if (event->type == STREAM_LINE)
			free((char *)event->line.text);
		if (event->type == STREAM_THREAD) {
			free((char *)event->thread.job);
			free((char *)event->thread.host);
		}
		if (event->type == STREAM_STATE) {
			free((char *)event->state.from);
			free((char *)event->state.to);
			free((char *)event->state.labels);
			free((char *)event->state.common);
			free((char *)event->state.from_symbol);
			free((char *)event->state.to_symbol);
			free((char *)event->state.from_path);
			free((char *)event->state.to_path);
		}
		if (event->type == STREAM_PLACE) {
			free((char *)event->place.core_type);
			free((char *)event->place.cpu_model);
			free((char *)event->place.cgroup);
			free((char *)event->place.limit);
			free((char *)event->place.limit_cgroup);
			free((char *)event->place.cpus);
		}
		if (event->type == STREAM_STAGE) {
			free((char *)event->stage.expand);
			free((char *)event->stage.job);
			free((char *)event->stage.events);
			free((char *)event->stage.refused);
		}
		if (event->type == STREAM_HOP) {
			free((char *)event->hop.site);
			free((char *)event->hop.symbol);
			free((char *)event->hop.reason);
		}
		if (event->type == STREAM_NAME) {
			free((char *)event->name.site);
			free((char *)event->name.function);
			free((char *)event->name.file);
		}
		if (event->type == STREAM_HOST_CLOCK)
			free((char *)event->host_clock.host);
		if (event->type == STREAM_INSIDE)
			free((char *)event->inside.site);
		if (event->type == STREAM_FACTS) {
			free((char *)event->facts.job);
			free((char *)event->facts.image);
			free((char *)event->facts.without);
			free((char *)event->facts.without_own);
		}
	}
	free(recorder->events);
	memset(recorder, 0, sizeof(*recorder));
	recorder->sink.put = recorder__put;
}

/* Returns the number-th event of a type, or NULL. */
static inline const struct stream_event *recorder__find(const struct recorder *recorder, enum stream_type type,
							size_t number)
{
	for (size_t i = 0; i < recorder->count; i++) {
		if (recorder->events[i].type == type && !number--)
			return &recorder->events[i];
	}
	return NULL;
}

static inline size_t recorder__count(const struct recorder *recorder, enum stream_type type)
{
	size_t count = 0;

	for (size_t i = 0; i < recorder->count; i++)
		count += recorder->events[i].type == type;
	return count;
}

#endif
