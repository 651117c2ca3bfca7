// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Carries out and reports, for all processes at once, the analysis' decisions which call-sites are hopped to their
 * callers (model/hops.h): a replay has the states that were seen, and the decisions as events.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/daemon_private.h"
#include "report/pipeline.h"

#define AT_ONCE 8 /* decisions a second; others wait for the next one */

/* Returns a call-site's symbol, by which people find it, or its name where it has none. */
static const char *shown(const struct vapro_hop_event *event)
{
	return event->symbol ? event->symbol : event->site;
}

/* Returns whether a refusal was reported: once for all call-sites of an image that share the reason. */
static bool is_known(struct daemon *daemon, const struct vapro_hop_event *event)
{
	struct hop_refusals *refusals = &daemon->refusals;
	char *image;

	if (refusals->count == HOP_REFUSALS)
		return true;
	image = refusals->image[refusals->count];
	snprintf(image, sizeof(refusals->image[0]), "%.*s", (int)strcspn(event->site, "@"), event->site);
	for (unsigned i = 0; i < refusals->count; i++)
		if (refusals->reason[i] == event->reason && !strcmp(refusals->image[i], image))
			return true;
	refusals->reason[refusals->count++] = event->reason;
	return false;
}

static void say(struct daemon *daemon, const struct vapro_hop_event *event)
{
	switch (event->hop) {
	case VAPRO_HOP_UP:
		tracker__warn(
		    daemon->tracker, "hopped", 0,
		    "times between the calls at %s (%s) spread: from now on its calls are distinguished by their "
		    "callers, and stay so if that makes times steady",
		    shown(event), event->site);
		break;
	case VAPRO_HOP_BACK:
		tracker__warn(daemon->tracker, "hopped_back", 0,
			      "times between the calls at %s (%s) spread for every caller: its calls are no longer "
			      "distinguished by their callers",
			      shown(event), event->site);
		break;
	case VAPRO_HOP_REFUSED:
		if (!is_known(daemon, event))
			tracker__warn(
			    daemon->tracker, "hop_refused", 0,
			    "times between the calls at %s (%s) spread, but its calls cannot be distinguished by "
			    "their callers: it %s",
			    shown(event), event->site, event->reason);
		break;
	case VAPRO_HOP_NONE:
	case VAPRO_HOP_STAYS:
	case VAPRO_HOPS:
		break;
	}
}

/* Returns false where a decision has to wait until the frame of its call-site is known: then it will be made again. */
bool daemon__carry_out_hop(struct daemon *daemon, struct vapro_hop_event *event)
{
	struct stream_event done = {.type = STREAM_HOP, .hop = {.begin_ns = mono_now(), .site = event->site}};
	bool top = false, up = event->hop == VAPRO_HOP_UP;
	int status = 0;

	if (event->hop != VAPRO_HOP_STAYS)
		status = resolver__hop(daemon->resolver, event->site, up, &event->reason, &top);
	if (status == -EAGAIN)
		return false;
	if (status)
		event->hop = VAPRO_HOP_REFUSED;
	if (!top) /* a caller without callers is not worth a report */
		say(daemon, event);
	done.hop.end_ns = mono_now();
	done.hop.hop = event->hop;
	done.hop.symbol = event->symbol;
	done.hop.reason = event->reason;
	stream__put(&daemon->tee.sink, &done);
	return true;
}

void daemon__hop(struct daemon *daemon)
{
	struct vapro_hop_event event;
	char text[512];

	if (daemon->options->config.states == VAPRO_BY_CALL_PATH)
		return;
	for (int i = 0; i < AT_ONCE; i++) {
		pipeline__hop_request(daemon->tee.pipeline, mono_now(), &event);
		if (event.hop == VAPRO_HOP_NONE || !daemon__carry_out_hop(daemon, &event))
			break;
	}
	while (resolver__hop_trouble(daemon->resolver, text, sizeof(text)))
		tracker__warn(daemon->tracker, "hop_refused", 0, "%s", text);
}
