// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The progressive diagnosis drives the counters (VAPRO (PPoPP'22) section 4.3): what the analysis requests
 * after a window is counted until the next window ends. One group is on at a time, for the whole node.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/daemon_private.h"
#include "report/pipeline.h"

static void emit_stage(struct daemon *daemon, const struct vapro_stage_request *request, uint64_t begin_ns,
		       const char *refused)
{
	char events[512];
	struct stream_event event = {.type = STREAM_STAGE,
				     .stage = {.begin_ns = begin_ns,
					       .end_ns = mono_now(),
					       .stage = (uint32_t)request->stage,
					       .expand = request->expand,
					       .job = request->job,
					       .variance = request->variance,
					       .events = refused ? NULL : events,
					       .refused = refused}};

	if (refused)
		log__warning("the parts of %s cannot be counted here: %s", request->expand, refused);
	counters__names(daemon->counters, events, sizeof(events));
	stream__put(&daemon->tee.sink, &event);
}

/* Counts the whole of the time again, as whenever no parts are requested or countable. */
static void count_all(struct daemon *daemon, uint64_t begin_ns)
{
	const struct vapro_stage_request whole = {.stage = 1};
	char err[256];
	int status = counters__switch(daemon->counters, kernel_side__bpf(daemon->side),
				      counters__find(daemon->counters, 1, NULL), err, sizeof(err));
	bool lost = !counters__count(daemon->counters);

	if (status && lost != daemon->counters_lost)
		tracker__warn(daemon->tracker, "counters_lost", 0,
			      "counters could not be opened again, which is tried after each window: %s", err);
	daemon->counters_lost = lost;
	daemon->expanded = NULL;
	if (!lost)
		emit_stage(daemon, &whole, begin_ns, NULL);
}

/* Counts the requested parts. Returns whether the request is settled; if not, the analysis has the refusal. */
static bool count_parts(struct daemon *daemon, const struct vapro_stage_request *request)
{
	const struct event_group *group = counters__find(daemon->counters, request->stage, request->expand);
	uint64_t begin_ns = mono_now();
	char err[256];

	if (!group) {
		emit_stage(daemon, request, begin_ns, "no events that part it are known for this CPU");
		return false;
	}
	if (!counters__switch(daemon->counters, kernel_side__bpf(daemon->side), group, err, sizeof(err))) {
		daemon->expanded = request->expand;
		emit_stage(daemon, request, begin_ns, NULL);
		return true;
	}
	count_all(daemon, begin_ns);
	if (!daemon->counters_lost)
		emit_stage(daemon, request, mono_now(), err);
	return daemon->counters_lost;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

void daemon__switch_stage(struct daemon *daemon)
{
	struct vapro_stage_request request;

	if (daemon->counters_lost)
		count_all(daemon, mono_now());
	if (!counters__count(daemon->counters))
		return;
	for (bool final = false; !final;) {
		bool remote = daemon__remote_stage(daemon, &request);

		if (!remote)
			pipeline__stage_request(daemon->tee.pipeline, &request);
		if (same(request.expand, daemon->expanded))
			final = true;
		else if (request.expand)
			final = count_parts(daemon, &request);
		else
			count_all(daemon, mono_now());
		if (remote && !final && request.expand)
			daemon__refuse_remote_stage(daemon);
	}
}
