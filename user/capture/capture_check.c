// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>

#include "capture/capture_check.h"

static const char *empty_for_null(const char *text)
{
	return text ? text : "";
}

const char *capture__check(struct stream_event *event, uint32_t threads, uint32_t states)
{
	const struct vapro_bundle *bundle = &event->bundle;

	switch (event->type) {
	case STREAM_LINE:
		return event->line.text ? NULL : "an empty line";
	case STREAM_THREAD:
		event->thread.job = empty_for_null(event->thread.job);
		event->thread.host = empty_for_null(event->thread.host);
		return NULL;
	case STREAM_STATE:
		event->state.to = empty_for_null(event->state.to);
		event->state.labels = empty_for_null(event->state.labels);
		event->state.common = empty_for_null(event->state.common);
		if ((uint32_t)event->state.class >= VAPRO_CLASSES)
			return "a state is of no class";
		return NULL;
	case STREAM_SEEN:
		return event->seen.thread < threads ? NULL : "an unknown thread";
	case STREAM_PLACE:
		return event->place.thread < threads ? NULL : "an unknown thread";
	case STREAM_INTERFERENCE:
		return event->interference.thread < threads ? NULL : "an unknown thread";
	case STREAM_ACCOUNT:
		return event->account.thread < threads ? NULL : "an unknown thread";
	case STREAM_FACTS:
		event->facts.job = empty_for_null(event->facts.job);
		return NULL;
	case STREAM_BUNDLE:
		if (bundle->thread >= threads || bundle->state >= states)
			return "a bundle of an unknown thread or state";
		return bundle->n && bundle->start_ns <= bundle->end_ns ? NULL : "an impossible bundle";
	case STREAM_WINDOW:
		return event->window.begin_ns <= event->window.end_ns ? NULL : "an impossible window";
	case STREAM_STAGE:
		if (event->stage.refused && !event->stage.expand)
			return "a stage of no factor is refused";
		return event->stage.begin_ns <= event->stage.end_ns ? NULL : "an impossible change of stage";
	case STREAM_HOP:
		if (!event->hop.site)
			return "a hop of no call-site";
		return event->hop.begin_ns <= event->hop.end_ns ? NULL : "an impossible hop";
	case STREAM_NAME:
		return event->name.site ? NULL : "a name of no call-site";
	case STREAM_INSIDE:
		if (event->inside.thread >= threads || event->inside.state >= states)
			return "samples of an unknown thread or state";
		return NULL;
	case STREAM_HOST_CLOCK:
		return event->host_clock.host ? NULL : "a clock of no host";
	case STREAM_GONE:
		return event->gone.state < states ? NULL : "an unknown state is gone";
	case STREAM_CLOCK:
	case STREAM_END:
		break;
	}
	return NULL;
}
