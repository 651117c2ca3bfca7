// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>

#include "capture/capture_check.h"

static const char *empty_for_null(const char *text)
{
	return text ? text : "";
}

static const char *check_thread(uint32_t thread, uint32_t threads)
{
	return thread < threads ? NULL : "an unknown thread";
}

static const char *check_state(struct vapro_state *state)
{
	state->to = empty_for_null(state->to);
	state->labels = empty_for_null(state->labels);
	state->common = empty_for_null(state->common);
	return (uint32_t)state->class < VAPRO_CLASSES ? NULL : "a state is of no class";
}

static const char *check_bundle(const struct vapro_bundle *bundle, uint32_t threads, uint32_t states)
{
	if (bundle->thread >= threads || bundle->state >= states)
		return "a bundle of an unknown thread or state";
	return bundle->n && bundle->start_ns <= bundle->end_ns ? NULL : "an impossible bundle";
}

static const char *check_stage(const struct stream_stage *stage)
{
	if (stage->refused && !stage->expand)
		return "a stage of no factor is refused";
	return stage->begin_ns <= stage->end_ns ? NULL : "an impossible change of stage";
}

static const char *check_hop(const struct stream_hop *hop)
{
	if (!hop->site)
		return "a hop of no call-site";
	return hop->begin_ns <= hop->end_ns ? NULL : "an impossible hop";
}

const char *capture__check(struct stream_event *event, uint32_t threads, uint32_t states)
{
	switch (event->type) {
	case STREAM_LINE:
		return event->line.text ? NULL : "an empty line";
	case STREAM_THREAD:
		event->thread.job = empty_for_null(event->thread.job);
		event->thread.host = empty_for_null(event->thread.host);
		return NULL;
	case STREAM_STATE:
		return check_state(&event->state);
	case STREAM_SEEN:
		return check_thread(event->seen.thread, threads);
	case STREAM_PLACE:
		return check_thread(event->place.thread, threads);
	case STREAM_INTERFERENCE:
		return check_thread(event->interference.thread, threads);
	case STREAM_ACCOUNT:
		return check_thread(event->account.thread, threads);
	case STREAM_FACTS:
		event->facts.job = empty_for_null(event->facts.job);
		return NULL;
	case STREAM_BUNDLE:
		return check_bundle(&event->bundle, threads, states);
	case STREAM_WINDOW:
		return event->window.begin_ns <= event->window.end_ns ? NULL : "an impossible window";
	case STREAM_STAGE:
		return check_stage(&event->stage);
	case STREAM_HOP:
		return check_hop(&event->hop);
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
